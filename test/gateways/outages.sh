# Sourced by scripts/gateways: what a gateway answers by itself, because nobody else can. NAME-nochecks cannot ask any
# node, NAME-catchall asks a server that says 200 to everything, NAME-nobackend has no backend, NAME-small accepts small
# bodies only, and NAME-strict has a list of headers that may pass.
# shellcheck shell=bash

# refused WHERE STATUS CODE: the last answer is that error; a 503 says when to come again.
refused() {
    judge "$1" "$2 $3"
    [ "$2" != 503 ] || grep -qi '^retry-after: [0-9]' "$dir/head" || fail "$1: no Retry-After"
    grep -qi '^content-type: application/json' "$dir/head" || fail "$1: not JSON"
}
with_key() { http "$1" "$2" -H "Authorization: Bearer ${value[LIVE]}" --max-time 60 "${@:3}" >/dev/null || true; }
of_bytes() { head -c "$1" /dev/zero >"$dir/$1.bytes" && echo "@$dir/$1.bytes"; } # NUMBER: for curl

end_copy() { # the gateway that started last
    local pid=${pids[-1]}
    kill "$pid"
    forget "$pid"
}

# aside NAME COMMAND…: beside others, with its own files in $dir/NAME. Caddy looks for a node for 4 s.
aside() {
    local dir=$dir/$1
    mkdir -p "$dir"
    "${@:2}" >/dev/null &
    asides+=("$!")
}
without_checks() { # GATEWAY
    local asides=() name
    start_gateway "$1" nochecks
    url=${gateway_url["$1-nochecks"]}
    aside 'a key' with_key GET /v1/patients/1
    aside DELETE with_key DELETE /v1/patients/1
    aside 'an upload' with_key PUT /v1/patients/1 --data-binary "$(of_bytes 300000)"
    aside 'no key' http GET /v1/patients/1 --max-time 60
    wait "${asides[@]}" || true
    for name in 'a key' DELETE 'an upload' 'no key'; do
        dir=$dir/$name refused "$1, no check, $name" 503 overloaded
    done
    with_key GET /v1/whoami
    judge "$1, no check, a route of our own" "200 id=${value[LIVE_ID]}"
    end_copy
}
with_wrong_checks() { # GATEWAY
    start_gateway "$1" catchall
    url=${gateway_url["$1-catchall"]}
    with_key GET /v1/patients/1
    refused "$1, checks by a backend, a key" 503 overloaded
    http GET /v1/patients/1 >/dev/null
    refused "$1, checks by a backend, no key" 503 overloaded
    http GET /v1/patients/1 -H 'X-Auth-Principal: key_1' -H 'X-Request-Id: req_1' -H 'X-Auth-Account: acct_1' >/dev/null
    refused "$1, checks by a backend, forged" 503 overloaded
    end_copy
}
# Caddy cannot, and the module sets headers that such a list would stop.
with_allow_list() { # GATEWAY
    [[ $1 == nginx || $1 == haproxy ]] || return 0
    start_gateway "$1" strict
    send_table "$1-strict"
    same_answers "$1" "$1-strict"
    end_copy
}
without_backend() { # GATEWAY
    start_gateway "$1" nobackend
    url=${gateway_url["$1-nobackend"]}
    with_key GET /v1/patients/1
    refused "$1, no backend" 503 overloaded
    http GET /v1/patients/1 >/dev/null
    refused "$1, no backend, no key" 401 missing_credentials
    end_copy
}
# Only nginx has such a limit. A backend's may be higher than that of our own routes.
with_limits() { # GATEWAY
    [[ $1 == nginx* ]] || return 0
    start_gateway "$1" small
    url=${gateway_url["$1-small"]}
    with_key PUT /v1/patients/1 --data-binary "$(of_bytes 50000)"
    judge "$1, a body within the backend's limit" '200 content_length=50000'
    with_key PUT /v1/patients/1 --data-binary "$(of_bytes 200000)"
    refused "$1, a body over the limit" 413 body_too_large
    http POST /v1/auth/login -H 'Content-Type: application/json' --data-binary "$(of_bytes 2000)" >/dev/null
    refused "$1, a body over the limit of our own routes" 413 body_too_large
    end_copy
}

# stranger_uploads GATEWAY HEADER: is told so while the gateway waits for the rest of the body in vain.
stranger_uploads() {
    local line=nothing
    exec {held}<>"/dev/tcp/127.0.0.1/${port[$1]}"
    printf 'PUT /v1/patients/1 HTTP/1.1\r\nHost: a.test\r\n%s\r\nContent-Length: 60000000\r\n\r\nx' "$2" >&"$held"
    IFS= read -r -t 30 line <&"$held" || true
    exec {held}>&-
    [[ $line == 'HTTP/1.1 401 '* ]] || fail "$1: an upload without a key ($2) gets ${line%$'\r'}"
}
refusals() { # CODE: that the nodes have counted
    for number in 1 2 3; do curl -sS --max-time 20 "http://$(check_at "$number")/metrics"; done |
        awk -v code="code=\"$1\"" '/^chatelaine_refusals_total/ && index($1, code) {sum += $2} END {print sum + 0}'
}
counts_once() { # GATEWAY CODE METHOD TARGET KEY
    local before
    before=$(refusals "$2")
    http "$3" "$4" -H "Authorization: Bearer $5" >/dev/null
    refused "$1, counting" "$(<"$dir/status")" "$2"
    [ $(($(refusals "$2") - before)) = 1 ] || fail "$1: one refusal ($2) was counted $(($(refusals "$2") - before)) times"
}
look_at_own_answers() { # GATEWAY
    stranger_uploads "$1" 'Accept: */*'
    stranger_uploads "$1" 'Expect: 100-continue'
    url=${gateway_url[$1]}
    counts_once "$1" api_key_revoked GET /v1/patients/1 "${value[REVOKED]}"
    counts_once "$1" insufficient_scope POST /v1/patients "${value[READ]}"
    counts_once "$1" not_found GET /v1/nothing "${value[LIVE]}"
    with_key GET /v1/patients/1 --http1.0 -H 'Host:'
    judge "$1, HTTP/1.0 without Host" '200 mode=live'
    with_key GET /v1/patients/head-6000
    judge "$1, a head of 6 KB from the backend" 200
    with_key GET /v1/patients/head-15000
    judge "$1, a head of 15 KB from the backend" 200
    without_checks "$1"
    with_wrong_checks "$1"
    with_allow_list "$1"
    without_backend "$1"
    with_limits "$1"
}
