# Sourced by scripts/bench and scripts/build-pgo: what their parts share. Servers that are measured have names; a part
# describes each in the arrays below, runs rounds over them, and prints a table.
# shellcheck shell=bash disable=SC2154 # deployment.sh and scripts/bench set the others

MAKERS=8                 # of keys
declare -A label=()      # NAME: what the table calls it
declare -A pid_of=()     # NAME: the process whose CPU time counts, or several
declare -A url_of=()     # NAME: where it listens
declare -A keys_of=()    # NAME: the file of secrets that wrk walks, "$dir/keys" if not said
declare -A aside=()      # NAME: a function that runs beside wrk, told the name, until it is ended; it execs what it runs
tls_flags=()             # of nodes, if connections are to be encrypted
declare -A path_of=()    # NAME: the path that wrk asks for, /v1/whoami if not said
declare -A checked_of=() # NAME: the path that it asks about there, as nginx' auth_request does
declare -A refused=()    # NAME: answers in a hundred that have to be other than 200, 0 if not said
redis_servers=(redis)    # whose commands and CPU time count

port_of() { echo "${1##*:}"; } # URL
cpu_ns() {                     # PID…: the CPU time of their threads so far; /proc/PID/stat has the same in steps of 10 ms
    local pid file own rest total=0
    for pid; do
        for file in "/proc/$pid/task/"*/schedstat; do
            read -r own rest <"$file"
            total=$((total + own))
        done
    done
    echo "$total"
}
rss_kib() { awk '/^VmRSS/ {print $2}' "/proc/$1/status"; }
median() { sort -g | awk '{v[NR] = $1} END {print NR % 2 ? v[(NR + 1) / 2] : (v[NR / 2] + v[NR / 2 + 1]) / 2}'; }
percentiles() { # "p50 | p99 | max" of the numbers, one a line
    sort -g | awk '{v[NR] = $1} END {printf "%.0f | %.0f | %.0f", v[int(NR * 0.5 + 0.5)], v[int(NR * 0.99 + 0.5)], v[NR]}'
}
now_ms() { echo $(($(date +%s%N) / 1000000)); }

# --- the deployment --------------------------------------------------------------------------------------------------

# node NAME LEASE_MS [COMMAND PREFIX…]: starts one; 0 is strict mode.
node() {
    local id=$1
    node_flags=(--lease-ms "$2" "${tls_flags[@]}")
    shift 2
    start_node "$id" 10 "$@"
    pid_of[$id]=$node_pid url_of[$id]=$url
}
# deployment PREFIX NAME LEASE_MS [COMMAND PREFIX…]: in Redis under a prefix of its own; its first node, an account, and
# $first, a key that may do all.
deployment() {
    export CHATELAINE_PREFIX="$1:"
    shift
    make_account
    node "$@"
    sign_in
    step_up
    first_key
}
# two_paths ID: what is asked of the node that started last, by that id: whoami, and gateway, as nginx' auth_request asks.
two_paths() {
    label[whoami]="\`/v1/whoami\`" label[gateway]="\`/check/auth-request\` for \`/v1/patients/42\`"
    path_of[gateway]=/check/auth-request checked_of[gateway]=/v1/patients/42
    url_of[whoami]=$url url_of[gateway]=$scheme://$(jq -r .internal_listen "$dir/ready.$1")
    pid_of[whoami]=$node_pid pid_of[gateway]=$node_pid
}
stop_servers() {
    local server
    for server in "${!pid_of[@]}"; do
        [ "$server" = page ] || stop_node "${pid_of[$server]}" # nginx by another name
    done
    label=() pid_of=() url_of=() keys_of=() path_of=() checked_of=() aside=() refused=()
}
# make_keys COUNT FILE: secrets of the account to FILE, and their ids to FILE.ids. Several make them, for Redis syncs its
# file once for what it has read from all connections.
make_keys() {
    local maker makers=()
    say "making $1 keys"
    for maker in $(seq "$MAKERS"); do
        CHATELAINE_REDIS_TIMEOUT_MS=30000 "$build/test/bench/bench_fill" $((($1 + MAKERS - maker) / MAKERS)) "$account" \
            >"$2.made.$maker" &
        makers+=($!)
    done
    for maker in "${makers[@]}"; do wait "$maker" || die "the keys could not be made"; done
    cut -d' ' -f1 "$2".made.* >"$2"
    cut -d' ' -f2 "$2".made.* >"$2.ids"
    rm "$2".made.*
}
# mix_unknown IN_HUNDRED FILE RESULT: the file's secrets, some replaced by well-formed ones that were never added.
mix_unknown() {
    local step=$((100 / $1))
    "$build/test/bench/bench_fill" $(($(wc -l <"$2") / step + 1)) >"$dir/unknown.made"
    awk -v step="$step" -v unknown="$dir/unknown.made" \
        'NR % step == 0 {getline line <unknown; split(line, made, " "); $0 = made[1]} {print}' "$2" >"$3"
}
answer_bytes() { curl -si "$@" | wc -c; }
NGINX_HEAD_BYTES=148 # of an answer as `page` gives it
# One worker, logs off; $nginx_master is what ends it. With BYTES also `page`, whose answers have so many, head included.
start_nginx() {
    local port page_port page='' body tls='' ssl=''
    if [ "$scheme" = https ]; then
        ssl=' ssl' tls="ssl_certificate $dir/bench.pem; ssl_certificate_key $dir/bench.key; ssl_protocols TLSv1.2 TLSv1.3;"
    fi
    port=$(test/support/free-port)
    if [ -n "${1:-}" ]; then
        page_port=$(test/support/free-port)
        printf -v body '%*s' $(($1 - NGINX_HEAD_BYTES)) ''
        page="server { listen 127.0.0.1:$page_port$ssl; server_tokens off;
      location / { default_type application/json; return 200 '${body// /.}'; } }"
    fi
    cat >"$dir/nginx.conf" <<N
