-- Events of an account that are newer than those of all classes which a follower has read, oldest first.
-- ARGV: prefix, account, #most (entries wanted), last_read {people, live, test, refused} (the last entry read of each
--   class; '0-0' for none)
-- A class has its own cursor, because entries of one millisecond may be written after those of another class were read.
-- Returns: ok, events as in event_reply()...

local entries = {}
for class = 0, #AUDIT_CLASSES do
    for _, entry in ipairs(redis.call('XRANGE', K.audit(account, AUDIT_CLASSES[class]), '(' .. last_read[class + 1], '+',
                                      'COUNT', most)) do
        local ms, sequence = entry[1]:match('^(%d+)-(%d+)$')
        entries[#entries + 1] = {ms = tonumber(ms), number = event_number(class, sequence), entry = entry, class = class}
    end
end
table.sort(entries, function(a, b)
    if a.ms ~= b.ms then
        return a.ms < b.ms
    end
    return a.number < b.number
end)

local reply, names = {'ok'}, {}
for i = 1, math.min(most, #entries) do
    reply[i + 1] = event_reply(account, entries[i].class, entries[i].entry, names)
end
return reply
