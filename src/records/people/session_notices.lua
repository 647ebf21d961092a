-- What the user of a live session should know.
-- ARGV: prefix, user, digest
-- Returns: ok, notices

return {'ok', notices(user, digest)}