worker_processes 1; daemon off; pid $dir/nginx.pid; error_log /dev/null crit;
events { worker_connections 4096; }
http {
  access_log off; keepalive_requests 100000000; keepalive_timeout 75s;
  $tls
  client_body_temp_path $dir/n1; proxy_temp_path $dir/n2; fastcgi_temp_path $dir/n3; uwsgi_temp_path $dir/n4; scgi_temp_path $dir/n5;
  server { listen 127.0.0.1:$port$ssl; location / { default_type application/json; return 200 '{"status":"ok"}'; } }
  $page
}
N
    taskset -c 0 nginx -c "$dir/nginx.conf" &
    nginx_master=$!
    pids+=("$nginx_master")
    for _ in $(seq 100); do
        (exec 3<>"/dev/tcp/127.0.0.1/$port") 2>/dev/null && break
        sleep 0.05
    done
    label[nginx]="nginx \`return 200\`" pid_of[nginx]=$(pgrep -P "$nginx_master") url_of[nginx]=$scheme://127.0.0.1:$port
    [ -n "$page" ] || return 0
    label[page]="the same, as many bytes as Chatelaine answers" pid_of[page]=${pid_of[nginx]} url_of[page]=$scheme://127.0.0.1:$page_port
    [ "$(answer_bytes "${url_of[page]}")" = "$1" ] || die "nginx answers $(answer_bytes "${url_of[page]}") bytes in place of $1"
}

# --- what Redis does -------------------------------------------------------------------------------------------------

