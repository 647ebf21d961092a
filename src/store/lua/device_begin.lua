-- Begins the enrolment of a device, in the partition of its user code.
-- ARGV: prefix, digest of the device code, digest of the user code, client, name, scopes, ip, lifetime in ms, interval
--   in ms, MAC, network (a tag), most enrolments that are kept here
-- Returns: ok; conflict: one of the codes is taken

-- Anybody can begin one, so what they take in Redis has a bound: beyond it, the network that has begun the most loses its
-- oldest, whose device then hears that it has expired. The set has '<network> <time> <digest> <digest of the user code>'
-- in the order of these, `enrolment_networks` how many each network has. Those that are claimed or have expired stay in
-- them until they are the oldest of the heaviest: that only makes their own network heavier.
local function enrolments_cut(most)
    while redis.call('ZCARD', K.enrolments()) > most do
        local heaviest = redis.call('ZREVRANGE', K.enrolment_networks(), 0, 0)[1] or ''
        local oldest = redis.call('ZRANGEBYLEX', K.enrolments(), '[' .. heaviest .. ' ', '(' .. heaviest .. '!',
                                  'LIMIT', 0, 1)[1]
        if not oldest then -- somebody has removed one of the two
            redis.call('DEL', K.enrolments(), K.enrolment_networks())
            return
        end
        local digest, code_digest = oldest:match('^%S+ %S+ (%S+) (%S+)$')
        redis.call('ZREM', K.enrolments(), oldest)
        if redis.call('ZINCRBY', K.enrolment_networks(), -1, heaviest) == '0' then
            redis.call('ZREM', K.enrolment_networks(), heaviest)
        end
        redis.call('DEL', K.device(digest), K.user_code(code_digest))
    end
end

-- An expired enrolment is kept for this long, so that its device hears that it has expired.
local KEPT_MS = 60 * 60 * 1000

local digest, code_digest, lifetime = ARGV[2], ARGV[3], tonumber(ARGV[8])
if exists(K.device(digest)) or exists(K.user_code(code_digest)) then
    return {'conflict'}
end
local now = now_ms()
redis.call('HSET', K.device(digest), 'client', ARGV[4], 'name', ARGV[5], 'scopes', ARGV[6], 'ip', ARGV[7],
           'created', now, 'expires', now + lifetime, 'interval', ARGV[9], 'status', 'pending',
           'mac', ARGV[10])
redis.call('PEXPIRE', K.device(digest), lifetime + KEPT_MS)
redis.call('SET', K.user_code(code_digest), digest, 'PX', lifetime + KEPT_MS)
redis.call('ZADD', K.enrolments(), 0, string.format('%s %015.0f %s %s', ARGV[11], now, digest, code_digest))
redis.call('ZINCRBY', K.enrolment_networks(), 1, ARGV[11])
for _, name in ipairs({K.enrolments(), K.enrolment_networks()}) do
    redis.call('PEXPIRE', name, lifetime + KEPT_MS)
end
enrolments_cut(tonumber(ARGV[12]))
return {'ok'}
