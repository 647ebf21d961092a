    X(RULE_KEPT, "kept", "")
