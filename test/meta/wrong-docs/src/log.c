/* The contract is in api.md, the way in OPERATIONS.md#gone; design 6, rule 99. */
static void complain(void)
{
    LOG(LOG_WARN, "nobody explains this",
        log_int("n", 1));
}
