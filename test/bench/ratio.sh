# Sourced by scripts/bench.
# shellcheck shell=bash disable=SC2154,SC2034 # measure.sh sets and reads the others

declare -A ns_of=() requests_of=() # NAME: of the round so far

begin_both() { # ROUND
    # So many wrong logins would be held up. Before the node starts: among a million keys it takes longer than a lease.
    redis eval "for _, key in ipairs(redis.call('keys', '*throttle*')) do redis.call('del', key) end" 0 >/dev/null
    start_nginx
    node "cached$1" "$lease_ms" taskset -c 0
    two_paths "cached$1"
    [ "$1" != 1 ] || print_cipher whoami
    warm whoami
}
end_both() {
    stop_node "$node_pid"
    stop_node "$nginx_master"
}
slice() { # NAME: a second of checks
    local before requests
    before=$(cpu_ns "${pid_of[$1]}")
    BENCH_DELAY_MS=$pause_ms load "$1" 1
    requests_of[$1]=$((${requests_of[$1]} + requests))
    sleep 1.2 # until the uses that it has left are written, which belongs to it
    ns_of[$1]=$((${ns_of[$1]} + $(cpu_ns "${pid_of[$1]}") - before))
}
# Where its memory came to lie makes a process some percent slower or faster than the next of its kind, for as long as
# it runs: here each is started anew for each round. And a machine's other tenants make minutes differ by more than what
# is sought: here a second of the one follows a second of the other.
bench_ratio() {
    local round second server
    [ "$rounds" -ge 2 ] || die "a standard error takes two ROUNDS at least"
    deployment ratio first "$lease_ms" taskset -c 0
    make_keys "$keys" "$dir/keys"
    if [ "$unknown" -gt 0 ]; then
        mix_unknown "$unknown" "$dir/keys" "$dir/mixed"
        keys_of=([whoami]=$dir/mixed [gateway]=$dir/mixed) refused=([whoami]=$unknown [gateway]=$unknown)
    fi
    if [ "$revoke_ms" -gt 0 ]; then
        make_doomed $((4 * rounds * each))
        aside=([whoami]=revoke_now_and_then [gateway]=revoke_now_and_then)
    fi
    stop_node "${pid_of[first]}"
    for round in $(seq "$rounds"); do
        say "round $round of $rounds"
        begin_both "$round"
        ns_of=([nginx]=0 [whoami]=0 [gateway]=0) requests_of=([nginx]=0 [whoami]=0 [gateway]=0)
        for second in $(seq "$each"); do
            for server in $(shuf -e nginx whoami gateway); do slice "$server"; done
        done
        end_both
        for server in whoami gateway; do
            echo "$(per_request "${ns_of[$server]}" "${requests_of[$server]}") $(per_request "${ns_of[nginx]}" "${requests_of[nginx]}")" \
                "${requests_of[$server]} ${requests_of[nginx]}" >>"$dir/ratios.$server"
        done
    done
    pid_of=()
    printf '\n'
    [ "$revoke_ms" = 0 ] || print_revoked
    for server in whoami gateway; do print_ratio "$server"; done
}
print_ratio() { # NAME
    awk -v seconds="$each" -v what="${label[$1]}" '
    {v = log($1 / $2); sum += v; squares += v * v; ours += $1; theirs += $2; asked += $3; asked_theirs += $4}
    END {mean = sum / NR
      printf "Cached checks by %s cost %.3f of nginx, standard error %.3f: geometric mean of %d rounds of %d s each (%.3f us at %.0f/s, nginx %.3f us at %.0f/s).\n",
        what, exp(mean), sqrt((squares / NR - mean * mean) / (NR - 1)), NR, seconds, ours / NR, asked / NR / seconds,
        theirs / NR, asked_theirs / NR / seconds}' "$dir/ratios.$1"
}
