local prefix = ARGV[1]
