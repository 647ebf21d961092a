# Sourced by scripts/bench. Rule 10 in a cluster: from when a new primary takes writes, and how long the one that it
# replaced still does. Three primaries with two replicas each, every server in a network namespace of its own, routed by
# a namespace of the measurement's own. A write is what a heartbeat is: a script, then WAIT for one replica. Those who
# write reach each server by its Unix socket, as a node on its side of the cut would.
# shellcheck shell=bash disable=SC2154

FENCE_TRIALS=${FENCE_TRIALS:-10} # of each kind, for each primary
FENCE_NODE_TIMEOUT_MS=${FENCE_NODE_TIMEOUT_MS:-2000}
FENCE_SHARDS=3
FENCE_REPLICAS=2
FENCE_NETWORK=10.77 # server N is $FENCE_NETWORK.N.2
FENCE_SETTLE_MS=3000
declare -A number_of=() # SERVER

host_of() { echo "$FENCE_NETWORK.${number_of[$1]}.2"; }
run_fenced() { # SERVER: in a namespace of its own
    local at=$FENCE_NETWORK.${number_of[$1]} outer=fence${number_of[$1]} inner=inner${number_of[$1]}
    redis_prefix=(unshare -n)
    redis_flags=(--port 6379 --bind 0.0.0.0 --protected-mode no --cluster-enabled yes --cluster-announce-ip "$at.2"
        --cluster-node-timeout "$FENCE_NODE_TIMEOUT_MS" --cluster-allow-replica-migration no --repl-diskless-sync-delay 0
        --min-replicas-to-write "$guard" --min-replicas-max-lag 2 --loglevel warning)
    run_redis "$1"
    redis_prefix=() redis_flags=()
    ip link delete "$outer" 2>/dev/null || true
    ip link add "$outer" type veth peer name "$inner" netns "$redis_pid"
    ip addr add "$at.1/24" dev "$outer"
    ip link set "$outer" up
    nsenter -t "$redis_pid" -n ip link set lo up
    nsenter -t "$redis_pid" -n ip addr add "$at.2/24" dev "$inner"
    nsenter -t "$redis_pid" -n ip link set "$inner" up
    nsenter -t "$redis_pid" -n ip route add default via "$at.1"
}
# Ours reach all; what is cut does not pass from one server to another.
fence_network() {
    ip link set lo up
    echo 1 >/proc/sys/net/ipv4/ip_forward
    ip rule add priority 100 iif lo lookup main
}
# cut_off SERVER…: from all others, not from each other, at once. Sets $began_ms.
cut_off() {
    local inside outside
    for outside in "${names[@]}"; do
        [[ " $* " != *" $outside "* ]] || continue
        for inside; do
            echo "rule add priority 200 from $(host_of "$inside") to $(host_of "$outside") blackhole"
            echo "rule add priority 200 from $(host_of "$outside") to $(host_of "$inside") blackhole"
        done
    done >"$dir/cut"
    began_ms=$(now_ms)
    ip -batch "$dir/cut"
}
heal() {
    sed 's/^rule add/rule delete/' "$dir/cut" >"$dir/healed"
    woken_ms=$(now_ms)
    ip -batch "$dir/healed"
}

# --- the cluster -----------------------------------------------------------------------------------------------------

