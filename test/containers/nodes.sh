# Sourced by scripts/containers: nodes fail under a light load.
# shellcheck shell=bash

# A node that is out takes no part in a revocation, which then waits until its lease has ended.
node_fails() { # HOW NODE
    local how=$1 node=$2
    load_phase "$node is $how"
    known_key "$node is about to be $how" "$first"
    "break_$how" "$node"
    revoke_and_try "$node is $how" "$url" "$first"
    sleep 1
    "mend_$how" "$node"
    await_healthy "$node"
    revoke_and_try "$node was $how" "$url" "$first"
}
break_stopped() { compose stop "$1" >>"$dir/compose.log" 2>&1; }
mend_stopped() { compose start "$1" >>"$dir/compose.log" 2>&1; }
break_killed() { compose kill "$1" >>"$dir/compose.log" 2>&1; }
mend_killed() { compose start "$1" >>"$dir/compose.log" 2>&1; }
break_paused() { compose pause "$1" >>"$dir/compose.log" 2>&1; }
mend_paused() { compose unpause "$1" >>"$dir/compose.log" 2>&1; }
cut_off() { docker network disconnect "${COMPOSE_PROJECT_NAME}_$1" "$(container "$2")"; }
join_again() { docker network connect --alias "$2" --ip "$CHATELAINE_NET.$3.1${2#node}" "${COMPOSE_PROJECT_NAME}_$1" "$(container "$2")"; }
break_cut_off_from_Redis() { cut_off store "$1"; }
mend_cut_off_from_Redis() { join_again store "$1" 214; }
break_cut_off_from_the_gateway() { cut_off front "$1"; }
mend_cut_off_from_the_gateway() { join_again front "$1" 213; }
look_at_failing_nodes() {
    local node how
    start_load "$url/v1/patients/1" "Authorization: Bearer $first"
    for how in stopped killed paused cut_off_from_Redis cut_off_from_the_gateway; do
        for node in node1 node2 node3; do node_fails "$how" "$node"; done
    done
    end_load || fail "requests failed while one node did"
    known_key 'before the restart' "$first"
    revoke_and_try 'before the restart' "$url" "$first"
    stop_and_start_all
    ask '200 mode=live' "$first" GET /v1/patients/1
    ask '401 api_key_revoked' "$known_secret" GET /v1/patients/1
}
