# Sourced by scripts/alerts: for each alert a Redis, nodes and an account of its own, and what causes are made of.
# shellcheck shell=bash disable=SC2154

PATIENCE_S=90 # from the cause to the alert
nodes=()      # processes of the scene
instances=()  # and what Prometheus calls them

# add_node [FLAG…]: sets node_pid, url, internal. Its log is "$dir/log.N", N from 1.
add_node() {
    local id=$((${#nodes[@]} + 1))
    node_flags=(--log-level info --drain-ms 200 "$@")
    # shellcheck disable=SC2016
    start_node "$id" 20 sh -c 'log=$0; exec "$@" 2>"$log"' "${log_to:-$dir/log.$id}"
    internal=$(jq -r .internal_listen "$dir/ready.$id")
    nodes+=("$node_pid")
    instances+=("$internal")
}
# scene [FLAG…]: a Redis and a first node, with a key, a user and a session. Prometheus sees the node, and it is well.
scene() {
    start_redis
    make_account
    add_node "$@"
    node1_pid=$node_pid node1_url=$url instance=$internal
    sign_in
    step_up
    first_key
    watched
}
# watched: the scene's nodes are scraped, and no alert fires.
watched() {
    watch "${instances[@]}"
    await_scrapes 4 "${instances[@]}"
    [ -z "$(firing "$instance")" ] || die "$(firing "$instance" | tr '\n' ' ')fires for a healthy node"
}
end_scene() {
    local pid
    watch
    for pid in "${nodes[@]}"; do
        kill -CONT "$pid" 2>/dev/null || true
        kill "$pid" 2>/dev/null || true
        forget "$pid"
    done
    kill -CONT "$redis_pid" 2>/dev/null || true
    stop_redis
    [ -z "${replica_pid:-}" ] || kill -KILL "$replica_pid" "$sentinel_pid"
    rm -rf "$dir"/ready.* "$dir"/log.* "$dir"/audit.log "$dir/replica" "$dir/sentinel" # of a scene, for the next one
    nodes=() instances=() node_flags=()
}
# run_alert ALERT
run_alert() (
    began=$SECONDS
    trap 'end_beside; end_scene' EXIT
    "cause_$1"
    caused=$SECONDS
    if await_alert "$1" "$instance" "$PATIENCE_S"; then
        printf '%-24s fires %2s s after its cause (in all %s s)\n' "$1" "$((SECONDS - caused))" "$((SECONDS - began))"
    else
        tail -n 3 "$dir"/log.* >&2
        die "$1 does not fire. What fires: $(firing "$instance" | tr '\n' ' ')"
    fi
)

# beside COMMAND…: runs it until the alert has fired.
besides=()
beside() {
    "$@" >/dev/null 2>&1 &
    besides+=("$!")
}
end_beside() {
    local pid
    for pid in "${besides[@]}"; do
        kill "$pid" 2>/dev/null || true
        wait "$pid" 2>/dev/null || true
    done
    besides=()
}
# stutter PID STOPPED_S RUNNING_S: as a machine does that has too little CPU.
stutter() {
    while kill -STOP "$1" && sleep "$2" && kill -CONT "$1"; do sleep "$3"; done
}
# check [SECRET]: asks the node; prints the status.
check() { curl -s -o "$dir/check" -w '%{http_code}' -H "Authorization: Bearer ${1:-$first}" "$node1_url/v1/whoami" || true; }
keep_checking() { while sleep 0.1; do check; done; }
# load CONNECTIONS: as many checks as the node can answer.
load() { exec wrk -t1 -c"$1" -d600 -H "Authorization: Bearer $first" "$node1_url/v1/whoami"; }
create_key() { # prints id and secret
    curl -sS -H "Authorization: Bearer $first" -H 'Content-Type: application/json' \
        -d '{"name":"another","mode":"live","scopes":["patients:read"]}' "$node1_url/v1/api_keys" | jq -r '.id + " " + .secret'
}
revoke_key() { curl -s -o "$dir/revoked.$1" -w '%{http_code}' -X DELETE -H "Authorization: Bearer $first" "$node1_url/v1/api_keys/$1"; }
# log_in EMAIL PASSWORD CODE ADDRESS: prints the status.
log_in() {
    curl -s -o /dev/null -w '%{http_code}\n' -H "X-Forwarded-For: $4" -H 'Content-Type: application/json' \
        -d "{\"email\":\"$1\",\"password\":\"$2\",\"totp\":\"$3\"}" "$node1_url/v1/auth/login"
}
# As if an hour had passed since the last attempt to sign in.
forget_attempts() {
    redis eval "for _, key in ipairs(redis.call('keys', '*throttle*')) do redis.call('del', key) end" 0 >/dev/null
}
# A master, a replica and a Sentinel, and a node that finds the master by it.
scene_of_sentinel() {
    local master_port replica_port
    start_redis
    master_port=$(test/support/free-port) replica_port=$(test/support/free-port) sentinel_port=$(test/support/free-port)
    redis config set port "$master_port" >/dev/null
    make_account
    mkdir "$dir/replica" "$dir/sentinel"
    redis-server --port "$replica_port" --dir "$dir/replica" --appendonly yes --appendfsync always --save '' \
        --maxmemory-policy noeviction --replicaof 127.0.0.1 "$master_port" \
        --min-replicas-to-write 1 --min-replicas-max-lag 2 >"$dir/log.replica" 2>&1 &
    replica_pid=$!
    redis config set min-replicas-to-write 1 min-replicas-max-lag 2 >/dev/null
    cat >"$dir/sentinel/sentinel.conf" <<S
port $sentinel_port
dir $dir/sentinel
sentinel monitor alerts 127.0.0.1 $master_port 1
sentinel down-after-milliseconds alerts 1000
S
    redis-server "$dir/sentinel/sentinel.conf" --sentinel >"$dir/log.sentinel" 2>&1 &
    sentinel_pid=$!
    until redis-cli -p "$sentinel_port" sentinel replicas alerts 2>/dev/null | grep -qx ok; do sleep 0.2; done
    CHATELAINE_REDIS=redis-sentinel://127.0.0.1:$sentinel_port/alerts
    add_node --min-replicas 1
    instance=$internal
    watched
}
