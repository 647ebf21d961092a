-- GET /v1/whoami with one key after the other, in a scattered order, all requests formatted beforehand. The argument is
-- the file of secrets. In the environment, where empty is as good as not there:
--   BENCH_PATH      another path
--   BENCH_CHECKED   the path of another request, which nginx' auth_request would ask about
--   BENCH_ONCE      ends wrk, without its report, when each key was sent and answered once
--   BENCH_COUNT     ends wrk, without its report, when exactly so many requests were sent and answered; with status 1
--                   if one was refused
--   BENCH_PORTS     "1234 5678": a thread each checks at a port each, instead of all at the address that wrk was given
--   BENCH_DELAY_MS  each connection pauses so long before each request

local IN_FLIGHT = 1000 -- at most
local STRIDE = 7919 -- a prime: neighbours in the file, neighbours in Redis' memory, do not come together
local function setting(name)
  local value = os.getenv(name)
  return value ~= "" and value or nil
end
local once, delay_ms = setting("BENCH_ONCE"), setting("BENCH_DELAY_MS")
local requests, count, at, sent = {}, 0, 0, 0

if setting("BENCH_PORTS") then
  local next_port = setting("BENCH_PORTS"):gmatch("%d+")
  function setup(thread) thread.addr = wrk.lookup("127.0.0.1", next_port())[1] end
end

function init(args)
  -- Always in one order, which is nginx's: that of wrk.format() differs from run to run, and with it the cost.
  local checked = setting("BENCH_CHECKED")
  local before = "GET " .. (setting("BENCH_PATH") or "/v1/whoami") .. " HTTP/1.1\r\n" ..
    (checked and "X-Original-Method: GET\r\nX-Original-URI: " .. checked .. "\r\n" or "") ..
    "Host: " .. wrk.headers["Host"] .. "\r\nAuthorization: Bearer "
  for secret in io.lines(args[1]) do
    count = count + 1
    requests[count] = before .. secret .. "\r\n\r\n"
  end
  math.randomseed(os.time())
  at = math.random(0, count - 1)
end

function request()
  at = (at + STRIDE) % count
  sent = sent + 1
  if once and sent > count + IN_FLIGHT then os.exit(0) end
  return requests[at + 1]
end

local asked_for = tonumber(setting("BENCH_COUNT"))
if asked_for then
  local begun, answered = 0, 0
  function delay() -- comes before each request: nobody sends one more than were asked for
    begun = begun + 1
    return begun > asked_for and 3600000 or 0
  end
  function response(status)
    answered = answered + 1
    if status ~= 200 then os.exit(1) end
    if answered == asked_for then os.exit(0) end
  end
elseif delay_ms then
  function delay() return tonumber(delay_ms) end
end
