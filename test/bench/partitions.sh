# Sourced by scripts/bench. What partitions cost a node and Redis: one partition in one Redis, 16 there, and 16 in a
# cluster of three primaries.
# shellcheck shell=bash disable=SC2154,SC2034 # measure.sh reads the others

PARTITION_STORES=(one spread cluster)
REVOCATION_STORES=(one cluster replicated)
declare -A store_label=([one]='one Redis, 1 partition' [spread]='one Redis, 16 partitions'
    [cluster]='cluster of three, 16 partitions' [replicated]='the same, a replica each, `--min-replicas 1`')
IDLE_NODES='0 1 3'
IDLE_ROUNDS=3
CACHE_ENTRIES_MIN=64 # so that nearly every check of many keys in turn reads Redis, as a strict node's, which no cluster allows
PAIRED_BLOCK=50      # revocations in one store before it may be the other's turn

start_partition_stores() { # STORE…: of PARTITION_STORES
    local store
    for store; do
        case $store in
            one) start_store one 0 1 ;;
            spread) start_store spread 0 16 ;;
            cluster) start_store cluster 3 16 ;;
            replicated) start_store replicated 3 16 1 ;;
        esac
    done
}
# check_once NAME: so that its node has answered each key.
check_once() {
    BENCH_ONCE=1 "${check_wrk[@]}" -t1 -c"$connections" -d600 "${url_of[$1]}" -- "${keys_of[$1]}" >/dev/null
}

# --- checks ----------------------------------------------------------------------------------------------------------

# measure_row STORE.MODE: with a node of its own, on core 0.
measure_row() {
    local row=$1
    local -x CHATELAINE_CACHE_ENTRIES=1000000
    [ "${row#*.}" = cached ] || CHATELAINE_CACHE_ENTRIES=$CACHE_ENTRIES_MIN
    use_store "${row%.*}"
    store_node "$row" "$lease_ms" taskset -c 0
    keys_of[$row]=$dir/${row%.*}.keys
    check_once "$row"
    measure "$row"
    stop_node "${pid_of[$row]}"
    unset "pid_of[$row]"
}
partition_checks() {
    local row store mode rows=()
    for store in "${PARTITION_STORES[@]}"; do
        use_store "$store"
        store_keys "$keys" "$dir/$store.keys"
        for mode in cached read; do rows+=("$store.$mode"); done
    done
    in_rounds "$rounds" measure_row "${rows[@]}"
    printf '\n| %s keys, %s connections, medians of %s rounds of %s s | CPU us/check | to the first | checks/s | to the first | p50 us | p99 us | Redis CPU us/check |\n' \
        "$keys" "$connections" "$rounds" "$each"
    printf '|---|---|---|---|---|---|---|---|\n'
    for mode in cached read; do
        for store in "${PARTITION_STORES[@]}"; do
            row=$store.$mode
            printf '| %s, %s | %s | %.3f | %.0f | %.3f | %s | %s | %s |\n' "$mode" "${store_label[$store]}" \
                "$(column_median "$row" 1)" "$(ratio_of "$row" "one.$mode")" "$(column_median "$row" 2)" \
                "$(ratio_of "$row" "one.$mode" 2)" "$(column_median "$row" 3)" "$(column_median "$row" 4)" "$(column_median "$row" 5)"
        done
    done
}

# --- heartbeats ------------------------------------------------------------------------------------------------------

