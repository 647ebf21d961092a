# Sourced by scripts/bench. One account with many people, all of them owners: what becomes slow, and for how long one
# script keeps Redis from everything else, while checks go on. Nodes, Redis and clients run on whichever core is free.
# shellcheck shell=bash disable=SC2154

PEOPLE_REPEATS=100
PEOPLE_CHECKERS=10 PEOPLE_PAUSE_MS=10 # at most 1,000 checks a second
SLOW_US=100                           # scripts that take less are not looked at

make_people() { # COUNT: their ids to $dir/people, oldest first
    local maker makers=()
    say "making $1 people"
    for maker in $(seq "$MAKERS"); do
        seq "$maker" "$MAKERS" "$1" | CHATELAINE_REDIS_TIMEOUT_MS=30000 "$build/test/bench/bench_records" users "$account" \
            >"$dir/people.$maker" &
        makers+=($!)
    done
    for maker in "${makers[@]}"; do wait "$maker" || die "the people could not be made"; done
    sort "$dir/people".* >"$dir/people"
}
watch_scripts() { redis slowlog reset >/dev/null; }
scripts_us() { redis --json slowlog get -1 | jq '.[] | select(.[3][0] | test("^eval"; "i")) | .[2]' | percentiles; }

# by_owner STATUS METHOD PATH [JSON]: by the owner's session; its milliseconds to $dir/times.
by_owner() {
    local got
    got=$(curl -sS -X "$2" -o "$dir/body" -w '%{http_code} %{time_total}' -H "Origin: $origin" -H "Cookie: $cookie" \
        -H "X-CSRF-Token: $csrf" ${4:+-H 'Content-Type: application/json' -d "$4"} "$url$3")
    [ "${got% *}" = "$1" ] || die "$2 $3: $got $(cat "$dir/body")"
    awk -v s="${got#* }" 'BEGIN {print s * 1000}' >>"$dir/times"
}
by_key() { # PATH
    local got
    got=$(curl -sS -o "$dir/body" -w '%{http_code} %{time_total}' -H "Authorization: Bearer $team_key" "$url$1")
    [ "${got% *}" = 200 ] || die "$1: $got $(cat "$dir/body")"
    awk -v s="${got#* }" 'BEGIN {print s * 1000}' >>"$dir/times"
}
by_command() { # COMMAND…
    local began
    began=$(date +%s%N)
    "$binary" "$@" >"$dir/said" || die "$*: failed"
    echo $((($(date +%s%N) - began) / 1000000)) >>"$dir/times"
}
without_index() { redis del "$1:people" "$1:owners" >/dev/null; } # ACCOUNT'S NAME IN REDIS

# people_row TITLE TIMES FUNCTION…: '%' among the arguments stands for somebody else each time.
people_row() {
    local title=$1 times=$2 words
    shift 2
    : >"$dir/times"
    watch_scripts
    for _ in $(seq "$times"); do
        words=("$@")
        [[ $* != *%* ]] || next_person
        "${words[@]//%/${person:-}}"
    done
    printf '| %s | %s | %s | %s |\n' "$title" "$times" \
        "$(sort -g "$dir/times" | awk '{v[NR] = $1} END {printf "%.1f | %.1f", v[int(NR * 0.5 + 0.5)], v[NR]}')" "$(scripts_us)"
}
next_person() { read -r person <&"$persons"; }

bench_people() {
    local load_pid person='' persons team_key root users=/v1/console/users
    local -x CHATELAINE_PEOPLE_MAX=$((2 * people))
    deployment people people "$lease_ms"
    root=${CHATELAINE_PREFIX}acct:$account
    make_people "$people"
    make_keys 1000 "$dir/keys"
    console POST /v1/console/api_keys '{"name":"team","mode":"live","scopes":["team:manage"]}' >/dev/null
    expect 201 'a key for /v1/team'
    team_key=$(jq -r .secret "$dir/body")
    redis config set slowlog-log-slower-than "$SLOW_US" >/dev/null
    redis config set slowlog-max-len 100000 >/dev/null
    exec {persons}<"$dir/people"
    BENCH_DELAY_MS=$PEOPLE_PAUSE_MS wrk -t1 -c"$PEOPLE_CHECKERS" -d3600 --latency -s test/bench/check.lua "$url" \
        -- "$dir/keys" >"$dir/load.out" &
    load_pid=$!
    pids+=("$load_pid")

    printf '\n| %s people in one account | times | p50 ms | max ms | scripts over %s us: p50 us | p99 us | max us |\n|---|---|---|---|---|---|---|\n' "$people" "$SLOW_US"
    people_row 'console, first page of 100' "$PEOPLE_REPEATS" by_owner 200 GET "$users?limit=100"
    people_row 'console, last page' "$PEOPLE_REPEATS" by_owner 200 GET "$users?limit=100&starting_after=$(sed -n 101p "$dir/people")"
    people_row '/v1/team, first page of 100' "$PEOPLE_REPEATS" by_key '/v1/team?limit=100'
    people_row 'an owner becomes an auditor' "$PEOPLE_REPEATS" by_owner 200 POST "$users/%/role" '{"role":"auditor"}'
    people_row 'an owner is removed' "$PEOPLE_REPEATS" by_owner 200 DELETE "$users/%"
    people_row 'an invitation' "$PEOPLE_REPEATS" by_owner 201 POST /v1/console/invitations '{"email":"%@x.test","role":"auditor"}'
    without_index "$root"
    people_row 'console, first page, without an index' 1 by_owner 200 GET "$users?limit=100"
    without_index "$root"
    people_row 'an owner is removed, without an index' 1 by_owner 200 DELETE "$users/%"
    people_row "\`user list\`" 1 by_command user list --account "$account"
    people_row "\`session list\`" 1 by_command session list --account "$account"
    people_row "\`account export\`" 1 by_command account export "$account"
    kill -INT "$load_pid"
    forget "$load_pid"
    exec {persons}<&-
    ! grep -q Non-2xx "$dir/load.out" || die "checks were refused: $(grep Non-2xx "$dir/load.out")"
    printf '\nMeanwhile: %s checks/s, p99 %s.\n' "$(awk '/Requests\/sec/ {print $2}' "$dir/load.out")" \
        "$(awk '/ 99%/ {print $2}' "$dir/load.out")"
}
