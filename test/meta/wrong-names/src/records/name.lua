-- ARGV: prefix, account
function K.secret(account) return prefix .. 'secret:' .. account end
return redis.call('GET', K.secret(account))