each_redis() { # COMMAND…
    local server
    for server in "${redis_servers[@]}"; do redis_at "$server" "$@"; done
}
redis_cpu_ns() {
    local server total=0
    for server in "${redis_servers[@]}"; do total=$((total + $(cpu_ns "${redis_pid_of[$server]}"))); done
    echo "$total"
}
# "name calls" a line, those inside scripts too, without what this script asks.
redis_calls() {
    each_redis info commandstats | tr -d '\r' |
        awk -F '[_:=,]' '/^cmdstat_/ {sub(/^cmdstat_/, ""); split($0, part, ":calls="); calls[part[1]] += part[2] + 0}
            END {for (name in calls) if (name !~ /^(info|ping|config.*|cluster.*)$/) print name, calls[name]}' | sort
}
# calls_between BEFORE AFTER: the same for what came between two files of redis_calls, most first.
calls_between() {
    join -a 2 -o 0,1.2,2.2 -e 0 "$1" "$2" | awk '$3 > $2 {print $1, $3 - $2}' | sort -k2 -gr
}
sum_calls() { awk '{sum += $2} END {print sum + 0}'; }
calls_at_rest=200 # within 1.2 s: heartbeats, no usage
# Waits until what a load leaves behind (usage to be flushed) is done: only heartbeats for more than a flush interval.
settle() {
    local before after
    after=$(redis_calls | sum_calls)
    for _ in $(seq 100); do
        before=$after
        sleep 1.2
        after=$(redis_calls | sum_calls)
        [ $((after - before)) -gt "$calls_at_rest" ] || return 0
    done
    die "Redis does not come to rest"
}

# --- rounds ----------------------------------------------------------------------------------------------------------

