-- Counts requests for a change that changed nothing: the id is unknown, or there was a conflict.
-- ARGV: prefix, actor, account, mode ('' for people), #changes_max (per minute), #count, is_taken ('1' if it was told
--   that an email is taken, or '0')
-- Returns: ok; as limit_refused(); as conflicts_refused()

local refused = is_taken == '1' and conflicts_refused(account) or limit_refused(actor, account, mode, changes_max)
if refused then
    return refused
end
if is_taken == '1' then
    conflict_count(account)
end
-- A long list uses up what its principal has, not what others of the account have.
limit_count(actor, account, mode, changes_max, math.min(count, changes_max))
return {'ok'}