heartbeats_sent() { each_redis info commandstats | awk -F '[=,]' '/^cmdstat_s?publish:/ {sum += $2} END {print sum + 0}'; }
# idle FILE SECONDS PID…: appends "CPU of Redis, CPU of these nodes each, heartbeats", in us and a second.
idle() {
    local file=$1 seconds=$2 began nodes redis_ns sent
    shift 2
    redis_ns=$(redis_cpu_ns) sent=$(heartbeats_sent) began=$(now_ms) nodes=$(cpu_ns "$@")
    sleep "$seconds"
    nodes=$(($(cpu_ns "$@") - nodes))
    awk -v ms=$(($(now_ms) - began)) -v redis=$(($(redis_cpu_ns) - redis_ns)) -v nodes="$nodes" -v count=$# \
        -v sent=$(($(heartbeats_sent) - sent)) \
        'BEGIN {printf "%.1f %.1f %.1f\n", redis / ms, count ? nodes / ms / count : 0, sent * 1000 / ms}' >>"$file"
}
idle_median() { cut -d' ' -f"$2" "$dir/idle.$1" | median; } # STORE.NODES COLUMN
# idle_row STORE.NODES
idle_row() {
    local row=$1 nodes=() pid
    use_store "${row%.*}"
    while [ ${#nodes[@]} -lt "${row#*.}" ]; do
        store_node "$store.idle" "$lease_ms" taskset -c 0
        nodes+=("$node_pid")
    done
    unset "pid_of[$store.idle]"
    sleep 3
    idle "$dir/idle.$row" "$((2 * each))" "${nodes[@]}"
    for pid in "${nodes[@]}"; do stop_node "$pid"; done
}
partition_heartbeats() {
    local store count rows=()
    for store in "${PARTITION_STORES[@]}"; do
        for count in $IDLE_NODES; do rows+=("$store.$count"); done
    done
    say 'idle nodes'
    in_rounds "$IDLE_ROUNDS" idle_row "${rows[@]}"
    printf '\n| nothing but heartbeats, lease %s ms, medians of %s rounds of %s s | nodes | heartbeats/s | CPU of a node, ms/s | CPU of Redis, ms/s | us per heartbeat: node | Redis |\n' \
        "$lease_ms" "$IDLE_ROUNDS" "$((2 * each))"
    printf '|---|---|---|---|---|---|---|\n'
    for store in "${PARTITION_STORES[@]}"; do
        for count in $IDLE_NODES; do
            awk -v label="${store_label[$store]}" -v count="$count" -v redis="$(idle_median "$store.$count" 1)" \
                -v node="$(idle_median "$store.$count" 2)" -v sent="$(idle_median "$store.$count" 3)" \
                -v base="$(idle_median "$store.0" 1)" 'BEGIN {
                printf "| %s | %d | %.0f | %s | %.2f | ", label, count, sent, count ? sprintf("%.2f", node / 1000) : "", redis / 1000
                if (count) printf "%.0f | %.0f |\n", node * count / sent, (redis - base) / sent; else print "| |"}'
        done
    done
}

# --- revocations -----------------------------------------------------------------------------------------------------

# revoke_block STORE NUMBER: the keys of that block of $dir/STORE.doomed.lines. Times go to $dir/STORE.revoked.
revoke_block() {
    local ports
    IFS=' ' read -ra ports <<<"${ports_of[$1]}"
    sed -n "$((($2 - 1) * PAIRED_BLOCK + 1)),$(($2 * PAIRED_BLOCK))p" "$dir/$1.doomed.lines" |
        "$build/test/bench/bench_change" 0 "${ports[@]}" >>"$dir/$1.revoked"
}
partition_revocations() {
    local store number block load_pids=() load_pid
    local -A ports_of=()
    for store in "${REVOCATION_STORES[@]}"; do
        use_store "$store"
        store_keys 1000 "$dir/$store.keys"
        store_keys "$revocations" "$dir/$store.doomed"
        for number in 1 2 3; do
            store_node "$store.$number" "$lease_ms"
            ports_of[$store]+="${ports_of[$store]:+ }$(port_of "$url")"
        done
        BENCH_PORTS=${ports_of[$store]} BENCH_DELAY_MS=$BESIDE_PAUSE_MS wrk -t3 -c$((3 * CONNECTIONS_PER_NODE)) -d3600 \
            -s test/bench/check.lua "$url" -- "$dir/$store.keys" >"$dir/$store.load" &
        load_pids+=($!)
        pids+=($!)
    done
    sleep "$each"
    for block in $(seq $((revocations / PAIRED_BLOCK))); do
        for store in $(shuf -e "${REVOCATION_STORES[@]}"); do revoke_block "$store" "$block"; done
    done
    for load_pid in "${load_pids[@]}"; do
        kill -INT "$load_pid"
        forget "$load_pid"
    done
    stop_servers
    printf '\n| %s DELETEs each, one after the other, in turn by %s, each at a random one of 3 nodes, lease %s ms | p50 us | p99 us | max us | checks/s meanwhile |\n' \
        "$((revocations / PAIRED_BLOCK * PAIRED_BLOCK))" "$PAIRED_BLOCK" "$lease_ms"
    printf '|---|---|---|---|---|\n'
    for store in "${REVOCATION_STORES[@]}"; do
        judge_changes 200 "$dir/$store.revoked"
        ! grep -q Non-2xx "$dir/$store.load" || die "checks were refused: $(grep Non-2xx "$dir/$store.load")"
        printf '| %s | %s | %.0f |\n' "${store_label[$store]}" "$(cut -d' ' -f1 "$dir/$store.revoked" | percentiles)" \
            "$(awk '/Requests\/sec/ {print $2}' "$dir/$store.load")"
    done
}
bench_partitions() {
    local store
    start_partition_stores "${PARTITION_STORES[@]}"
    partition_checks
    partition_heartbeats
    start_partition_stores replicated
    partition_revocations
    for store in "${!servers_of[@]}"; do stop_store "$store"; done
}
