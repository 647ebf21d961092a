const struct loss_row LOSSES[LOSS_COUNT] = {
    [LOSS] = ROW(METRIC_LOSS, "loss", "NoSuchAlert", "nobody explains this loss", "It is lost."),
};
