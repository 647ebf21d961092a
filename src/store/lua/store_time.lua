-- ARGV: prefix
-- Returns: ok, the store's time in ms

return {'ok', store_ms()}
