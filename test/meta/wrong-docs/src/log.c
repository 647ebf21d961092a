static void complain(void)
{
    LOG(LOG_WARN, "nobody explains this",
        log_int("n", 1));
}
