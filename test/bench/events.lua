-- Adds events to an account's audit trail, as audit() in the prelude writes them.
-- ARGV: the trail's name in Redis, how many, id of a key...
-- Of ten events, seven are in the class of live keys, and one each in the other classes.

local CLASSES = {'', ':test', ':refused', ':live', ':live', ':live', ':live', ':live', ':live', ':live'}
local TYPES = {[''] = 'session.created', [':refused'] = 'requests.refused'}

local trail, keys = ARGV[1], #ARGV - 2
for i = 1, tonumber(ARGV[2]) do
    local class, key = CLASSES[i % #CLASSES + 1], ARGV[3 + i % keys]
    redis.call('XADD', trail .. class, '*', 'type', TYPES[class] or (i % 2 == 0 and 'api_key.created' or 'api_key.revoked'),
               'actor', ARGV[3 + i * 7 % keys], 'target', key, 'ip', '192.0.2.' .. i % 250,
               'request_id', 'req_' .. key:sub(5))
end
return redis.status_reply('OK')
