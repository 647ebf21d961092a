-- Counts requests for a change that changed nothing: the id is unknown, or there was a conflict.
-- ARGV: prefix, the actor, its account, its mode ('' for people), most changes per minute, how many; '1' if it was told that
--   an email is taken, or '0'
-- Returns: ok; as limit_refused(); as conflicts_refused()

local actor, account, mode, changes_max, count = ARGV[2], ARGV[3], ARGV[4], tonumber(ARGV[5]), tonumber(ARGV[6])
local refused = ARGV[7] == '1' and conflicts_refused(account) or limit_refused(actor, account, mode, changes_max)
if refused then
    return refused
end
if ARGV[7] == '1' then
    conflict_count(account)
end
-- A long list uses up what its principal has, not what others of the account have.
limit_count(actor, account, mode, changes_max, math.min(count, changes_max))
return {'ok'}
