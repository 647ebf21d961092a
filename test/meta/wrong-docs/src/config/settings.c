{.name = "setting"},
