-- ARGV: prefix
-- Returns: ok, the first and the last that the store's time can be in ms by Redis' clock, that clock, what was kept of the
--   time (0: nothing), settlement ('-': none)

return {'ok', store_times()}
