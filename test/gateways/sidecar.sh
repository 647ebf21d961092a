# Sourced by scripts/gateways: a node beside the gateway, asked over its Unix socket. The three others are asked only
# while it cannot answer.
# shellcheck shell=bash

checks_of() { # NUMBER…: checks that these nodes have answered
    local number
    for number; do curl -sS --max-time 20 "http://$(check_at "$number")/metrics"; done |
        awk '/^chatelaine_checks_total/ {sum += $2} END {print sum + 0}'
}
send_ten() { # WHERE
    local attempt
    for attempt in $(seq 10); do
        http GET /v1/patients/1 -H "Authorization: Bearer ${value[LIVE]}" >/dev/null
        judge "$1, request $attempt" '200 mode=live'
    done
}
# asks_sidecar WHERE: whether all but a few checks go there. Nodes check their canaries, too.
asks_sidecar() {
    local sidecar others
    sidecar=$(checks_of 4) others=$(checks_of 1 2 3)
    send_ten "$1"
    [ $(($(checks_of 4) - sidecar)) -ge 10 ] && [ $(($(checks_of 1 2 3) - others)) -le 5 ]
}
await_sidecar() { # WHERE
    for _ in $(seq 300); do
        ! asks_sidecar "$1" || return 0
        sleep 0.2
    done
    fail "$1: the sidecar is not asked"
}
expect_others() { # WHERE
    local others
    others=$(checks_of 1 2 3)
    send_ten "$1"
    [ $(($(checks_of 1 2 3) - others)) -ge 10 ] || fail "$1: the other nodes are not asked"
}
still_refused() { # WHERE: the key that was revoked last
    http GET /v1/patients/1 -H "Authorization: Bearer $known_secret" >/dev/null
    judge "$1" '401 api_key_revoked'
}
sidecar_is_killed() { # WHERE: its file stays
    known_key "$1" "${value[LIVE]}"
    load_phase "$1: its sidecar is killed"
    kill -KILL "${node_pids[4]}"
    forget "${node_pids[4]}" 2>/dev/null
    revoke_and_try "$1, its sidecar killed" "$node_url" "${value[LIVE]}"
    expect_others "$1, its sidecar killed"
    run_node 4
    url=${gateway_url[$1]}
    await_sidecar "$1, its sidecar back"
    still_refused "$1, its sidecar back"
}
sidecar_is_paused() { # WHERE
    known_key "$1" "${value[LIVE]}"
    load_phase "$1: its sidecar is paused"
    kill -STOP "${node_pids[4]}"
    revoke_and_try "$1, its sidecar paused" "$node_url" "${value[LIVE]}"
    expect_others "$1, its sidecar paused"
    kill -CONT "${node_pids[4]}"
    still_refused "$1, its sidecar goes on"
    await_sidecar "$1, its sidecar goes on"
    still_refused "$1, its sidecar has gone on"
}
sidecar_is_stopped() { # WHERE: it drains, then its file is gone
    known_key "$1" "${value[LIVE]}"
    load_phase "$1: its sidecar is stopped"
    hold_request 4
    kill "${node_pids[4]}"
    revoke_and_try "$1, its sidecar drains" "$node_url" "${value[LIVE]}"
    exec {held}>&-
    forget "${node_pids[4]}"
    expect_others "$1, its sidecar stopped"
    run_node 4
    url=${gateway_url[$1]}
    await_sidecar "$1, its sidecar back"
    still_refused "$1, its sidecar back"
}
run_sidecar() { # GATEWAY
    local as=$1-sidecar node_url
    node_url=http://$(node_at 1)
    start_gateway "$1" sidecar
    url=${gateway_url[$as]}
    await_sidecar "$as"
    send_table "$as"
    same_answers "$1" "$as"
    start_load "$url/v1/patients/1" "Authorization: Bearer ${value[LIVE]}"
    sidecar_is_killed "$as"
    sidecar_is_paused "$as"
    sidecar_is_stopped "$as"
    end_load || {
        logs_of "$as" '"status":503' | tail -n 3 | head -c 3000 >&2
        fail "$as: requests failed while the sidecar did"
    }
    look_at_log "$as"
}
