# Sourced by scripts/bench. Stores beside the one of every part: one Redis or a Redis Cluster each, several at a time.
# All are reached over TCP, because a cluster is. Each has many accounts, so that all its partitions are used.
# shellcheck shell=bash disable=SC2154

STORE_ACCOUNTS=64
STORE_MAKERS=4
SLOTS=16384
declare -A servers_of=() primaries_of=() # STORE: the names of its servers, and of its primaries
declare -A url_of_store=()               # for --redis
declare -A partitions_of=() replicas_of=()

# run_server NAME [FLAGS…]: a Redis at a free port, which is then in $server_port.
run_server() {
    local name=$1
    shift
    server_port=$(test/support/free-port)
    mkdir "$dir/$name"
    redis_flags=(--port "$server_port" --bind 127.0.0.1 --auto-aof-rewrite-percentage 0 "$@")
    run_redis "$name"
    redis_flags=()
}
# start_store STORE PRIMARIES PARTITIONS [REPLICAS]: PRIMARIES 0 is one Redis, and no cluster. With REPLICAS 1 each primary
# has one, and changes and leases need its acknowledgement.
start_store() {
    local store=$1 primaries=$2 replicas=${4:-0} number names=() hosts=() ports=() bus_ports=()
    partitions_of[$store]=$3 replicas_of[$store]=$replicas
    say "store $store"
    if [ "$primaries" = 0 ]; then
        run_server "$store"
        names=("$store") url_of_store[$store]=redis://127.0.0.1:$server_port
    else
        for number in $(seq $((primaries * (1 + replicas)))); do
            bus_ports+=("$(test/support/free-port)")
            run_server "$store.$number" --cluster-enabled yes --cluster-port "${bus_ports[-1]}" --repl-diskless-sync-delay 0
            names+=("$store.$number") hosts+=(127.0.0.1) ports+=("$server_port")
        done
        join_cluster
        url_of_store[$store]=redis-cluster://127.0.0.1:${ports[0]}
    fi
    servers_of[$store]=${names[*]}
    primaries_of[$store]=${names[*]:0:primaries?primaries:1}
    use_store "$store"
    add_accounts
}
# join_cluster: the servers of the caller's $names, at its $hosts, $ports and $bus_ports; the first $primaries with their
# share of the slots each, the others as $replicas of each of these, in turn.
join_cluster() {
    local number
    for number in "${!names[@]}"; do
        redis_at "${names[number]}" cluster set-config-epoch $((number + 1)) >/dev/null
        [ "$number" = 0 ] ||
            redis_at "${names[0]}" cluster meet "${hosts[number]}" "${ports[number]}" "${bus_ports[number]}" >/dev/null
    done
    for number in $(seq 0 $((primaries - 1))); do
        redis_at "${names[number]}" cluster addslotsrange $((number * SLOTS / primaries)) $(((number + 1) * SLOTS / primaries - 1)) >/dev/null
    done
    wait_for_servers is_acquainted
    for number in $(seq "$primaries" $((${#names[@]} - 1))); do
        redis_at "${names[number]}" cluster replicate "$(redis_at "${names[number % primaries]}" cluster myid)" >/dev/null
    done
    wait_for_servers is_served
}
wait_for_servers() { # FUNCTION: is true of each of the caller's $names
    local name
    for name in "${names[@]}"; do
        for _ in $(seq 600); do
            ! "$1" "$name" || continue 2
            sleep 0.1
        done
        die "the servers do not form a cluster: $(tail -3 "$dir/$name.log")"
    done
}
is_acquainted() { # SERVER: knows all others by their lasting names
    [[ $(redis_at "$1" cluster info) == *cluster_known_nodes:${#names[@]}$'\r'* ]] &&
        [[ $(redis_at "$1" cluster nodes) != *handshake* ]]
}
is_served() { # SERVER: by its replica, or it is one that has its primary's data
    [[ $(redis_at "$1" cluster info) == *cluster_state:ok* ]] || return 1
    case $(redis_at "$1" info replication | tr -d '\r') in
        *role:master*connected_slaves:"$replicas"$'\n'* | *master_link_status:up*) ;;
        *) return 1 ;;
    esac
}
# use_store STORE: nodes, commands and tools reach it from then on, and its primaries' CPU time and commands count.
use_store() {
    export CHATELAINE_REDIS=${url_of_store[$1]} CHATELAINE_PARTITIONS=${partitions_of[$1]} CHATELAINE_PREFIX=$1:
    export CHATELAINE_MIN_REPLICAS=${replicas_of[$1]} CHATELAINE_UNSAFE_REDIS=$((1 - replicas_of[$1]))
    IFS=' ' read -ra redis_servers <<<"${primaries_of[$1]}"
    calls_at_rest=$((200 * partitions_of[$1]))
    store=$1
}
# unsynced COMMAND…: Redis does not sync its file meanwhile, to fill it fast. No node runs: it would call Redis unfit.
unsynced() {
    each_redis config set appendfsync no >/dev/null
    "$@"
    each_redis config set appendfsync always >/dev/null
}
# in_parallel FUNCTION [ARGUMENT…] <LINES: runs it for each line, STORE_MAKERS at a time.
in_parallel() {
    local line makers=() maker
    while read -r line; do
        "$@" "$line" </dev/null &
        makers+=($!)
        [ ${#makers[@]} -lt "$STORE_MAKERS" ] || {
            wait "${makers[0]}" || die "$1 failed"
            makers=("${makers[@]:1}")
        }
    done
    for maker in "${makers[@]}"; do wait "$maker" || die "$1 failed"; done
}
# patiently FILE COMMAND…: its output to FILE. A command that finds Redis too slow may be called again.
patiently() {
    local file=$1
    shift
    for _ in 1 2 3 4 5; do
        ! CHATELAINE_UNSAFE_REDIS=1 CHATELAINE_REDIS_TIMEOUT_MS=30000 "$@" >"$file" || return 0
    done
    return 1
}
add_account() { # NUMBER
    local made=$dir/$store.account.$1 id
    patiently "$made.id" "$binary" account create --name "account $1" --json || return 1
    id=$(jq -r .id "$made.id")
    patiently "$made.key" "$build/test/bench/bench_fill" 1 "$id" manager || return 1
    echo "$id $(cut -d' ' -f1 "$made.key")" >"$made"
}
# To $dir/STORE.accounts: "account, key that may do all" a line.
add_accounts() {
    add_account 1 || die "no account could be made" # it founds the store
    unsynced in_parallel add_account < <(seq 2 "$STORE_ACCOUNTS")
    cat "$dir/$store".account.*[0-9] >"$dir/$store.accounts"
    [ "$(grep -cE '^acct_\S+ svc_\S+$' "$dir/$store.accounts")" = "$STORE_ACCOUNTS" ] || die "an account could not be made"
}
fill_account() { # COUNT "ACCOUNT MANAGER"
    patiently "$dir/$store.fill.${2% *}" "$build/test/bench/bench_fill" "$1" "${2% *}"
}
# store_keys COUNT FILE: secrets of all accounts to FILE, and to FILE.lines "id, key that may revoke it" a line.
store_keys() {
    local account manager
    say "making $1 keys in store $store"
    unsynced in_parallel fill_account $((($1 + STORE_ACCOUNTS - 1) / STORE_ACCOUNTS)) <"$dir/$store.accounts"
    cat "$dir/$store".fill.* | cut -d' ' -f1 >"$2"
    while read -r account manager; do
        awk -v manager="$manager" '{print $2, manager}' "$dir/$store.fill.$account"
    done <"$dir/$store.accounts" | shuf >"$2.lines"
    rm "$dir/$store".fill.*
}
# trouble_of NAME: what a node says that it cannot do.
trouble_of() { curl -s "http://$(jq -r .internal_listen "$dir/ready.$1")/readyz" | jq -r '.reason // empty'; }
# store_node NAME LEASE_MS [COMMAND PREFIX…]: a node of the store in use, which is ready for all partitions.
store_node() {
    rm -f "$dir/ready.$1"
    CHATELAINE_CHANGES_PER_MINUTE=10000000 node "$@"
    for _ in $(seq 600); do
        [ -n "$(trouble_of "$1")" ] || return 0
        sleep 0.1
    done
    die "node $1: $(trouble_of "$1")"
}
stop_store() { # STORE: also deletes its data
    local server
    for server in ${servers_of[$1]}; do stop_redis "$server"; done
    unset "servers_of[$1]"
    redis_servers=(redis)
}
