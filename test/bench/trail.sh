# Sourced by scripts/bench. Reading a long audit trail at one node, while keys are checked there and at others.
# shellcheck shell=bash disable=SC2154

TRAIL_KEYS=1000
TRAIL_PAGED=20000 # events that are read page by page
TRAIL_STEP=10000  # events per script
trail_events=${TRAIL_EVENTS:-1000000}
trail_rate=${TRAIL_RATE:-1000} # checks per second, at each node
trail_servers=(here other strict)

fill_trail() {
    local made ids
    say "making $trail_events events"
    mapfile -t ids <"$dir/keys.ids"
    for ((made = 0; made < trail_events; made += TRAIL_STEP)); do
        redis --eval test/bench/events.lua , "${CHATELAINE_PREFIX}acct:$account:audit" "$TRAIL_STEP" "${ids[@]}" >/dev/null
    done
}
# Gives up after $reading_s seconds, if that is set.
trail_curl() { curl -sS ${reading_s:+--max-time "$reading_s"} -H "Authorization: Bearer $first" "$@"; }
# Each reads the whole trail and prints how many events it got.
read_search() { # nobody is this actor, so each page is a search for the next match
    local after='' page found=0
    while page=$(trail_curl "${url_of[here]}/v1/audit?actor=usr_00000000000000000000000000&limit=100${after:+&starting_after=$after}"); do
        found=$((found + $(jq '.data | length' <<<"$page")))
        after=$(jq -r '.next_starting_after // empty' <<<"$page")
        [ -n "$after" ] || break
    done
    echo "$found"
}
read_pages() {
    local after='' page found=0
    while page=$(trail_curl "${url_of[here]}/v1/audit?limit=100${after:+&starting_after=$after}"); do
        found=$((found + 100))
        after=$(jq -r '.next_starting_after // empty' <<<"$page")
        if [ -z "$after" ] || [ "$found" -ge "$TRAIL_PAGED" ]; then break; fi
    done
    echo "$found"
}
read_csv() { trail_curl -H 'Accept: text/csv' "${url_of[here]}/v1/audit" | wc -l; }
read_ndjson() { trail_curl -H 'Accept: application/x-ndjson' "${url_of[here]}/v1/audit" | wc -l; }
read_all() {
    local reader readers=()
    for reader in read_search read_csv read_ndjson; do
        "$reader" >/dev/null &
        readers+=("$!")
    done
    wait "${readers[@]}"
}
# Checks at each node, at most so many per second. Leaves wrk's reports in $dir/wrk.NODE.
check_all() {
    local server checkers=()
    for server in "${trail_servers[@]}"; do
        BENCH_DELAY_MS=10 "${check_wrk[@]}" -t1 -c$((trail_rate / 100)) -d"$each" --latency "${url_of[$server]}" -- "$dir/keys" \
            >"$dir/wrk.$server" &
        checkers+=("$!")
    done
    wait "${checkers[@]}"
}
latency() { # NODE 50|75|90|99
    to_us "$(awk -v p="$2%" '$1 == p {print $2}' "$dir/wrk.$1")"
}
# trail_row LABEL [READER]: checks while the reader runs, again and again.
trail_row() {
    local server reader='' reading_s=$((each + 1))
    if [ -n "${2:-}" ]; then
        : >"$dir/reading"
        (while [ -e "$dir/reading" ]; do "$2" >/dev/null 2>&1; done) &
        reader=$!
        pids+=("$reader")
        sleep 0.5
    fi
    check_all
    rm -f "$dir/reading"
    [ -z "$reader" ] || forget "$reader"
    printf '| %s |' "$1"
    for server in "${trail_servers[@]}"; do
        judge_refused "$server" "$(awk '/requests in/ {print $1}' "$dir/wrk.$server")" \
            "$(awk '/Non-2xx/ {print $NF}' "$dir/wrk.$server")"
        printf ' %.0f | %s | %s |' "$(awk '/Requests\/sec/ {print $2}' "$dir/wrk.$server")" "$(latency "$server" 50)" \
            "$(latency "$server" 99)"
    done
    printf '\n'
}
scripts_run() { redis info commandstats | tr -d '\r' | sed -n 's/^cmdstat_evalsha:calls=\([0-9]*\),.*/\1/p'; }
script_longest_us() { redis --json slowlog get -1 | jq '[.[] | select(.[3][0] == "EVALSHA")[2]] | max // 0'; }
time_reader() { # LABEL READER
    local from got cpu
    redis config set slowlog-log-slower-than 500 slowlog-max-len 100000 >/dev/null
    redis config resetstat >/dev/null
    redis slowlog reset >/dev/null
    from=$(now_ms) cpu=$(cpu_ns "$redis_pid")
    got=$("$2")
    cpu=$((($(cpu_ns "$redis_pid") - cpu) / $(scripts_run) / 1000))
    printf '| %s | %s | %s | %s | %s |\n' "$1" "$got" \
        "$(awk -v ms=$(($(now_ms) - from)) 'BEGIN {printf "%.1f", ms / 1000}')" "$cpu" "$(script_longest_us)"
}
bench_trail() {
    export CHATELAINE_AUDIT_MAX=$((trail_events * 2))
    export CHATELAINE_REDIS_TIMEOUT_MS=30000 # an export breaks off if Redis does not answer in time
    deployment trail here "$lease_ms" taskset -c 0
    node other "$lease_ms" taskset -c 0
    node strict 0 taskset -c 0
    make_keys "$TRAIL_KEYS" "$dir/keys"
    warm here other strict
    fill_trail
    settle
    printf '\n| while one client reads | checks/s at that node | p50 us | p99 us | at another | p50 us | p99 us | at a strict one | p50 us | p99 us |\n'
    printf '|---|---|---|---|---|---|---|---|---|---|\n'
    trail_row nothing
    trail_row 'a search that finds nothing' read_search
    trail_row 'pages of 100' read_pages
    trail_row CSV read_csv
    trail_row NDJSON read_ndjson
    trail_row 'a search, CSV and NDJSON at once' read_all
    trail_row 'nothing again'
    printf '\n| %s events, read alone | events | s | Redis CPU us per script | longest script us |\n|---|---|---|---|---|\n' "$trail_events"
    time_reader 'a search that finds nothing' read_search
    time_reader 'CSV' read_csv
    time_reader 'NDJSON' read_ndjson
    unset CHATELAINE_AUDIT_MAX CHATELAINE_REDIS_TIMEOUT_MS
}
