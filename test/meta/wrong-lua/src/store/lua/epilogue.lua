return run()
