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
# list_row NODES: as many keys as one call may name.
GROUPS_LIST=10000
list_row() {
    local status_and_time slowest
    make_keys "$GROUPS_LIST" "$dir/doomed"
    jq -Rsc '{ids: split("\n") | map(select(. != ""))}' "$dir/doomed.ids" >"$dir/list.json"
    redis CONFIG SET slowlog-log-slower-than 0 >"$dir/slow"
    redis SLOWLOG RESET >"$dir/slow"
    status_and_time=$(curl -s -o "$dir/body" -w '%{http_code} | %{time_total}' -H "Authorization: Bearer $first" \
        -H 'Content-Type: application/json' --data-binary "@$dir/list.json" "$url/v1/api_keys/revoke")
    slowest=$(redis --json SLOWLOG GET -1 | jq '[.[][2]] | max')
    printf '| %s | %s | %s | %s |\n' "$1" "$(jq '.revoked | length' "$dir/body")" "$status_and_time" "$slowest"
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
            [ "$what" = baseline ] || list_row "$nodes" >>"$dir/lists"
            kill "$peers_pid"
            forget "$peers_pid"
            stop_servers
            # The next program's scripts would run more slowly beside these: Lua has twice as much to clean up.
            redis SCRIPT FLUSH SYNC >"$dir/flushed"
        done
    done
    printf '\n| nodes | keys revoked by one call | status | seconds | slowest Redis command us |\n|---|---|---|---|---|\n'
    cat "$dir/lists"
}
