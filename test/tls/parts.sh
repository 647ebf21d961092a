# Sourced by scripts/tls: its parts, and what they share.
# shellcheck shell=bash disable=SC2154 # deployment.sh and scripts/tls set the others

failures=0 verdicts=0
internal_flags=(--internal-tls-cert "$dir/ecdsa.pem,$dir/rsa.pem" --internal-tls-key "$dir/ecdsa.key,$dir/rsa.key"
    --internal-client-ca "$dir/ca.pem")

# verdict SENTENCE COMMAND…: whether it holds.
verdict() {
    local sentence=$1
    shift
    verdicts=$((verdicts + 1))
    if "$@"; then
        echo "PASS  $sentence"
    else
        echo "FAIL  $sentence"
        failures=$((failures + 1))
    fi
}
# value NAME FILE: of the last line of "name=value" pairs that has it.
value() { tr ' ' '\n' <"$2" | sed -n "s/^$1=//p" | tail -1; }
median() { sort -g | awk '{v[NR] = $1} END {print v[int((NR + 1) / 2)]}'; }
spread() { sort -g | awk '{v[NR] = $1} END {print v[1] " to " v[NR]}'; }
rss_kib() { awk '/^VmRSS/ {print $2}' "/proc/$1/status"; }
clients() { taskset -c 1 "$load" "$@"; }

# node NAME: starts one on core 0; sets node_pid, and what use_node sets.
node() {
    rm -f "$dir/ready.$1"
    start_node "$1" 10 taskset -c 0
    use_node "$1"
}
use_node() { # NAME: sets url, port, internal_url and internal_port
    url=https://$(jq -r .listen "$dir/ready.$1") internal_url=https://$(jq -r .internal_listen "$dir/ready.$1")
    port=${url##*:} internal_port=${internal_url##*:}
}
internal() { curl -sS --cert "$dir/gateway.pem" --key "$dir/gateway.key" "$internal_url$1"; } # PATH
# metric NAME [LABEL PATTERN]: the sum of its series that match.
metric() { internal /metrics | awk -v name="$1" -v labels="${2:-}" \
    'index($1, name) == 1 && $1 ~ labels {sum += $2} END {printf "%.0f", sum}'; }
# until_true SECONDS COMMAND…: whether it becomes true in time; sets waited_ms.
until_true() {
    local began_ms patience_ms=$(($1 * 1000))
    began_ms=$(($(date +%s%N) / 1000000))
    shift
    while :; do
        waited_ms=$(($(date +%s%N) / 1000000 - began_ms))
        ! "$@" || return 0
        ((waited_ms < patience_ms)) || return 1
        sleep 0.02
    done
}
# in_background FILE COMMAND…: sets background_pid.
in_background() {
    local file=$1
    shift
    "$@" >"$file" &
    background_pid=$!
    pids+=("$background_pid")
}
end_background() { # PID…
    local pid
    kill "$@"
    for pid; do forget "$pid"; done
}

# shellcheck source=test/tls/testssl.sh
. test/tls/testssl.sh
# shellcheck source=test/tls/reload.sh
. test/tls/reload.sh
# shellcheck source=test/tls/flood.sh
. test/tls/flood.sh

# --- resume ----------------------------------------------------------------------------------------------------------

# resume_at SENTENCE COUNT PORT…
resume_at() {
    local sentence=$1 count=$2
    shift 2
    clients resume "$count" "$@" >"$dir/resume"
    verdict "$sentence: $(value resumed "$dir/resume") of $count resumed, $(value failed "$dir/resume") failed, in $(value ms "$dir/resume") ms" \
        test "$(value failed "$dir/resume")" = 0 -a "$(value resumed "$dir/resume")" -ge $((count - 1))
}
tls_resume() {
    local one=$port before
    before=$(metric chatelaine_tls_handshakes_total resumed)
    resume_at "one node, TLS 1.3" "$reconnects" "$one"
    TLS_VERSION=1.2 resume_at "one node, TLS 1.2" "$reconnects" "$one"
    verdict "the node's metric counts them: $(($(metric chatelaine_tls_handshakes_total resumed) - before))" \
        test $(($(metric chatelaine_tls_handshakes_total resumed) - before)) -ge $((2 * (reconnects - 1)))
    start_node second 10 taskset -c 0
    resume_at "two nodes in turn, TLS 1.3" "$reconnects" "$one" "${url##*:}"
    TLS_VERSION=1.2 resume_at "two nodes in turn, TLS 1.2" "$reconnects" "$one" "${url##*:}"
    stop_node "$node_pid"
}

# --- memory ----------------------------------------------------------------------------------------------------------

IDLE_MAX_BYTES=$((24 * 1024))
# idle_with SENTENCE PATH: of new nodes, as many as it takes to open that many files.
idle_with() {
    local i before=0 after=0 opened=0 still_open=0 each=$((idle / idle_nodes)) nodes=() loads=()
    for ((i = 0; i < idle_nodes; i++)); do
        node "idle$i"
        clients full 10 "$port" >/dev/null # what the first connection needs once is not counted
        before=$((before + $(rss_kib "$node_pid")))
        nodes+=("$node_pid")
        TLS_PATH=$2 in_background "$dir/idle.$i" taskset -c 1 "$load" idle "$each" "$port"
        loads+=("$background_pid")
    done
    for ((i = 0; i < idle_nodes; i++)); do
        until_true 120 grep -q '^opened=' "$dir/idle.$i" || die "the connections were not opened in time"
        opened=$((opened + $(value opened "$dir/idle.$i")))
    done
    ((opened == each * idle_nodes)) || die "only $opened connections could be opened"
    for i in "${nodes[@]}"; do after=$((after + $(rss_kib "$i"))); done
    for ((i = 0; i < idle_nodes; i++)); do
        end_background "${loads[i]}"
        still_open=$((still_open + $(value still_open "$dir/idle.$i")))
        stop_node "${nodes[i]}"
    done
    verdict "$1, at $idle_nodes nodes: $(((after - before) * 1024 / opened)) bytes each (at most $IDLE_MAX_BYTES)" \
        test $(((after - before) * 1024 / opened)) -le "$IDLE_MAX_BYTES"
    verdict "all are still open: $still_open of $opened" test "$still_open" = "$opened"
}
tls_memory() {
    local largest=/openapi.json bytes
    bytes=$(curl -sSf "$url$largest" | wc -c)
    idle_with "$idle idle connections after a check" /v1/whoami
    idle_with "$idle idle connections after the largest response ($((bytes / 1024)) KiB)" "$largest"
}
