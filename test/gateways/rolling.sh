# Sourced by scripts/gateways: rolling restarts under the clients of keep_alive.js.
# shellcheck shell=bash

rolling_round=0
# next_round: until every client has had some more answers.
next_round() {
    rolling_round=$((rolling_round + 1))
    echo "$rolling_round" >"$dir/round.new" && mv "$dir/round.new" "$dir/round"
    for _ in $(seq 6000); do
        [ ! -e "$dir/round.$rolling_round" ] || return 0
        kill -0 "$rolling_pid" 2>/dev/null || break
        sleep 0.02
    done
    touch "$dir/enough"
    wait "$rolling_pid" || true
    die "not every client was answered in round $rolling_round"
}
start_clients() {
    local gateway name targets=() secrets=()
    for gateway in "${gateways[@]}"; do targets+=("$gateway=${gateway_url[$gateway]}"); done
    targets+=("nodes=http://$(node_at 1),http://$(node_at 2),http://$(node_at 3)")
    targets+=("checks=http://$(check_at 1),http://$(check_at 2),http://$(check_at 3)")
    for name in LIVE LIVE_ID TEST TEST_ID READ REVOKED; do secrets+=(--arg "$name" "${value[$name]}"); done
    jq -n '$ARGS.named' "${secrets[@]}" >"$dir/credentials.json"
    echo 0 >"$dir/round"
    node test/gateways/keep_alive.js "$dir" "${targets[@]}" >"$dir/rolling" &
    rolling_pid=$!
    pids+=("$rolling_pid")
}
run_rolling() {
    local number turn line
    url=http://$(node_at 1)
    make_credentials
    start_clients
    next_round
    for turn in $(seq "${ROUNDS:-1}"); do
        for number in 1 2 3; do
            say "round $turn: node $number is stopped, and started again"
            kill "${node_pids[$number]}"
            wait "${node_pids[$number]}" || fail "node $number ended with status $?"
            forget "${node_pids[$number]}"
            run_node "$number"
            next_round
        done
    done
    touch "$dir/enough"
    wait "$rolling_pid" || fail 'requests were not answered as they must be: see above'
    forget "$rolling_pid"
    while IFS= read -r line; do say "$line"; done <"$dir/rolling"
}
