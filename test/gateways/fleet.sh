# Sourced by scripts/gateways: Redis, three nodes, the sample backend, and gateways in front of them. Ports are fixed, so
# that a node that restarts is found where it was. Each node has an address of its own, as on a machine of its own, so that
# all can have the same ports: Caddy's configuration names one for the health checks of all nodes (--rolling).
# shellcheck shell=bash

declare -A port=() node_pids=() gateway_url=()
copies=(nochecks catchall nobackend small strict) # test/gateways/outages.sh
gateway_files=docker/gateways
for server in backend h2c nobody echo healthecho healthbackend healthh2c healthsample healthsidecar "${copies[@]/#/health}" \
    node check "${gateways[@]}" "${gateways[@]/%/-h2c}" \
    "${gateways[@]/%/-sidecar}" "${gateways[@]/%/-echo}"; do
    port[$server]=$(test/support/free-port)
done
for server in "${copies[@]}"; do
    port[$server]=${port[backend]}
    for gateway in "${gateways[@]}"; do port["$gateway-$server"]=$(test/support/free-port); done
done
port[sidecar]=${port[backend]} port[nobackend]=${port[nobody]}
check_socket=$dir/check.sock # of the fourth node
first_table=$dir/table1.sock # of the first
node_at() { echo "127.0.0.$1:${port[node]}"; }
check_at() { echo "127.0.0.$1:${port[check]}"; }

export CHATELAINE_TRUSTED_PROXIES=127.0.0.1/32
# The sample policy, and what everybody may do.
jq '(.routes[] | select(.path == "/v1/patients")).preflight = true
    | .routes += [{path: "/v1/documents/types", read: "public", write: "documents:write"},
                  {path: "/v1/leaflets", read: "public", preflight: true}]' docker/policy.json >"$dir/policy.json"
run_node() { # NUMBER: the fourth is the one that gateways know by its socket alone
    rm -f "$dir/ready.node$1"
    node_flags=(--policy-file "$dir/policy.json" --step-up-ms 1h --table "$dir/table$1.sock")
    node_flags+=(--listen "$(node_at "$1")" --internal-listen "$(check_at "$1")")
    [ "$1" != 4 ] || node_flags+=(--check-socket "$check_socket")
    start_node "node$1" 120
    node_pids[$1]=$node_pid
}

# fitted FILE FOLDER BACKEND: with the addresses of this deployment, and what it writes in that folder. A node's socket is
# there only for the backend that is called sidecar, no other node for the one called nochecks, and for catchall a server
# that says 200 to everything.
fitted() {
    local socket=$2/none table=$first_table checks="127.0.0.\\1:${port[check]}"
    [ "$3" != sidecar ] || socket=$check_socket
    [ "$3" != nochecks ] || table=$2/none checks=127.0.0.1:${port[nobody]}
    [ "$3" != catchall ] || table=$2/none checks=127.0.0.1:${port[backend]}
    sed -E -e "s#node([123]):8080 port 8081#node\1:8080 port ${port[check]}#; s#health_port 8081#health_port ${port[check]}#" \
        -e "s#node([123]):8081#$checks#g; s#node([123]):8080#127.0.0.\1:${port[node]}#g" \
        -e "s#backend:(8080|8443)#127.0.0.1:${port[$3]}#g; s#127.0.0.1:8082#127.0.0.1:${port[health$3]}#g" \
        -e "s#https://(nodes|checks|backend|[$]checked)#http://\1#; /include tls.conf;/d; s#listen 8443 ssl#listen 8080#" \
        -e "s#/tmp/#$2/#g; s#/dev/stdout#$2/log#g; s#/etc/haproxy/#$2/#g" \
        -e "s#abns@chatelaine-checks#abns@chatelaine-checks-${2//\//-}#g; s#/run/chatelaine/check.sock#$socket#g" \
        -e "s#/run/chatelaine/table.sock#$table#" "$1"
}

