# Sourced by scripts/bench. One, two and four nodes on this machine behind one address (--reuse-port): the kernel gives
# each connection to one of them.
# shellcheck shell=bash disable=SC2154,SC2034 # measure.sh sets and reads the others

NODE_COUNTS='1 2 4'
declare -A node_places=([one]='taskset -c 0' [both]='') # what a node is started by
declare -A place_label=([one]='on one core' [both]='on both cores, beside wrk and Redis')

# measure_together ROW: so many nodes, started for it. Before it counts they are asked for as long: which of them a key
# comes to is up to the kernel, so that each has had nearly all keys by then.
measure_together() {
    local row=$1 id together=() requests
    if [ "$row" = nginx ]; then
        measure nginx
        return
    fi
    node_listen=127.0.0.1:$(test/support/free-port)
    for id in $(seq "${row%.*}"); do
        # shellcheck disable=SC2086 # a command and its arguments
        CHATELAINE_REUSE_PORT=true node "$row.$id" "$lease_ms" ${node_places[${row#*.}]}
        together+=("$node_pid")
        unset "pid_of[$row.$id]"
    done
    node_listen=127.0.0.1:0
    url_of[$row]=$url pid_of[$row]=${together[*]}
    load "$row" "$each"
    measure "$row"
    for id in "${together[@]}"; do stop_node "$id"; done
    unset "pid_of[$row]"
}

bench_nodes() {
    local place count rows=()
    deployment nodes first "$lease_ms" taskset -c 0
    make_keys "$keys" "$dir/keys"
    stop_node "${pid_of[first]}"
    unset 'pid_of[first]'
    start_nginx
    for place in one both; do
        for count in $NODE_COUNTS; do
            rows+=("$count.$place")
            label[$count.$place]="$count node$([ "$count" = 1 ] || echo s) ${place_label[$place]}"
        done
    done
    in_rounds "$rounds" measure_together nginx "${rows[@]}"
    table "$keys keys" nginx "${rows[@]}"
}
