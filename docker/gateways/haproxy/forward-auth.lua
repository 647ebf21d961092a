-- The action forward_auth: asks a node whether a request may pass (route /check/forward-auth of the internal listener).
-- Only a node's 200 means yes, with whom it accepts, or that it lets everybody pass: its X-Auth-* headers are then set on
-- the request. Anything else, including no response, ends the request with the node's status, body and headers.

-- The listener in haproxy.cfg that distributes checks over the nodes.
local CHECKS = "abns@chatelaine-checks"
local URL = "http://checks/check/forward-auth"

-- The headers that a node needs. All lines of each, so that a request with two Authorization headers is refused.
local ASKED = {"authorization", "cookie", "origin", "access-control-request-method", "x-csrf-token", "x-forwarded-for",
               "x-request-id"}
-- The headers that a backend gets.
local TOLD = {"x-auth-account", "x-auth-principal", "x-auth-kind", "x-auth-mode", "x-auth-role", "x-auth-scopes",
              "x-auth-billable", "x-request-id"}
-- The headers that a refused client gets.
local ANSWERED = {"content-type", "cache-control", "www-authenticate", "retry-after", "allow", "x-request-id",
                  "x-content-type-options", "referrer-policy", "content-security-policy", "strict-transport-security"}

local UNAVAILABLE = '{"error":{"type":"api_error","code":"overloaded",' ..
                    '"message":"No server can take this request at the moment.",' ..
                    '"doc_url":"/docs/errors#overloaded"}}\n'

-- HAProxy counts the lines of a header from 0, a Lua list from 1.
local function lines_of(headers, name)
    local found = headers[name]
    if found == nil then
        return nil
    end
    local lines = {}
    for i = 0, #found do
        lines[i + 1] = found[i]
    end
    return lines
end

local function question(txn)
    local sent = txn.http:req_get_headers()
    local headers = {}
    for _, name in ipairs(ASKED) do
        headers[name] = lines_of(sent, name)
    end
    headers["x-forwarded-method"] = {txn.sf:method()}
    headers["x-forwarded-uri"] = {txn.sf:pathq()}
    return headers
end

local function refuse(txn, status, headers, body)
    local is_head = txn.sf:method() == "HEAD"
    txn:done(txn:reply{status = status, headers = headers, body = is_head and "" or body})
end

-- Anybody can say 200: an error page, a backend at a node's address. A node says either whom it accepts, or "none".
local function is_accepted(answer)
    local function first(name)
        return answer.headers[name] and answer.headers[name][0] or ""
    end
    local is_anybody, has_principal = first("x-auth-kind") == "none", first("x-auth-principal") ~= ""
    return answer.status == 200 and is_anybody ~= has_principal and first("x-request-id"):find("^req_") ~= nil
end

local function ask(txn)
    return core.httpclient():get{url = URL, dst = CHECKS, headers = question(txn)}
end

local function forward_auth(txn)
    local answer = ask(txn)
    -- The sidecar drains, or cannot know. HAProxy has repeated the check at the same server, because the others are only
    -- its backups; this last answer marks it down. If all answer 503, so does the next one.
    if answer and answer.status == 503 then
        answer = ask(txn)
    end
    local got = answer and answer.headers or {}

    if answer and is_accepted(answer) then
        for _, name in ipairs(TOLD) do
            local lines = lines_of(got, name)
            if lines then
                txn.http:req_set_header(name, lines[1])
            end
        end
        return
    end
    -- No response has status 0. Any other below 400 cannot come from a node.
    if not answer or answer.status < 400 then
        refuse(txn, 503, {["content-type"] = {"application/json"}, ["retry-after"] = {"1"}}, UNAVAILABLE)
        return
    end
    local headers = {}
    for _, name in ipairs(ANSWERED) do
        headers[name] = lines_of(got, name)
    end
    refuse(txn, answer.status, headers, answer.body)
end

core.register_action("forward_auth", {"http-req"}, forward_auth, 0)
