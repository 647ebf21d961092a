# Sourced by scripts/bench. What an operation costs Redis, by the number of primaries that share the work, and what a
# large deployment needs by that. CPU time per operation, because so many processes share two cores.
# shellcheck shell=bash disable=SC2154,SC2034 # measure.sh reads the others

GROWTH_STORES=(one c1 c3 c6 r3)
GROWTH_KEYS=${GROWTH_KEYS:-100000}
GROWTH_CHANGES=512 # creations, and revocations with few nodes and with many
GROWTH_NODES=5     # many
GROWTH_PAUSE_MS=20 # of a connection before each check
GROWTH_COLUMNS=(heartbeat use read create revoke revoke_many acknowledge)
store_label[c1]='1 primary' store_label[c3]='3 primaries' store_label[c6]='6 primaries'
store_label[r3]='3 primaries, a replica each'
declare -A key_bytes=() # STORE: of Redis memory

start_growth_store() {
    local memory
    case $1 in
        one) start_store one 0 1 ;;
        c1) start_store c1 1 16 ;;
        c3) start_store c3 3 16 ;;
        c6) start_store c6 6 16 ;;
        r3) start_store r3 3 16 1 ;;
    esac
    memory=$(stores_memory)
    store_keys "$GROWTH_KEYS" "$dir/$1.all"
    key_bytes[$1]=$((($(stores_memory) - memory) / GROWTH_KEYS))
    shuf -n "$keys" "$dir/$1.all" >"$dir/$1.keys"
}
stores_memory() { each_redis info memory | awk -F: '/^used_memory:/ {sum += $2} END {printf "%d", sum}'; }
# spend BASE_US_PER_S COMMAND…: sets $spent_us, the CPU time that Redis took for it, less what it takes anyway.
spend() {
    local base=$1 before began
    shift
    before=$(redis_cpu_ns) began=$(now_ms)
    "$@"
    spent_us=$(awk -v ns=$(($(redis_cpu_ns) - before)) -v ms=$(($(now_ms) - began)) -v base="$base" \
        'BEGIN {print ns / 1000 - base * ms / 1000}')
}
per_operation() { awk -v us="$spent_us" -v n="$1" 'BEGIN {printf "%.2f", us / n}'; } # COUNT
idle_us() {                                                                          # COLUMN NODE…: see idle
    local column=$1
    shift
    rm -f "$dir/idle.now"
    idle "$dir/idle.now" "$((2 * each))" "$@"
    cut -d' ' -f"$column" "$dir/idle.now"
}
check_slowly() { # NAME: sets $requests. Each key is used at most once a second, so each check is a use to be written.
    BENCH_DELAY_MS=$GROWTH_PAUSE_MS load "$1" "$each"
    sleep 2
}
change_keys() { # STATUS LINES RESULT: at the first node
    "$build/test/bench/bench_change" 0 "$(port_of "${url_of[$store.1]}")" <"$2" >"$3"
    judge_changes "$1" "$3"
}
# "id manager" a line of the keys that were created for the managers in LINES.
created_lines() { paste -d' ' <(cut -d' ' -f2 "$2") <(cut -d' ' -f2 "$1"); } # LINES RESULT
creation_lines() { cut -d' ' -f2 "$dir/$store.accounts" | sed 's/^/- /' | awk -v n="$GROWTH_CHANGES" '{line[NR] = $0} END {for (i = 0; i < n; i++) print line[i % NR + 1]}'; }
# create_and_revoke BASE: sets $create_us and $revoke_us, per operation.
create_and_revoke() {
    creation_lines >"$dir/creations"
    spend "$1" change_keys 201 "$dir/creations" "$dir/created"
    create_us=$(per_operation "$GROWTH_CHANGES")
    created_lines "$dir/creations" "$dir/created" >"$dir/doomed"
    spend "$1" change_keys 200 "$dir/doomed" "$dir/revoked"
    revoke_us=$(per_operation "$GROWTH_CHANGES")
}
# grow STORE: appends a line of GROWTH_COLUMNS to $dir/growth.STORE.
grow() {
    local base one many number nodes=() requests use read create_us revoke_us create first_us heartbeat sent spent_us
    use_store "$1"
    base=$(idle_us 1)
    store_node "$store.1" "$lease_ms" taskset -c 0
    nodes=("$node_pid") keys_of[$store.1]=$dir/$store.keys
    check_once "$store.1"
    sleep 3
    one=$(idle_us 1 "${nodes[@]}")
    sent=$(cut -d' ' -f3 "$dir/idle.now")
    heartbeat=$(awk -v us="$one" -v base="$base" -v sent="$sent" 'BEGIN {printf "%.2f", (us - base) / sent}')
    spend "$one" check_slowly "$store.1"
    use=$(per_operation "$requests")
    create_and_revoke "$one"
    create=$create_us first_us=$revoke_us
    for number in $(seq 2 "$GROWTH_NODES"); do
        store_node "$store.$number" "$lease_ms" taskset -c 0
        nodes+=("$node_pid")
    done
    sleep 3
    many=$(idle_us 1 "${nodes[@]}")
    create_and_revoke "$many"
    stop_servers
    CHATELAINE_CACHE_ENTRIES=$CACHE_ENTRIES_MIN store_node "$store.1" "$lease_ms" taskset -c 0
    keys_of[$store.1]=$dir/$store.keys
    sleep 3
    spend "$one" check_slowly "$store.1"
    read=$(awk -v all="$(per_operation "$requests")" -v use="$use" 'BEGIN {printf "%.2f", all - use}')
    stop_servers
    echo "$heartbeat $use $read $create $first_us $revoke_us" \
        "$(awk -v many="$revoke_us" -v one="$first_us" -v others=$((GROWTH_NODES - 1)) 'BEGIN {printf "%.2f", (many - one) / others}')" \
        >>"$dir/growth.$store"
    say "$store: ${GROWTH_COLUMNS[*]}: $(tail -n 1 "$dir/growth.$store")"
}
# growth_median STORE COLUMN'S NAME
growth_median() {
    local column
    for column in "${!GROWTH_COLUMNS[@]}"; do
        [ "${GROWTH_COLUMNS[column]}" != "$2" ] || cut -d' ' -f$((column + 1)) "$dir/growth.$1" | median
    done
}
growth_spread() { # STORE COLUMN: "lowest to highest"
    local column
    for column in "${!GROWTH_COLUMNS[@]}"; do
        [ "${GROWTH_COLUMNS[column]}" != "$2" ] || cut -d' ' -f$((column + 1)) "$dir/growth.$1" | sort -g | sed -n '1p;$p' | paste -sd'-'
    done
}
growth_table() {
    local store column
    local -A what=([heartbeat]='heartbeat of a partition' [use]='use, written within a second'
        [read]='check that reads Redis' [create]='key that is created' [revoke]='revocation, 1 node'
        [revoke_many]="revocation, $GROWTH_NODES nodes" [acknowledge]='the same, for each further node')
    printf '\n| CPU of all primaries together, µs, medians of %s rounds (lowest-highest) |' "$rounds"
    for store in "${GROWTH_STORES[@]}"; do printf ' %s |' "${store_label[$store]}"; done
    printf '\n|---|%s\n' "$(printf -- '---|%.0s' "${GROWTH_STORES[@]}")"
    for column in "${GROWTH_COLUMNS[@]}"; do
        printf '| %s |' "${what[$column]}"
        for store in "${GROWTH_STORES[@]}"; do
            printf ' %.1f (%s) |' "$(growth_median "$store" "$column")" "$(growth_spread "$store" "$column")"
        done
        printf '\n'
    done
    printf '| memory of a key, never used, bytes |'
    for store in "${GROWTH_STORES[@]}"; do printf ' %s |' "${key_bytes[$store]}"; done
    printf '\n'
}
# What NODES nodes and KEYS keys need, by the costs of a store.
growth_needs() { # STORE
    awk -v nodes=100 -v keys=100000000 -v partitions=16 -v lease_s="$(awk -v ms="$lease_ms" 'BEGIN {print ms / 1000}')" \
        -v heartbeat="$(growth_median "$1" heartbeat)" -v use="$(growth_median "$1" use)" -v read="$(growth_median "$1" read)" \
        -v create="$(growth_median "$1" create)" -v revoke="$(growth_median "$1" revoke)" \
        -v acknowledge="$(growth_median "$1" acknowledge)" -v bytes="${key_bytes[$1]}" -v used=162 -v day=84 '
    function row(what, formula, unit, value,    at) {
        printf "| %s | %s |", what, formula
        for (at = 1; at <= count; at++) { M = primaries[at]; printf " " unit " |", value_of(value) }
        printf "\n"
    }
    function free() { return 1e6 * M - beats * heartbeat } # us a second that all primaries have left
    function value_of(name) {
        if (name == "memory") return keys * bytes / M / 1e9
        if (name == "tenth") return keys * (bytes + used + 39 * day) / M / 1e9
        if (name == "beats") return beats / M
        if (name == "share") return beats * heartbeat / M / 1e4
        if (name == "one") return (revoke + (nodes - 1) * acknowledge) / 1000
        if (name == "free") return free() / 1e6
        if (name == "revocations") return 0.5 * free() / (revoke + (nodes - 1) * acknowledge)
        if (name == "creations") return 0.5 * free() / create
        if (name == "uses") return 0.5 * free() / use
        if (name == "reads") return 0.5 * free() / read
    }
    BEGIN {
        count = split("3 6 16", primaries, " ")
        beats = nodes * partitions * 4 / lease_s
        printf "\n| %d nodes, %d million keys, %d partitions | formula | 3 primaries | 6 primaries | 16 primaries |\n|---|---|---|---|---|\n", nodes, keys / 1e6, partitions
        row("memory of a primary, keys never used", "K m / M", "%.0f GB", "memory")
        row("the same, each key used on one day in ten", "K (m + 162 B + 39 × 84 B) / M", "%.0f GB", "tenth")
        row("heartbeats per second at a primary", "4 N P / (L M)", "%.0f", "beats")
        row("their share of a core there", "4 N P h / (L M)", "%.1f %%", "share")
        row("one revocation, at its primary", "r + (N - 1) a", "%.1f ms of CPU", "one")
        row("f: cores that heartbeats leave free, of all M", "M - 4 N P h / L", "%.1f", "free")
        row("half of f is enough for: revocations/s", "f / (2 (r + (N - 1) a))", "%.0f", "revocations")
        row("or keys created/s", "f / (2 c)", "%.0f", "creations")
        row("or different keys used/s", "f / (2 u)", "%.0f", "uses")
        row("or checks that read Redis/s", "f / (2 q)", "%.0f", "reads")
    }'
    printf '\nh %s, u %s, q %s, c %s, r %s, a %s us of CPU and m %s B: %s. L %s ms.\n' "$(growth_median "$1" heartbeat)" \
        "$(growth_median "$1" use)" "$(growth_median "$1" read)" "$(growth_median "$1" create)" \
        "$(growth_median "$1" revoke)" "$(growth_median "$1" acknowledge)" "${key_bytes[$1]}" "${store_label[$1]}" "$lease_ms"
}
bench_growth() {
    local store
    for store in "${GROWTH_STORES[@]}"; do start_growth_store "$store"; done
    in_rounds "$rounds" grow "${GROWTH_STORES[@]}"
    growth_table
    growth_needs c6
    for store in "${GROWTH_STORES[@]}"; do stop_store "$store"; done
}
