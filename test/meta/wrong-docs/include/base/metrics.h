    X(METRIC_ROWLESS, counter, "chatelaine_rowless_total", "", "")
