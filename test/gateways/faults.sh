# Sourced by scripts/gateways: keys are revoked, and nodes fail under a light load.
# shellcheck shell=bash

run_revocations() { # GATEWAY
    local round
    url=${gateway_url[$1]}
    for round in $(seq 5); do
        known_key "$1" "${value[LIVE]}"
        await_hit "$1" "$known_secret"
        revoke_and_try "$1, key $round" "$url" "${value[LIVE]}"
    done
}

# hold_request NUMBER: sends a part of one, so that the node drains until $held is closed.
hold_request() {
    exec {held}<>"/dev/tcp/127.0.0.$1/${port[node]}"
    printf 'POST /v1/auth/login HTTP/1.1\r\nHost: console.test\r\nContent-Length: 100\r\n\r\n{' >&"$held"
}
run_faults() { # GATEWAY
    local number other
    url=${gateway_url[$1]}
    start_load "$url/v1/patients/1" "Authorization: Bearer ${value[LIVE]}"
    for number in 1 2 3; do
        other=http://$(node_at $((number % 3 + 1)))
        url=${gateway_url[$1]}
        known_key "$1" "${value[LIVE]}"
        await_hit "$1" "$known_secret"
        load_phase "$1: node $number is stopped"
        hold_request "$number"
        kill "${node_pids[$number]}"
        revoke_and_try "$1, node $number drains" "$other" "${value[LIVE]}"
        load_goes_on 6
        exec {held}>&-
        forget "${node_pids[$number]}"
        run_node "$number"
        url=${gateway_url[$1]}
        known_key "$1" "${value[LIVE]}"
        await_hit "$1" "$known_secret"
        load_phase "$1: node $number is killed"
        kill -KILL "${node_pids[$number]}"
        forget "${node_pids[$number]}" 2>/dev/null
        revoke_and_try "$1, node $number killed" "$other" "${value[LIVE]}"
        [ "$number" != 1 ] || no_hit "$1" "${value[LIVE]}"
        run_node "$number"
        url=${gateway_url[$1]}
        known_key "$1" "${value[LIVE]}"
        await_hit "$1" "$known_secret"
        load_phase "$1: node $number is paused"
        kill -STOP "${node_pids[$number]}"
        revoke_and_try "$1, node $number paused" "$other" "${value[LIVE]}"
        load_goes_on 2
        kill -CONT "${node_pids[$number]}"
        revoke_and_try "$1, node $number goes on" "$other" "${value[LIVE]}"
    done
    end_load || fail "$1: requests failed while nodes did"
}
