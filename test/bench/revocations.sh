# Sourced by scripts/bench. Here nodes, Redis and clients run on whichever core is free.
# shellcheck shell=bash disable=SC2154

CONNECTIONS_PER_NODE=4
BESIDE_PAUSE_MS=10 # before each check: at most 400 checks a second and node

# revocations_with NODES LEASE_MS: one row. Each deployment is new, for a revoker heeds leases that were ever held there.
revocations_with() {
    local count=$1 lease=$2 ports=() server load_pid mode=cached
    [ "$lease" != 0 ] || mode=strict
    deployment "revocations-$count-$mode" "$mode-$count-1" "$lease"
    for server in $(seq 2 "$count"); do node "$mode-$count-$server" "$lease"; done
    for server in "${url_of[@]}"; do ports+=("$(port_of "$server")"); done
    make_keys 1000 "$dir/keys"
    make_keys "$revocations" "$dir/doomed"

    BENCH_PORTS="${ports[*]}" BENCH_DELAY_MS=$BESIDE_PAUSE_MS wrk -t"$count" -c$((count * CONNECTIONS_PER_NODE)) -d3600 \
        -s test/bench/check.lua "$url" -- "$dir/keys" >"$dir/load.out" &
    load_pid=$!
    pids+=("$load_pid")
    sleep "$each"
    BENCH_BEARER=$first "$build/test/bench/bench_change" 0 "${ports[@]}" <"$dir/doomed.ids" >"$dir/revoked"
    kill -INT "$load_pid"
    forget "$load_pid"
    judge_changes 200 "$dir/revoked"
    ! grep -q Non-2xx "$dir/load.out" || die "checks were refused: $(grep Non-2xx "$dir/load.out")"
    printf '| %s %s nodes | %s | %.0f |\n' "$count" "$mode" "$(cut -d' ' -f1 "$dir/revoked" | percentiles)" \
        "$(awk '/Requests\/sec/ {print $2}' "$dir/load.out")"
    stop_servers
}
bench_revocations() {
    local count lease
    printf '\n| %s DELETEs one after the other, each at a random node, lease %s ms | p50 us | p99 us | max us | checks/s meanwhile |\n' \
        "$revocations" "$lease_ms"
    printf '|---|---|---|---|---|\n'
    for count in 3 16; do
        for lease in 0 "$lease_ms"; do revocations_with "$count" "$lease"; done
    done
}
