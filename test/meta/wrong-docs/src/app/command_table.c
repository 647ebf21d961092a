{.name = "rowless"},