to_us() { awk -v v="$1" 'BEGIN {n = v + 0; if (v ~ /ms$/) n *= 1000; else if (v !~ /us$/) n *= 1000000; print n}'; }
# Checks, as check.lua tells. An array, for in the background a function would be a shell around wrk that gets its signals.
check_wrk=(taskset -c 1 wrk -s test/bench/check.lua)
# Each key is checked once: a cached node has all of them. And somebody has tried to sign in, as with any node that has
# been in service for a while: a process may be slower from its first thread on.
warm() { # NAME…
    local server url
    for server; do
        url=${url_of[$server]}
        http POST /v1/auth/login -H 'Origin: https://console.test' -H 'Content-Type: application/json' \
            -d "{\"email\":\"$server@nobody.test\",\"password\":\"a long wrong password\",\"totp\":\"123456\"}" >/dev/null
        expect 401 'a wrong login'
        BENCH_ONCE=1 "${check_wrk[@]}" -t1 -c"$connections" -d600 "${url_of[$server]}" -- "${keys_of[$server]:-$dir/keys}" >/dev/null
    done
}
# The refused answers must be as many as they have to be, give or take what chance does.
judge_refused() { # NAME REQUESTS REFUSED
    awk -v n="$2" -v bad="${3:-0}" -v want="${refused[$1]:-0}" \
        'BEGIN {d = bad / n * 100 - want; exit !(want == 0 ? bad == 0 : d * d < 1)}' ||
        die "$1: ${3:-0} of $2 answers were not 200"
}
# Beside checks, one of the keys that make_doomed made is revoked each $revoke_ms; who comes next goes on behind them.
doomed=''       # a file descriptor of ids
make_doomed() { # SECONDS
    make_keys $(($1 * 1000 / revoke_ms)) "$dir/doomed"
    : >"$dir/revoked"
    exec {doomed}<"$dir/doomed.ids"
}
# judge_changes STATUS FILE: all that bench_change printed have that status, and there are some.
judge_changes() {
    ! grep -qv " $1\$" "$2" || die "a change was refused: $(grep -v -m1 " $1\$" "$2")"
    [ -s "$2" ] || die "nothing was changed"
}
revoke_now_and_then() {
    BENCH_BEARER=$first exec taskset -c 1 "$build/test/bench/bench_change" "$revoke_ms" \
        "$(port_of "$url")" <&"$doomed" >>"$dir/revoked"
}
print_revoked() {
    exec {doomed}<&-
    printf 'Keys revoked meanwhile: %s.\n' "$(grep -c ' 200$' "$dir/revoked")"
    judge_changes 200 "$dir/revoked"
}
# load NAME SECONDS [WRK'S OPTION…]: checks, and beside them what belongs there. Leaves wrk's report in $dir/wrk.out and
# their number in the caller's $requests.
load() {
    local name=$1 seconds=$2 beside=''
    shift 2
    if [ -n "${aside[$name]:-}" ]; then
        "${aside[$name]}" "$name" &
        beside=$!
        pids+=("$beside")
    fi
    BENCH_PATH=${path_of[$name]:-${BENCH_PATH:-}} BENCH_CHECKED=${checked_of[$name]:-${BENCH_CHECKED:-}} \
        "${check_wrk[@]}" -t1 -c"$connections" -d"$seconds" "$@" "${url_of[$name]}" -- "${keys_of[$name]:-$dir/keys}" >"$dir/wrk.out"
    [ -z "$beside" ] || stop_node "$beside"
    requests=$(awk '/requests in/ {print $1}' "$dir/wrk.out")
    judge_refused "$name" "$requests" "$(awk '/Non-2xx/ {print $NF}' "$dir/wrk.out")"
}
# measure NAME: appends one line "us per request, requests per second, p50 us, p99 us, Redis us per request, Redis
# commands per request" to $dir/result.NAME.
measure() {
    local before after redis_before redis_after requests processes
    read -ra processes <<<"${pid_of[$1]}"
    settle
    redis_calls >"$dir/calls.before"
    redis_before=$(redis_cpu_ns) before=$(cpu_ns "${processes[@]}")
    load "$1" "$each" --latency
    settle # so that the last flush counts as well
    after=$(cpu_ns "${processes[@]}")
    redis_after=$(redis_cpu_ns)
    redis_calls >"$dir/calls.after"
    calls_between "$dir/calls.before" "$dir/calls.after" >"$dir/calls.$1"
    echo "$(per_request $((after - before)) "$requests")" "$(awk '/Requests\/sec/ {print $2}' "$dir/wrk.out")" \
        "$(to_us "$(awk '/ 50%/ {print $2}' "$dir/wrk.out")")" "$(to_us "$(awk '/ 99%/ {print $2}' "$dir/wrk.out")")" \
        "$(per_request $((redis_after - redis_before)) "$requests")" \
        "$(awk -v c="$(sum_calls <"$dir/calls.$1")" -v n="$requests" 'BEGIN {printf "%.4f", c / n}')" >>"$dir/result.$1"
}
per_request() { awk -v ns="$1" -v n="$2" 'BEGIN {printf "%.3f", ns / 1000 / n}'; } # NS REQUESTS: us
# in_rounds COUNT FUNCTION ROW…: calls it for each row, in random order: who came before leaves its traces in the caches.
in_rounds() {
    local count=$1 function=$2 round row
    shift 2
    for round in $(seq "$count"); do
        say "round $round of $count"
        for row in $(shuf -e "$@"); do "$function" "$row"; done
    done
}
rounds_of() { # NAME…
    local server
    for server; do rm -f "$dir/result.$server"; done
    in_rounds "$rounds" measure "$@"
}
column_median() { cut -d' ' -f"$2" "$dir/result.$1" | median; } # NAME COLUMN
ratio_of() {                                                    # NAME BASE [COLUMN]: the median of the rounds' ratios
    paste -d' ' "$dir/result.$1" "$dir/result.$2" | awk -v column="${3:-1}" '{printf "%.3f\n", $column / $(column + NF / 2)}' | median
}
# table TITLE NAME…: nginx must have been in the rounds.
table() {
    local server
    printf '\n| %s, %s connections, medians of %s rounds of %s s | CPU us/check | to nginx | checks/s | p50 us | p99 us | Redis CPU us/check | Redis commands/check |\n' \
        "$1" "$connections" "$rounds" "$each"
    printf '|---|---|---|---|---|---|---|---|\n'
    shift
    for server; do
        printf '| %s | %s | %.2f | %.0f | %s | %s | %s | %s |\n' "${label[$server]}" "$(column_median "$server" 1)" \
            "$(ratio_of "$server" nginx)" "$(column_median "$server" 2)" "$(column_median "$server" 3)" \
            "$(column_median "$server" 4)" "$(column_median "$server" 5)" "$(column_median "$server" 6)"
    done
}
# What Redis was asked in the last round, those inside scripts too.
print_calls() { # NAME…
    local server
    for server; do
        printf 'Redis commands in the last round, %s: %s.\n' "${label[$server]}" \
            "$(head -12 "$dir/calls.$server" | awk '{printf "%s%s %s", (NR > 1 ? ", " : ""), $1, $2}')"
    done
}