start_fence_cluster() {
    local shard server number=0
    for server in $(seq 0 $((FENCE_SHARDS * (1 + FENCE_REPLICAS) - 1))); do names+=("fence.$server"); done
    for server in "${names[@]}"; do
        number_of[$server]=$((++number))
        mkdir "$dir/$server"
        run_fenced "$server"
        hosts+=("$(host_of "$server")") ports+=(6379) bus_ports+=(16379)
    done
    join_cluster
    for shard in $(seq 0 $((FENCE_SHARDS - 1))); do
        for number in $(seq 0 1000); do
            [ $(($(redis_at "${names[0]}" cluster keyslot "{$number}") * FENCE_SHARDS / SLOTS)) != "$shard" ] || break
        done
        written[shard]="{$number}"
    done
}
shard_servers() { # SHARD
    local at
    for at in $(seq "$1" "$FENCE_SHARDS" $((${#names[@]} - 1))); do echo "${names[at]}"; done
}
primary_of() { # SHARD
    local server
    for server in $(shard_servers "$1"); do
        [ "$(redis_at "$server" role | head -1)" != master ] || {
            echo "$server"
            return
        }
    done
    die "no primary"
}
# All serve, no node suspects another, and each primary has its replicas.
is_settled() { is_served "$1" && [[ $(redis_at "$1" cluster nodes) != *fail* ]]; }

# --- a trial ---------------------------------------------------------------------------------------------------------

begin_writes() { # SHARD
    local server
    writers=()
    for server in $(shard_servers "$1"); do
        "$build/test/bench/bench_writes" "$dir/$server.sock" "${written[$1]}" >"$dir/writes.$server" &
        writers+=($!)
        pids+=($!)
    done
}
end_writes() {
    local writer
    for writer in "${writers[@]}"; do stop_node "$writer"; done
}
# await_takeover SHARD OLD: sets $new. It may not accept writes yet, for lack of replicas.
await_takeover() {
    local server
    for _ in $(seq 1000); do
        for server in $(shard_servers "$1"); do
            [ "$server" = "$2" ] || [ "$(redis_at "$server" role | head -1)" != master ] || {
                new=$server
                return
            }
        done
        sleep 0.02
    done
    die "no replica of $2 takes over"
}
await_silence() { # SERVER: it has accepted nothing for a while
    local last
    for _ in $(seq 600); do
        last=$(tail -n 1 "$dir/writes.$1" | cut -d' ' -f2)
        [ $(($(now_ms) - last)) -lt "$FENCE_SETTLE_MS" ] || return 0
        sleep 0.1
    done
    die "$1 goes on accepting writes"
}
# The damage. Each leaves what it did to the caller's $old until a replica has taken over, and for long enough to see how
# the old primary goes on; $began_ms and $woken_ms are when it did so, and when it ended that.
damage_kill() {
    began_ms=$(now_ms)
    kill -KILL "${redis_pid_of[$old]}"
    forget "${redis_pid_of[$old]}"
    await_takeover "$1" "$old"
    run_fenced "$old"
    woken_ms=$(now_ms)
}
damage_pause() {
    began_ms=$(now_ms)
    kill -STOP "${redis_pid_of[$old]}"
    await_takeover "$1" "$old"
    sleep "0.$((RANDOM % 10))"
    woken_ms=$(now_ms)
    kill -CONT "${redis_pid_of[$old]}"
    sleep 1
}
damage_alone() {
    cut_off "$old"
    await_takeover "$1" "$old"
    await_silence "$old"
    heal
}
damage_together() {
    local beside
    beside=$(shard_servers "$1" | grep -vx "$old" | shuf -n 1)
    cut_off "$old" "$beside"
    await_takeover "$1" "$old"
    await_silence "$old"
    heal
}
# fence_trial KIND SHARD: appends to $dir/fence.KIND.GUARD: when the new primary first accepted a write, and first had it
# acknowledged; when the old one last accepted one and last had one acknowledged; for how long it accepted writes after it
# was woken, or came back. In ms since the damage; "-": never. A write of the new one counts from when it was sent, of the
# old one until it was answered, or until it was sent if it was acknowledged, because a lease runs from then.
fence_trial() {
    local kind=$1 shard=$2 old new='' writers=() began_ms woken_ms
    old=$(primary_of "$shard")
    begin_writes "$shard"
    sleep 1
    "damage_$kind" "$shard"
    wait_for_servers is_settled # meanwhile the old one learns what it missed
    end_writes
    awk -v began="$began_ms" -v woken="$woken_ms" '
        FNR == NR {if (first == "") first = $1 - began; if ($3 > 0 && confirmed == "") confirmed = $1 - began; next}
        {if ($2 >= began && $2 <= woken + 0) last = $2 - began; if ($3 > 0 && $1 >= began) held = $1 - began; if ($2 > woken) after = $2 - woken}
        function shown(value) {return value == "" ? "-" : value}
        END {print shown(first), shown(confirmed), shown(last), shown(held), shown(after)}' \
        "$dir/writes.$new" "$dir/writes.$old" >>"$dir/fence.$kind.$guard"
}

# --- the table -------------------------------------------------------------------------------------------------------

# fence_range FILE EXPRESSION OF AWK: "lowest, median, highest" of it, in the trials in which all of its numbers are known.
fence_range() {
    awk "{ok = 1; value = $2; if (ok) print value} function of(field) {if (field == \"-\") ok = 0; return field}" "$1" | sort -g |
        awk '{v[NR] = $1} END {if (NR) printf "%d, %d, %d", v[1], v[int((NR + 1) / 2)], v[NR]; else printf "never"}'
}
fence_row() { # WHAT KIND
    local file=$dir/fence.$2.$guard field
    printf '| %s | %s |' "$1" "$(wc -l <"$file")"
    for field in 'of($1)' 'of($3)' 'of($4)' 'of($3) - of($1)' 'of($4) - of($2)' 'of($5)'; do
        printf ' %s |' "$(fence_range "$file" "$field")"
    done
    printf '\n'
}
fence_table() { # KIND…
    local kind
    local -A what=([kill]='killed, started again after the takeover' [pause]='paused until the takeover'
        [alone]='cut off from all' [together]='cut off with one of its replicas')
    printf '\n| cluster-node-timeout %s ms, min-replicas-to-write %s, max-lag 2: a primary is | trials | new one accepts writes after | old one accepts the last after | … that a replica acknowledges | from the first of the new one to the last of the old one | … that a replica acknowledges | old one accepts writes for so long after it woke or came back |\n' \
        "$FENCE_NODE_TIMEOUT_MS" "$guard"
    printf '|---|---|---|---|---|---|---|---|\n'
    for kind; do fence_row "${what[$kind]}" "$kind"; done
    printf '\nLowest, median and highest, in ms. The fence: %s ms after replicas follow the new one.\n' \
        "$(((FENCE_NODE_TIMEOUT_MS * 3 / 2 + 1000) * 11 / 10))"
}
fence_trials() { # KIND…
    local kind shard trial rows=()
    for kind; do
        for shard in $(seq 0 $((FENCE_SHARDS - 1))); do rows+=("$kind $shard"); done
    done
    for server in "${names[@]}"; do redis_at "$server" config set min-replicas-to-write "$guard" >/dev/null; done
    wait_for_servers is_settled
    for trial in $(seq "$FENCE_TRIALS"); do
        say "min-replicas-to-write $guard: trial $trial of $FENCE_TRIALS"
        while read -r kind shard; do fence_trial "$kind" "$shard"; done < <(shuf -e "${rows[@]}")
    done
    fence_table "$@"
}
bench_fence() {
    local guard=1 primaries=$FENCE_SHARDS replicas=$FENCE_REPLICAS names=() hosts=() ports=() bus_ports=() written=() server
    if [ -z "${BENCH_NAMESPACE:-}" ]; then
        [ "$(id -u)" = 0 ] || die "fence needs root, for network namespaces"
        BENCH_NAMESPACE=1 BUILD=$build unshare -n scripts/bench fence
        return
    fi
    fence_network
    start_fence_cluster
    fence_trials kill pause alone together
    guard=0
    fence_trials alone together
    for server in "${names[@]}"; do stop_redis "$server"; done
}
