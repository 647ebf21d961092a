# Sourced by scripts/gateways: the credentials and the table of requests (requests.table).
# shellcheck shell=bash

declare -A answer_of=() # GATEWAY, TITLE
declare -A value=([ORIGIN]=https://console.test [CODE]=BCDF-GHJK)
printf -v 'value[LONG]' '%015000d' 0
printf -v 'value[FIELDS]' 'X-Field-%d: 1 ; ' {1..105}
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

# trim VARIABLE…, fill_in VARIABLE…: in place, because a process for each of thousands would take most of the time.
trim() {
    local name
    for name; do
        local -n text=$name
        text=${text#"${text%%[! ]*}"}
        text=${text%"${text##*[! ]}"}
    done
}
fill_in() { # with the values of ${NAME}
    local name key
    for name; do
        local -n text=$name
        [[ $text == *'${'* ]] || continue
        for key in "${!value[@]}"; do text=${text//"\${$key}"/${value[$key]}}; done
    done
}
send_line() { # GATEWAY TITLE REQUEST HEADERS BODY
    local method target header headers arguments=(--path-as-is --max-time 20)
    read -r method target <<<"$3"
    IFS=';' read -ra headers <<<"$4"
    for header in "${headers[@]}"; do
        trim header
        arguments+=(-H "$header")
    done
    [ -z "$5" ] || arguments+=(--data-raw "$5")
    if [ "$method" = HEAD ]; then arguments+=(--head); else arguments+=(-X "$method"); fi
    curl -sS -g -D "$dir/head" -o "$dir/body" -w '%{http_code}' "${arguments[@]}" "${gateway_url[$1]}$target" >"$dir/status" || true
    [ "$method" != HEAD ] || : >"$dir/body"
}
# answer_line TITLE: what must not differ between gateways, to $answer. Usage does: it counts these very requests, and
# midnight may come between them.
answer_line() {
    local told status line
    read -r status <"$dir/status" || true
    read_body "essence $status"
    [ "$told" != none ] || told=$(tr -d '\0' <"$dir/body" | tr '\n' ' ')
    answer="$1: $status $told"
    while IFS= read -r line; do
        line=${line%$'\r'}
        case ${line,,} in
            www-authenticate:*) answer+=" WWW-Authenticate:${line#*:}" ;;
            allow:*) answer+=" Allow:${line#*:}" ;;
            x-auth-error:*) answer+=" ${line}" ;;
        esac
    done <"$dir/head"
}
# send_table GATEWAY [PATTERN]: the lines that are like it; the answers go to $dir/answers.GATEWAY.
send_table() {
    local title request headers body verdict answer count=0
    : >"$dir/answers.$1"
    while IFS='|' read -r title request headers body verdict; do
        [[ -n $title && $title != \#* && "$headers|$verdict" =~ ${2:-} ]] || continue
        trim title request headers body verdict
        fill_in request headers verdict
        send_line "$1" "$title" "$request" "$headers" "$body"
        judge "$1: $title" "$verdict"
        [ "${verdict%% *}" != 200 ] || grep -qi '^x-request-id: req_' "$dir/head" || fail "$1: $title: no request id"
        answer_line "$title"
        printf '%s\n' "$answer" >>"$dir/answers.$1"
        answer_of[$1, $title]=$answer
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
