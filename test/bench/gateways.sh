# Sourced by scripts/bench: what a check costs the gateway that asks for it.
# shellcheck shell=bash disable=SC2154,SC2034 # measure.sh sets and reads the others

declare -A gateway_ns=() node_ns=() requests_of=() # ROW: of the round so far
use_every_s=60
gateway_rows=() # "nginx-alone", "nginx-tcp", "nginx-unix", "nginx-module", …

# Those of one gateway: one process each, with one thread, which passes requests on to one backend. `alone` asks nobody;
# `tcp` and `unix` ask the same node before each request; `module` looks into that node's table, and asks over the
# Unix socket for what is not there. All of nginx pass on who asks.
nginx_row() { # ROW PORT ASKED: ASKED is empty for none
    local check='' load='' table='' by='auth_request /_check;' name tell=''
    if [ "$1" = nginx-module ]; then
        load="load_module $nginx_module;" table="chatelaine_table $dir/table.sock;"
        by='chatelaine_check /_check; chatelaine_scope read=patients:read;'
        for name in Account Principal Kind Mode Scopes Billable; do tell+="proxy_set_header X-Auth-$name \$chatelaine_${name,,}; "; done
    else
        for name in Account Principal Kind Mode Scopes Billable; do
            by+="auth_request_set \$auth_${name,,} \$upstream_http_x_auth_${name,,}; "
            tell+="proxy_set_header X-Auth-$name \$auth_${name,,}; "
        done
    fi
    [ -z "$3" ] || check="location /v1/patients { $by proxy_set_header Connection ''; $tell proxy_pass http://backend; }
      location = /_check {
        internal; proxy_pass http://checks/check/auth-request; proxy_pass_request_body off;
        proxy_set_header Content-Length ''; proxy_set_header Connection '';
        proxy_set_header X-Original-Method \$request_method; proxy_set_header X-Original-URI \$request_uri;
      }"
    cat >"$dir/$1.conf" <<N
$load worker_processes 1; daemon off; master_process off; pid $dir/$1.pid; error_log /dev/null crit;
events { worker_connections 4096; }
http {
  $table
  access_log off; keepalive_requests 100000000; keepalive_timeout 75s; proxy_http_version 1.1; proxy_set_header Connection '';
  client_body_temp_path $dir/$1.1; proxy_temp_path $dir/$1.2; fastcgi_temp_path $dir/$1.3; uwsgi_temp_path $dir/$1.4; scgi_temp_path $dir/$1.5;
  upstream backend { server 127.0.0.1:$backend_port; keepalive 256; keepalive_requests 100000000; }
  upstream checks { server ${3:-127.0.0.1:1}; keepalive 256; keepalive_requests 100000000; }
  server { listen 127.0.0.1:$2; ${check:-location / { proxy_pass http://backend; \}} }
}
N
    taskset -c 0 nginx -e /dev/null -c "$dir/$1.conf" &
}
haproxy_row() { # ROW PORT ASKED
    local asked=${3/#unix:/unix@}
    sed "s#abns@chatelaine-checks#abns@bench-$$-$1#" docker/gateways/haproxy/forward-auth.lua >"$dir/$1.lua"
    cat >"$dir/$1.conf" <<H
global
    nbthread 1
    maxconn 4096
    lua-load $dir/$1.lua
defaults
    mode http
    timeout connect 1s
    timeout client 75s
    timeout server 75s
frontend gateway
    bind 127.0.0.1:$2
    ${3:+http-request lua.forward_auth}
    default_backend backends
listen checks
    bind abns@bench-$$-$1
    http-reuse always
    server node ${asked:-127.0.0.1:1}
backend backends
    http-reuse always
    server backend 127.0.0.1:$backend_port
H
    taskset -c 0 haproxy -db -f "$dir/$1.conf" >/dev/null 2>&1 &
}
caddy_row() { # ROW PORT ASKED
    local check=''
    [ -z "$3" ] || check="reverse_proxy ${3/#unix:/unix\/} {
        method GET
        rewrite /check/forward-auth
        header_up X-Forwarded-Method {method}
        header_up X-Forwarded-Uri {uri}
        transport http {
            keepalive_idle_conns_per_host 256
        }
        @allowed status 200
        handle_response @allowed {
            request_header X-Auth-Account {http.reverse_proxy.header.X-Auth-Account}
        }
    }"
    cat >"$dir/$1.conf" <<C
{
    admin off
    auto_https off
}
http://127.0.0.1:$2 {
    route {
        $check
        reverse_proxy 127.0.0.1:$backend_port {
            transport http {
                keepalive_idle_conns_per_host 256
            }
        }
    }
}
C
    GOMAXPROCS=1 XDG_DATA_HOME=$dir XDG_CONFIG_HOME=$dir taskset -c 0 caddy run --adapter caddyfile --config "$dir/$1.conf" >/dev/null 2>&1 &
}
start_row() { # GATEWAY WAY ASKED
    local port row=$1-$2
    port=$(test/support/free-port)
    "$1_row" "$row" "$port" "$3"
    pid_of[$row]=$! url_of[$row]=http://127.0.0.1:$port
    pids+=("$!")
    gateway_rows+=("$row")
    await_listener "$port" "$row"
}
await_listener() { # PORT NAME
    for _ in $(seq 500); do
        ! (exec 3<>"/dev/tcp/127.0.0.1/$1") 2>/dev/null || return 0
        sleep 0.02
    done
    die "$2 does not listen"
}
# On core 1, beside wrk: only the gateways and the node are measured.
start_backend() {
    backend_port=$(test/support/free-port)
    cat >"$dir/backend.conf" <<N
worker_processes 1; daemon off; master_process off; pid $dir/backend.pid; error_log /dev/null crit;
events { worker_connections 4096; }
http {
  access_log off; keepalive_requests 100000000; keepalive_timeout 75s;
  client_body_temp_path $dir/b1; proxy_temp_path $dir/b2; fastcgi_temp_path $dir/b3; uwsgi_temp_path $dir/b4; scgi_temp_path $dir/b5;
  server { listen 127.0.0.1:$backend_port; location / { default_type application/json; return 200 '{"status":"ok"}'; } }
}
N
    taskset -c 1 nginx -e /dev/null -c "$dir/backend.conf" &
    pids+=("$!")
    await_listener "$backend_port" "the backend"
}
gateway_turn() { # ROW: a second of requests
    local own=${pid_of[$1]} before node_before requests asked=0 options=()
    [[ $1 != *-module ]] || asked=$(checks_answered)
    [ -z "$pause_ms" ] || options=(--latency)
    before=$(cpu_ns "$own") node_before=$(cpu_ns "$node_pid")
    BENCH_DELAY_MS=$pause_ms BENCH_PATH=/v1/patients/1 load "$1" 1 "${options[@]}"
    [ -z "$pause_ms" ] || echo "$(to_us "$(awk '/ 50%/ {print $2}' "$dir/wrk.out")") $(to_us "$(awk '/ 99%/ {print $2}' "$dir/wrk.out")")" >>"$dir/latency.$1"
    requests_of[$1]=$((${requests_of[$1]} + requests))
    gateway_ns[$1]=$((${gateway_ns[$1]} + $(cpu_ns "$own") - before))
    node_ns[$1]=$((${node_ns[$1]} + $(cpu_ns "$node_pid") - node_before))
    [[ $1 != *-module ]] || asked_of_round=$((asked_of_round + $(checks_answered) - asked))
}
# A gateway that asks must refuse who has no key, and one that does not ask must not: each measures what it says.
prove_row() { # ROW
    local want=401
    [[ $1 != *-alone ]] || want=200
    url=${url_of[$1]}
    http GET /v1/patients/1 >/dev/null
    expect "$want" "$1 without a key"
    BENCH_PATH=/v1/patients/1 load "$1" 1
    [[ $1 != *-module ]] || prove_table "$1"
}
# The node puts a key into the table when it is first asked about it. Soon the table has all keys, and the node is hardly
# asked.
prove_table() { # ROW
    local before asked requests
    BENCH_ONCE=1 BENCH_PATH=/v1/patients/1 "${check_wrk[@]}" -t1 -c"$connections" -d600 "${url_of[$1]}" -- "$dir/keys" >/dev/null
    for _ in $(seq 20); do
        before=$(checks_answered)
        BENCH_PATH=/v1/patients/1 load "$1" 1
        asked=$(($(checks_answered) - before))
        [ $((asked * 100)) -gt "$requests" ] || return 0
    done
    die "$1 asked the node for $asked of $requests requests"
}
checks_answered() { # over HTTP
    curl -sS "http://$(jq -r .internal_listen "$dir/ready.asked")/metrics" |
        awk '/^chatelaine_requests_total/ {sum += $NF} END {printf "%d", sum}'
}
gateway_round() { # ROUND
    local row second
    say "round $1 of $rounds"
    asked_of_round=0
    for row in "${gateway_rows[@]}"; do gateway_ns[$row]=0 node_ns[$row]=0 requests_of[$row]=0; done
    for second in $(seq "$each"); do
        for row in $(shuf -e "${gateway_rows[@]}"); do gateway_turn "$row"; done
    done
    for row in "${gateway_rows[@]}"; do
        echo "$(per_request "${gateway_ns[$row]}" "${requests_of[$row]}") $(per_request "${node_ns[$row]}" "${requests_of[$row]}")" \
            "$((${requests_of[$row]} / each))" >>"$dir/gateway.$row"
        [[ $row != *-module ]] ||
            awk -v a="$asked_of_round" -v n="${requests_of[$row]}" 'BEGIN {printf "%.2f\n", 100 * a / n}' >>"$dir/asked.$row"
    done
}
# Each turn begins with some seconds without requests, and each row has one turn in four. So that the table's keys are
# in use all the time, as they are behind a gateway with as many requests, another reader asks for each once a minute.
use_table() {
    taskset -c 1 "$build/test/bench/bench_table" "$dir/table.sock" "$dir/keys" 86400 $((keys / use_every_s + 1)) >/dev/null &
    table_user=$!
    pids+=("$table_user")
}
spread() { # ROW COLUMN: median (least to most)
    printf '%s (%s to %s)' "$(cut -d' ' -f"$2" "$dir/gateway.$1" | median)" \
        "$(cut -d' ' -f"$2" "$dir/gateway.$1" | sort -g | head -1)" "$(cut -d' ' -f"$2" "$dir/gateway.$1" | sort -g | tail -1)"
}
added() { # ROW BASE: the median of the rounds' differences
    paste -d' ' "$dir/gateway.$1" "$dir/gateway.$2" | awk '{printf "%.3f\n", $1 - $4}' | median
}
latency_column() { # ROW
    [ -z "$pause_ms" ] ||
        printf ' %s, %s |' "$(cut -d' ' -f1 "$dir/latency.$1" | median)" "$(cut -d' ' -f2 "$dir/latency.$1" | median)"
}
# The module asks its own machine's node, over the Unix socket, about keys that are not in the table.
start_module_row() {
    nginx_module=$(realpath -m "$build/src/nginx/ngx_http_chatelaine_module.so") # nginx knows no working folder
    [ -n "${BUILD:-}" ] || build_preset pgo --target nginx_module
    if [ -e "$nginx_module" ]; then
        start_row nginx module "unix:$dir/check.sock"
    else
        say "the module for nginx is not built (target nginx_module): left out"
    fi
}
bench_gateways() {
    local gateway way round row
    node_flags=(--lease-ms "$lease_ms" --check-socket "$dir/check.sock" --table "$dir/table.sock"
        --table-keys $((keys > 80000 ? keys * 5 / 4 : 100000))) # which has room for all
    export CHATELAINE_PREFIX=gateways:
    make_account
    start_node asked 10 taskset -c 0
    sign_in
    step_up
    first_key
    make_keys "$keys" "$dir/keys"
    start_backend
    for gateway in $gateways; do
        command -v "$gateway" >/dev/null || {
            say "$gateway is not installed: left out"
            continue
        }
        start_row "$gateway" alone ''
        start_row "$gateway" tcp "$(jq -r .internal_listen "$dir/ready.asked")"
        start_row "$gateway" unix "unix:$dir/check.sock"
        [ "$gateway" != nginx ] || start_module_row
    done
    for row in "${gateway_rows[@]}"; do prove_row "$row"; done
    [[ " ${gateway_rows[*]} " != *" nginx-module "* ]] || use_table
    for round in $(seq "$rounds"); do gateway_round "$round"; done
    printf '\n| %s keys, %s connections, medians of %s rounds of %s s in turns of 1 s | gateway CPU us/request | added by the check | node CPU us/request | requests/s |%s\n' \
        "$keys" "$connections" "$rounds" "$each" "${pause_ms:+ p50 us, p99 us: medians of the turns |}"
    printf '|---|---|---|---|---|%s\n' "${pause_ms:+---|}"
    for row in "${gateway_rows[@]}"; do
        printf '| %s, %s | %s | %s | %s | %s |%s\n' "${row%-*}" "${row#*-}" "$(spread "$row" 1)" \
            "$(added "$row" "${row%-*}-alone")" "$(spread "$row" 2)" "$(spread "$row" 3)" "$(latency_column "$row")"
    done
    [[ " ${gateway_rows[*]} " != *" nginx-module "* ]] || table_alone
    stop_gateways
}
table_alone() {
    stop_node "$table_user"
    printf '\nOf the requests through the module, %s %% asked the node (least %s, most %s).\n' \
        "$(median <"$dir/asked.nginx-module")" "$(sort -g "$dir/asked.nginx-module" | head -1)" \
        "$(sort -g "$dir/asked.nginx-module" | tail -1)"
    printf '\nThe table alone, without a gateway: %s.\n' \
        "$(taskset -c 0 "$build/test/bench/bench_table" "$dir/table.sock" "$dir/keys" "$each")"
}
stop_gateways() {
    local row
    for row in "${gateway_rows[@]}"; do
        kill "${pid_of[$row]}"
        forget "${pid_of[$row]}"
    done
    pid_of=([asked]=$node_pid) gateway_rows=()
}
