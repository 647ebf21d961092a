# Sourced by parts.sh: checks on open connections while others do nothing but shake hands.
# shellcheck shell=bash disable=SC2154

P99_MAX_US=10000
declare -A flood_of=( # threads for: complete handshakes, halves, garbage, stalled ones
    [complete]="16 0 0 0" [half]="0 16 0 0" [mixed]="8 8 2 400"
)
# The flood has the idle scheduling class: a client of the checks that shares its core does not wait for it.
# checks_during KIND: appends p99 to $dir/p99.KIND, and what the flood did to $dir/flood.KIND.
checks_during() {
    local flood=$1 checks_pid
    in_background "$dir/checks" taskset -c 1 "$load" checks "$rate" 16 $((each + 2)) "$port"
    checks_pid=$background_pid
    sleep 1.5 # until its connections are open
    # shellcheck disable=SC2086 # numbers
    [ "$flood" = none ] || TLS_CA='' chrt --idle 0 taskset -c 1 "$load" flood "$each" ${flood_of[$flood]} "$port" >>"$dir/flood.$flood"
    forget "$checks_pid"
    value p99_us "$dir/checks" >>"$dir/p99.$flood"
    value failed "$dir/checks" >>"$dir/failed.$flood"
}
per_second() { awk -v n="$1" -v s="$each" 'BEGIN {printf "%.0f", n / s}'; }
came_through() { # KIND: in the last round
    local file=$dir/flood.$1
    printf '%s/s complete, %s/s half, %s/s garbage, %s stalled (the longest %s ms)' \
        "$(per_second "$(value full "$file")")" "$(per_second "$(value half "$file")")" \
        "$(per_second $(($(value garbage "$file") + $(value garbage_refused "$file"))))" \
        "$(value stalled_refused "$file")" "$(value longest_stall_ms "$file")"
}
tls_flood() {
    local round kind p99
    node flood
    for round in $(seq "$rounds"); do
        say "round $round of $rounds"
        for kind in none complete half mixed; do checks_during "$kind"; done
    done
    for kind in none complete half mixed; do
        p99=$(median <"$dir/p99.$kind")
        verdict "flood $kind: p99 of $rate checks a second is $p99 us ($(spread <"$dir/p99.$kind")), below $P99_MAX_US" \
            test "$p99" -lt "$P99_MAX_US"
        verdict "flood $kind: no check failed" test "$(sort -u "$dir/failed.$kind")" = 0
        [ "$kind" = none ] || say "flood $kind: $(came_through "$kind")"
    done
    internal /metrics | sed -n 's/^chatelaine_tls_handshakes_total/      &/p'
    stop_node "$node_pid"
}
