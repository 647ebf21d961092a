-- What the user of a live session should know.
-- ARGV: prefix, user, digest
-- Returns: ok, notices

return {'ok', notices(ARGV[2], ARGV[3])}
