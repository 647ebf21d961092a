# Sourced by scripts/gateways: what nginx with the module decides by the table of the first node. Each answer says in
# Checked-By by whom its request was checked.
# shellcheck shell=bash

checked_by() { sed -n 's/\r$//; s/^Checked-By: //p' "$dir/head"; }
# The module may decide about a request of the table of requests: it is plain, and its row has a scope.
is_for_table() { # REQUEST HEADERS VERDICT
    [[ $1 =~ ^((GET|HEAD|POST|PUT|PATCH|DELETE)\ /v1/(patients|exchanges|sandbox)|POST\ /v1/documents)(/[A-Za-z0-9]+)*/?(\?[^\ ]*)?$ ]] &&
        [[ $2 == *'Authorization: '[Bb]earer* && $2 != *Authorization:*Authorization:* && $2 != *Cookie:* && $3 == 200* ]]
}
# look_at_hits GATEWAY: every request again, until the key is in the table: with the same answer. Others never.
look_at_hits() {
    local title request headers body verdict is_hit hits=0 others=0 attempt answer
    while IFS='|' read -r title request headers body verdict; do
        [[ -n $title && $title != \#* ]] || continue
        trim title request headers body verdict
        is_hit=false
        ! is_for_table "$request" "$headers" "$verdict" || is_hit=true
        fill_in request headers verdict
        for ((attempt = 1; attempt <= 1000; attempt++)); do
            send_line "$1" "$title" "$request" "$headers" "$body"
            judge "$1, attempt $attempt: $title" "$verdict"
            answer_line "$title"
            [ "${answer_of[$1, $title]-}" = "$answer" ] ||
                fail "$1: $title: answered otherwise when it was checked by the $(checked_by)"
            $is_hit && [ "$(checked_by)" != table ] || break
            sleep 0.02
        done
        if $is_hit; then
            [ "$(checked_by)" = table ] || fail "$1: $title: not decided by the table"
            hits=$((hits + 1))
        else
            [ "$(checked_by)" != table ] || fail "$1: $title: decided by the table"
            others=$((others + 1))
        fi
    done <test/gateways/requests.table
    say "$1: $hits kinds of requests were decided by the table, $others by nodes"
    [ "$hits" -gt 20 ] || fail "$1: only $hits kinds of requests were decided by the table"
}
# await_hit GATEWAY SECRET: the gateway has a table, and in it that key.
await_hit() {
    local attempt
    [ "$1" = nginx-module ] || return 0
    for attempt in $(seq 3000); do
        http GET /v1/patients/1 -H "Authorization: Bearer $2" >/dev/null
        judge "$1: awaiting the table, request $attempt" '200 mode=live'
        [ "$(checked_by)" != table ] || return 0
        sleep 0.02
    done
    fail "$1: the table does not decide"
}
# no_hit GATEWAY SECRET: node 1 has ended, and its table with it.
no_hit() {
    [ "$1" = nginx-module ] || return 0
    http GET /v1/patients/1 -H "Authorization: Bearer $2" >/dev/null
    judge "$1: without a table" '200 mode=live'
    [ "$(checked_by)" = node ] || fail "$1: decided by the table of a node that has ended"
}
# No worker has crashed, and no sanitizer has found anything. nginx turns its standard error to its log.
look_at_workers() { # GATEWAY
    ! grep -aE -A 20 -m 1 'Sanitizer|runtime error:|exited on signal|exited with code [^0]' "$dir/$1/error" "$dir/$1.log" >&2 ||
        fail "$1: a worker has ended"
}
