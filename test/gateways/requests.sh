# Sourced by scripts/gateways: the credentials and the table of requests (requests.table).
# shellcheck shell=bash

declare -A value=([ORIGIN]=https://console.test [CODE]=BCDF-GHJK)
make_key() { # NAME JSON: by the first node
    http POST /v1/api_keys -H "Authorization: Bearer $first" -H 'Content-Type: application/json' -d "$2" >/dev/null
    expect 201 "making the key $1"
    value[$1]=$(jq -r .secret "$dir/body") value[$1_ID]=$(jq -r .id "$dir/body")
}
make_credentials() {
    value[ACCOUNT]=$account
    sign_in
    step_up
    first_key
    value[STEPPED]=$cookie value[STEPPED_CSRF]=$csrf
    sign_in 'now + 30 seconds'
    value[SESSION]=$cookie value[CSRF]=$csrf
    make_key LIVE '{"name":"live","mode":"live"}'
    make_key TEST '{"name":"test","mode":"test"}'
    make_key READ '{"name":"read","mode":"live","scopes":["patients:read"]}'
    make_key REVOKED '{"name":"revoked","mode":"live"}'
    http DELETE "/v1/api_keys/${value[REVOKED_ID]}" -H "Authorization: Bearer $first" >/dev/null
    expect 200 'revoking a key'
}

trim() {
    local text=$1
    text=${text#"${text%%[! ]*}"}
    echo "${text%"${text##*[! ]}"}"
}
fill_in() { # TEXT: with the values of ${NAME}
    local text=$1 key
    for key in "${!value[@]}"; do text=${text//"\${$key}"/${value[$key]}}; done
    echo "$text"
}
# What must not differ between gateways. Usage does: it counts these very requests, and midnight may come between them.
essence() {
    local varying='.last_used_at, .idle_expires_at, .from, .to, (.. | objects | .requests, .billable, .refused)'
    if [ "$(<"$dir/status")" = 200 ]; then
        jq -cS "del($varying)" "$dir/body" 2>/dev/null || cat "$dir/body"
    else jq -cS '.error | del(.request_id, .message)' "$dir/body" 2>/dev/null || cat "$dir/body"; fi
    sed -n 's/\r$//; s/^[Ww][Ww][Ww]-[Aa]uthenticate: /WWW-Authenticate: /p; s/^[Aa]llow: /Allow: /p' "$dir/head"
}
send_line() { # GATEWAY TITLE REQUEST HEADERS BODY
    local method target header headers arguments=(--path-as-is --max-time 20)
    read -r method target <<<"$3"
    IFS=';' read -ra headers <<<"$4"
    for header in "${headers[@]}"; do arguments+=(-H "$(trim "$header")"); done
    [ -z "$5" ] || arguments+=(--data-raw "$5")
    if [ "$method" = HEAD ]; then arguments+=(--head); else arguments+=(-X "$method"); fi
    curl -sS -g -D "$dir/head" -o "$dir/body" -w '%{http_code}' "${arguments[@]}" "${gateway_url[$1]}$target" >"$dir/status" || true
    [ "$method" != HEAD ] || : >"$dir/body"
}
answer_line() { printf '%s: %s %s\n' "$1" "$(<"$dir/status")" "$(essence | tr -d '\0' | tr '\n' ' ')"; } # TITLE
# send_table GATEWAY [PATTERN]: the lines that are like it; the answers go to $dir/answers.GATEWAY.
send_table() {
    local title request headers body verdict count=0
    : >"$dir/answers.$1"
    while IFS='|' read -r title request headers body verdict; do
        [[ -n $title && $title != \#* && "$headers|$verdict" =~ ${2:-} ]] || continue
        title=$(trim "$title") verdict=$(fill_in "$(trim "$verdict")")
        send_line "$1" "$title" "$(fill_in "$(trim "$request")")" "$(fill_in "$(trim "$headers")")" "$(trim "$body")"
        judge "$1: $title" "$verdict"
        answer_line "$title" >>"$dir/answers.$1"
        count=$((count + 1))
    done <test/gateways/requests.table
    say "$1: $count requests sent"
}
same_answers() { # GATEWAY GATEWAY
    cmp -s "$dir/answers.$1" "$dir/answers.$2" || {
        fail "$2 answers otherwise than $1"
        diff "$dir/answers.$1" "$dir/answers.$2" >&2 || true
    }
}

# What a client says of its address is believed by nobody: the audit trail has that of its connection.
look_at_address() { # GATEWAY
    local key told
    url=${gateway_url[$1]}
    http POST /v1/api_keys -H "Authorization: Bearer ${value[LIVE]}" -H 'X-Forwarded-For: 203.0.113.9' \
        -H 'Content-Type: application/json' -d '{"name":"from elsewhere","mode":"test"}' >/dev/null
    expect 201 "$1: making a key"
    key=$(jq -r .id "$dir/body")
    http GET '/v1/console/audit_events?limit=1' -H "Cookie: ${value[SESSION]}" >/dev/null
    told=$(jq -r --arg key "$key" '.data[] | select(.target == $key) | .ip' "$dir/body")
    [ "$told" = 127.0.0.1 ] || fail "$1: the audit trail has the address $told"
}
