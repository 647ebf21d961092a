# Sourced by scripts/bench. Nodes, Redis and clients run on whichever core is free.
# shellcheck shell=bash disable=SC2154

read -ra GROUPS_NODES <<<"${GROUPS_NODES:-1 3 100 1000}"
GROUPS_AT_ONCE=(1 16 1000)
GROUPS_KEYS=(300 4000 20000) # for each; some are left if the time ends before
GROUPS_SECONDS=10

# peers COUNT: that many nodes beside the real one, which only listen and acknowledge. Sets peers_pid.
peers() {
    mkfifo "$dir/peers"
    "$build/test/bench/bench_peers" "$dir/redis.sock" "$CHATELAINE_PREFIX" "$1" "$lease_ms" >"$dir/peers" &
    peers_pid=$!
    pids+=("$peers_pid")
    read -r _ <"$dir/peers"
    rm "$dir/peers"
}
# groups_row PROGRAM NODES: revokes alone, and so many at once.
groups_row() {
    local what=$1 nodes=$2 i before elapsed done_count
    for i in "${!GROUPS_AT_ONCE[@]}"; do
        make_keys "${GROUPS_KEYS[i]}" "$dir/doomed"
        before=$(cpu_ns "$redis_pid")
        BENCH_BEARER=$first "$build/test/bench/bench_flood" "${GROUPS_AT_ONCE[i]}" "$GROUPS_SECONDS" "$(port_of "$url")" \
            <"$dir/doomed.ids" >"$dir/flood"
        elapsed=$(awk '$1 == "elapsed" {print $2}' "$dir/flood")
        sed -i '/^elapsed/d' "$dir/flood"
        done_count=$(awk '$3 == 200' "$dir/flood" | wc -l)
        printf '| %s | %s | %s | %s | %s | %.0f | %s | %.0f |\n' "$what" "$nodes" "${GROUPS_AT_ONCE[i]}" "$done_count" \
            "$(($(wc -l <"$dir/flood") - done_count))" "$(awk "BEGIN {print $done_count * 1000000 / $elapsed}")" \
            "$(cut -d' ' -f1 "$dir/flood" | percentiles)" \
            "$(awk "BEGIN {print ($(cpu_ns "$redis_pid") - $before) / 1000 / $done_count}")"
    done
}
bench_groups() {
    local what nodes programs=("$binary")
    [ -z "${BASELINE:-}" ] || programs=("$BASELINE" "$binary")
    printf '\n| program | nodes | at once | answered | refused | revocations/s | p50 us | p99 us | max us | Redis CPU us each |\n'
    printf '|---|---|---|---|---|---|---|---|---|---|\n'
    for nodes in "${GROUPS_NODES[@]}"; do
        for binary in "${programs[@]}"; do
            what=this
            [ "$binary" != "${BASELINE:-}" ] || what=baseline
            deployment "groups-$what-$nodes" "$what-$nodes" "$lease_ms"
            peers $((nodes - 1))
            sleep 3 # W, so that acknowledgements count
            groups_row "$what" "$nodes"
            kill "$peers_pid"
            forget "$peers_pid"
            stop_servers
        done
    done
}
