#!lua flags=allow-oom
-- Events that are in no log yet. One node at a time takes over those that nobody will log: made by commands, or older
-- than the age given here, because their node stopped or cannot write. A node also says that it writes its chain, so that
-- it learns if another one does: a copy of its host has a copy of its log.
-- ARGV: prefix, chain (of the asking node; '' for a command, and for a node that cannot write: it takes none), #age (in
--   ms), #most (events), [own (chain of a node), place (where it writes), seq (up to which), was_refused (before, 1 or
--   0)]
-- Returns: ok, number of events, age of the oldest in ms (0: none), number of dropped ones, whether a node writes a log
--   (1 or 0; from 2 on: another one writes this chain, and this one must not, for so many ms if the other has ended), then
--   events as epilogue.lua returns them, each with the chain of its node at the end ('': of a command)

local TAKER_MS = 30000
local WRITER_MS = 35000

local now = now_ms()
local total, oldest = 0, now
local reply = {'ok', 0, 0, tonumber(redis.call('GET', K.log_dropped()) or '0'), exists(K.log_heads()) and 1 or 0}

local function read_copy(copy, values)
    local kept, fields = {}, {}
    for i = 1, 8, 2 do
        kept[values[i]] = values[i + 1]
    end
    for i = 9, #values do
        fields[#fields + 1] = values[i]
    end
    return {kept.account, kept.class, kept.entry, fields, copy, kept.by}
end

-- Once the other one has ended, whoever was refused may write if its log has all that the other published.
local function refuse()
    local writer, head = redis.call('GET', K.log_writer(own)), redis.call('HGET', K.log_heads(), own)
    if writer and writer ~= place
        or was_refused == '1' and head and tonumber(head:match('^%d+ (%d+)') or '0') > tonumber(seq) then
        return writer and redis.call('PTTL', K.log_writer(own)) or 2 * WRITER_MS
    end
    redis.call('SET', K.log_writer(own), place, 'PX', WRITER_MS)
end

local refused_ms = own and refuse()
if refused_ms then
    reply[5] = 2 + refused_ms
end
local taker = redis.call('GET', K.log_taker())
local takes = chain ~= '' and not refused_ms and (not taker or taker == chain)
if takes then
    redis.call('SET', K.log_taker(), chain, 'PX', TAKER_MS)
end
for class = 0, #AUDIT_CLASSES do
    local stream = K.unlogged(AUDIT_CLASSES[class])
    total = total + redis.call('XLEN', stream)
    for _, copy in ipairs(redis.call('XRANGE', stream, '-', '+', 'COUNT', most)) do
        local ms = tonumber(copy[1]:match('^%d+'))
        oldest = math.min(oldest, ms)
        local event = takes and #reply < most + 5 and read_copy(copy[1], copy[2])
        if event and (ms <= now - age or event[6] == '') then
            reply[#reply + 1] = event
        end
    end
end
reply[2], reply[3] = total, now - oldest
return reply
