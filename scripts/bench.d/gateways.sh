# Sourced by scripts/bench. One node and one nginx worker share core 0: through nginx a request is a client's connection,
# a check and a backend's answer. The gateway is the nginx.conf of docker/gateways with one worker, one node and no access
# log; the backend is a `return 200` of the same nginx process, and so is the plain gateway, which has no auth_request.
# shellcheck shell=bash disable=SC2154

PATHS_PAUSE_MS=5 # between two requests of a connection, at the moderate rate
PAUSED_CONNECTIONS=8

declare -A path_of=() checked_of=() # NAME: what wrk asks for; the path that a check is about

start_bench_gateway() { # sets gateway_pid, gateway_url, plain_url
  local folder=$dir/gateway port plain backend node internal master
  mkdir "$folder"
  port=$(free_port) plain=$(free_port "$port") backend=$(free_port "$port" "$plain")
  node=$(jq -r .listen "$dir/ready.gateways") internal=$(jq -r .internal_listen "$dir/ready.gateways")
  sed -e "s#server node1:8081 .*#server $internal;#; s#server node1:8080 .*#server $node;#; /server node[23]:/d" \
    -e "s#server backend:8080 .*#server 127.0.0.1:$backend;#; s#listen 8080 default_server#listen 127.0.0.1:$port#" \
    -e "s#listen 127.0.0.1:8082#listen 127.0.0.1:$(free_port "$port" "$plain" "$backend")#; s#/tmp/#$folder/#g" \
    -e "s#worker_processes auto#worker_processes 1#; s#access_log /dev/stdout requests;#access_log off; keepalive_requests 100000000;#" \
    docker/gateways/nginx/nginx.conf >"$folder/conf"
  sed -i '$d' "$folder/conf" # the brace that closes http: two servers more
  cat >>"$folder/conf" <<N
  server { listen 127.0.0.1:$backend; return 200 '{"status":"ok"}'; }
  server {
    listen 127.0.0.1:$plain;
    location / {
      proxy_set_header Host \$http_host; proxy_set_header Connection ""; proxy_set_header X-Forwarded-For \$remote_addr;
      proxy_pass http://backend;
    }
  }
}
N
  taskset -c 0 nginx -e "$folder/error" -c "$folder/conf" -g 'daemon off;' >"$dir/gateway.log" 2>&1 &
  master=$!
  pids+=("$master")
  for _ in $(seq 200); do (exec 3<>"/dev/tcp/127.0.0.1/$port") 2>/dev/null && break; sleep 0.02; done
  gateway_pid=$(pgrep -P "$master") || die "nginx did not start: $(cat "$dir/gateway.log")"
  gateway_url=http://127.0.0.1:$port plain_url=http://127.0.0.1:$plain internal_url=http://$internal
}
# measure_path NAME CONNECTIONS [DELAY_MS]: one line "requests per second, p50 us, p99 us, nginx us per request, node us per
# request" more in $dir/result.NAME.
measure_path() {
  local gateway_before node_before requests
  gateway_before=$(cpu_ns "$gateway_pid") node_before=$(cpu_ns "${pid_of[gateways]}")
  BENCH_PATH=${path_of[$1]} BENCH_CHECKED=${checked_of[$1]:-} BENCH_DELAY_MS=${3:-} \
    "${check_wrk[@]}" -t1 -c"$2" -d"$each" --latency "${url_of[$1]}" -- "$dir/keys" >"$dir/wrk.out"
  ! grep -q Non-2xx "$dir/wrk.out" || die "$1: $(grep Non-2xx "$dir/wrk.out")"
  requests=$(awk '/requests in/ {print $1}' "$dir/wrk.out")
  echo "$(awk '/Requests\/sec/ {print $2}' "$dir/wrk.out")" "$(to_us "$(awk '/ 50%/ {print $2}' "$dir/wrk.out")")" \
    "$(to_us "$(awk '/ 99%/ {print $2}' "$dir/wrk.out")")" \
    "$(per_request $(($(cpu_ns "$gateway_pid") - gateway_before)) "$requests")" \
    "$(per_request $(($(cpu_ns "${pid_of[gateways]}") - node_before)) "$requests")" >>"$dir/result.$1"
}
paths_table() { # TITLE NAME…
  local path
  printf '\n| %s | requests/s | p50 us | p99 us | nginx CPU us/request | node CPU us/request |\n|---|---|---|---|---|---|\n' "$1"
  shift
  for path; do
    printf '| %s | %.0f | %.0f | %.0f | %.2f | %.2f |\n' "${label[$path]}" "$(column_median "$path" 1)" \
      "$(column_median "$path" 2)" "$(column_median "$path" 3)" "$(column_median "$path" 4)" "$(column_median "$path" 5)"
  done
}
measure_paths() { # CONNECTIONS DELAY_MS NAME…: all rounds
  local round path connections=$1 delay=$2
  shift 2
  for path; do rm -f "$dir/result.$path"; done
  for round in $(seq "$rounds"); do
    say "round $round of $rounds"
    for path; do measure_path "$path" "$connections" "$delay"; done
  done
}
bench_gateways() {
  local paths=(direct plain checked)
  deployment gateways gateways "$lease_ms" taskset -c 0
  make_keys "$keys" "$dir/keys"
  keys_of[gateways]=$dir/keys
  warm gateways
  start_bench_gateway
  url_of[direct]=$internal_url path_of[direct]=/check/auth-request checked_of[direct]=/v1/patients/1
  url_of[plain]=$plain_url path_of[plain]=/v1/patients/1
  url_of[checked]=$gateway_url path_of[checked]=/v1/patients/1
  label[direct]="\`/check/auth-request\` directly"
  label[plain]="nginx → backend, without a check"
  label[checked]="nginx → check → backend"
  measure_paths "$connections" '' "${paths[@]}"
  paths_table "$keys keys, $connections connections, medians of $rounds rounds of $each s" "${paths[@]}"
  measure_paths "$PAUSED_CONNECTIONS" "$PATHS_PAUSE_MS" "${paths[@]}"
  paths_table "the same, $PAUSED_CONNECTIONS connections that pause $PATHS_PAUSE_MS ms before each request" "${paths[@]}"
}
