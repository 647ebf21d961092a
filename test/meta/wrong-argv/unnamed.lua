-- ARGV: prefix, digest, then an account
return {'ok', digest}
