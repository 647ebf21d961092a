local account = ARGV[2]
return {'ok', account}
