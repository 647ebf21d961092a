    X(PROBLEM_ROWLESS, 400, "rowless", "")