await_port() { # PORT NAME
    for _ in $(seq 6000); do
        (exec 3<>"/dev/tcp/127.0.0.1/$1") 2>/dev/null && return
        sleep 0.02
    done
    die "$2 did not start: $(tail -5 "$dir/$2.log")"
}
# The sanitizers of a library, which have to be loaded before it into a program that has none.
sanitizers_of() { ldd "$1" | awk '/lib[au]b?san/ {print $3}' | paste -sd:; }
run_nginx() { # FILE FOLDER NAME: its workers as whoever runs this, or they could not connect to that one's sockets
    nginx -e "$2/error" -c "$1" -g "daemon off; user $(id -un) $(id -gn);" >"$dir/$3.log" 2>&1 &
    pids+=($!)
}
# padded PATH NUMBER: a location whose answers have so many headers of 1,500 bytes.
padded() {
    echo "location = $1 {"
    for _ in $(seq "$2"); do printf 'add_header X-Padding %01500d;\n' 0; done
    echo 'return 200 "{}"; }'
}
start_backend() {
    mkdir "$dir/backend"
    { padded /v1/patients/head-6000 4 && padded /v1/patients/head-15000 10; } >"$dir/backend/padded"
    sed -e "s#listen 8443 ssl#listen 127.0.0.1:${port[backend]}#; /include tls.conf;/d; s#127.0.0.1:8082#127.0.0.1:${port[healthsample]}#" \
        -e "s#/tmp/#$dir/backend/#g" -e "/location \/ {/r $dir/backend/padded" docker/backend/nginx.conf >"$dir/backend/conf"
    run_nginx "$dir/backend/conf" "$dir/backend" backend
    await_port "${port[backend]}" backend
    # Passes on what it gets, and adds nothing.
    nghttpx --conf=/dev/null --single-process --workers=1 --frontend="127.0.0.1,${port[h2c]};no-tls" \
        --backend="127.0.0.1,${port[backend]}" --no-via --no-add-x-forwarded-proto --no-strip-incoming-x-forwarded-proto \
        --accesslog-file=/dev/null --errorlog-file="$dir/h2c.errors" >"$dir/h2c.log" 2>&1 &
    h2c_pid=$!
    pids+=("$h2c_pid")
    await_port "${port[h2c]}" h2c
}
limit_bodies() { # FILE: for our own routes, and less strictly for the backend
    sed -i -e 's#client_max_body_size 64m;#client_max_body_size 1k;#; /location \/ {/a client_max_body_size 100k;' "$1"
}
# allow_list FILE: no header passes but those that are named.
allow_list() {
    sed -i -e "/location \/ {/a include $PWD/$gateway_files/nginx/allowed.conf;" -e 's/^    #http-request del-header/    http-request del-header/' "$1"
}
# start_gateway NAME BACKEND: from $gateway_files, as NAME before the sample backend, as NAME-h2c before the server that
# upgrades, as NAME-sidecar before the sample backend and with a node's socket; NAME-nochecks, NAME-small and so on:
# test/gateways/outages.sh; NAME-echo: test/gateways/doctor.sh.
start_gateway() {
    local as=$1 folder listen
    [ "$2" = backend ] || as=$1-$2
    folder=$dir/$as listen=127.0.0.1:${port[$as]}
    mkdir "$folder"
    case $1 in
        nginx)
            fitted "$gateway_files/nginx/nginx.conf" "$folder" "$2" | sed "s#listen 8080#listen $listen#" >"$folder/conf"
            [ "$2" != small ] || limit_bodies "$folder/conf"
            [ "$2" != strict ] || allow_list "$folder/conf"
            run_nginx "$folder/conf" "$folder" "$as"
            ;;
        nginx-module)
            sed -f "$gateway_files/nginx/module.sed" "$gateway_files/nginx/nginx.conf" >"$folder/with-module"
            fitted "$folder/with-module" "$folder" "$2" | sed -e "s#listen 8080#listen $listen#" \
                -e "s#listen 127.0.0.1:${port[health$2]}#listen unix:$folder/health.sock#" \
                -e "s#modules/ngx_http_chatelaine_module.so#$module#" \
                -e '/location \/ {/a add_header Checked-By $chatelaine_from always;' >"$folder/conf"
            [ "$2" != small ] || limit_bodies "$folder/conf"
            LD_PRELOAD=$(sanitizers_of "$module") ASAN_OPTIONS=detect_leaks=0 run_nginx "$folder/conf" "$folder" "$as"
            ;;
        haproxy)
            fitted "$gateway_files/haproxy/haproxy.cfg" "$folder" "$2" | sed "s#bind :8080#bind $listen#" >"$folder/conf"
            [ "$2" != strict ] || allow_list "$folder/conf"
            fitted "$gateway_files/haproxy/forward-auth.lua" "$folder" "$2" >"$folder/forward-auth.lua"
            haproxy -db -f "$folder/conf" >"$folder/log" 2>"$dir/$as.log" &
            pids+=($!)
            ;;
        caddy)
            fitted "$gateway_files/caddy/Caddyfile" "$folder" "$2" | sed "s#^:8080 {#http://:${port[$as]} {\nbind 127.0.0.1#" >"$folder/conf"
            # Without them, Caddy has to find out by the requests, and does so however busy the machine is.
            [ "$part" = rolling ] || sed -i '/health_/d' "$folder/conf"
            XDG_DATA_HOME=$folder XDG_CONFIG_HOME=$folder caddy run --adapter caddyfile --config "$folder/conf" >"$dir/$as.log" 2>&1 &
            pids+=($!)
            ;;
    esac
    await_port "${port[$as]}" "$as"
    gateway_url[$as]=http://$listen
}
