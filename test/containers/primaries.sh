# Sourced by scripts/containers: primaries of the cluster fail while keys of three accounts, one on each primary, are made,
# used, revoked and tried. Then everything is stopped and started again.
# shellcheck shell=bash disable=SC2154

partitions=16
accounts=() firsts=() # of three accounts: their ids, and a key of each
# founder SERVICE COMMAND…: asks that server as the user who founds the cluster.
founder() {
    # shellcheck disable=SC2016 # the shell in the container replaces it
    compose exec -T "$1" sh -c 'REDISCLI_AUTH=$(cat /run/store/founder) && export REDISCLI_AUTH &&
        exec sh /etc/chatelaine/cli 6379 --no-auth-warning --user founder "$@"' - "${@:2}" | tr -d '\r'
}
# An account lies by the CRC-32 of its id, with which gzip's output ends.
partition_of() { # ACCOUNT
    local crc
    crc=$(printf %s "$1" | gzip -c | tail -c 8 | od -An -t u4 -N 4 --endian=little)
    echo $((crc % partitions))
}
primary_of() { # ACCOUNT: the service that serves it
    local slot
    slot=$(founder redis1 cluster keyslot "{$(partition_of "$1")}")
    founder redis1 cluster nodes | awk -v slot="$slot" '$3 ~ /master/ {
        for (field = 9; field <= NF; field++) {
            ends = split($field, range, "-")
            if (slot + 0 >= range[1] + 0 && slot + 0 <= range[ends] + 0) {
                split($2, address, /[.:]/)
                print "redis" address[4] - 40
            }
        }
    }'
}
serves_all() { # NODE
    compose exec -T gateway curl -s --max-time 5 --connect-to "nodes.chatelaine.internal::$1:" "${as_gateway[@]}" \
        https://nodes.chatelaine.internal:8081/metrics | grep -qx "chatelaine_partitions_ready $partitions"
}
# All servers are there, each primary has a replica, and all nodes serve all partitions.
is_whole() {
    local nodes
    nodes=$(founder redis1 cluster nodes) && [[ $nodes != *fail* ]] && [ "$(wc -l <<<"$nodes")" = 7 ] &&
        [ "$(awk '$3 ~ /slave/ {print $4}' <<<"$nodes" | sort -u | wc -l)" = 3 ] &&
        serves_all node1 && serves_all node2 && serves_all node3
}
await_whole() {
    local deadline=$((SECONDS + 120))
    while [ "$SECONDS" -lt "$deadline" ]; do
        ! is_whole || return 0
        sleep 0.5
    done
    founder redis1 cluster nodes >&2
    die "the cluster is not whole"
}

# Makes accounts until each primary serves one that has a key.
make_accounts() {
    local primary served
    served=" $(primary_of "$account") "
    accounts=("$account") firsts=("$first")
    while [ "${#accounts[@]}" -lt 3 ]; do
        new_account
        primary=$(primary_of "$account")
        [[ $served != *" $primary "* ]] || continue
        email=ada@${#accounts[@]}.test
        make_person
        served+="$primary "
        accounts+=("$account") firsts+=("$first")
    done
}
# Records when each request was sent, and its status.
user() { # NUMBER of the account
    local asked
    while [ ! -e "$dir/writes.enough" ]; do
        asked=$(now_ms)
        echo "$asked $(curl -s --max-time 20 -o /dev/null -w '%{http_code}' -H "Authorization: Bearer ${firsts[$1]}" "$url/v1/patients/1")" \
            >>"$dir/uses.$1"
        sleep 0.1
    done
}
uses_between() { # NUMBER FROM-MS TO-MS
    awk -v from="$2" -v to="$3" '$1 >= from && $1 <= to' "$dir/uses.$1"
}
start_accounts() {
    local number
    maker_pause_s=0.4 revoker_pause_s=1.2 prober_pause_s=0.5
    for number in 0 1 2; do
        first=${firsts[number]}
        start_writes "$dir/writes.$number"
        user "$number" &
        pids+=($!)
    done
}
primary_fails() { # ROUND HOW NUMBER of the account whose primary fails
    local number primary since resumed
    await_whole
    primary=$(primary_of "${accounts[$3]}")
    writes=$dir/writes.$3
    "break_$2" "$primary"
    since=$(now_ms)
    [ "$2" = paused ] || since=$(ended_at "$primary")
    await_writes "round $1, $primary $2" "$since" 20000
    resumed=$(now_ms)
    "mend_$2" "$primary"
    await_healthy "$primary"
    for number in 0 1 2; do
        if [ "$number" = "$3" ]; then
            uses_between "$number" "$since" "$resumed" | awk -v since="$since" -v what="round $1" '
                $2 != 200 {refused++; last = $1}
                END {if (refused) printf "%s: %d of %d checks were refused, the last after %d ms\n", what, refused, NR, last - since
                    else printf "%s: none of %d checks was refused\n", what, NR}' | while read -r line; do say "$line"; done
        else
            [ -n "$(uses_between "$number" "$since" "$resumed")" ] || fail "round $1: nobody used the keys of account $number"
            ! uses_between "$number" "$since" "$resumed" | grep -v ' 200$' >&2 || fail "round $1: account $number was refused"
        fi
    done
}
look_at_failing_primaries() {
    local hows=(killed stopped paused) number round
    make_accounts
    start_accounts
    sleep 8 # until revocations have begun
    for round in $(seq "${rounds:-3}"); do
        primary_fails "$round" "${hows[(round - 1 + (round - 1) / 3) % 3]}" $(((round - 1) % 3))
    done
    await_whole
    end_writes
    stop_and_start_all
    await_whole
    for number in 0 1 2; do
        writes=$dir/writes.$number
        look_at_writes
    done
    chatelaine doctor >"$dir/doctor" || {
        cat "$dir/doctor" >&2
        fail "doctor: not fit any more"
    }
    grep -q "^ok *partitions .* $partitions of $partitions " "$dir/doctor" || fail "doctor does not find all partitions"
}
