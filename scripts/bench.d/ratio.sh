# Sourced by scripts/bench.
# shellcheck shell=bash disable=SC2154,SC2034 # measure.sh sets and reads the others

begun='' # the process to end
begin_nginx() {
  start_nginx
  begun=${pids[-1]}
}
begin_cached() {
  node "cached$1" "$lease_ms" taskset -c 0
  begun=$node_pid pid_of[cached]=$node_pid url_of[cached]=$url
  # So many wrong logins would be held up.
  redis eval "for _, key in ipairs(redis.call('keys', '*throttle*')) do redis.call('del', key) end" 0 >/dev/null
  warm cached
}
# Where its memory came to lie makes a process some percent slower or faster than the next of its kind, for as long as
# it runs: here each is started anew for each measurement.
bench_ratio() {
  local round server
  deployment ratio first "$lease_ms" taskset -c 0
  make_keys "$keys" "$dir/keys"
  stop_node "${pid_of[first]}"
  rm -f "$dir/result.nginx" "$dir/result.cached"
  for round in $(seq "$rounds"); do
    say "round $round of $rounds"
    for server in $(shuf -e nginx cached); do
      "begin_$server" "$round"
      measure "$server"
      stop_node "$begun"
    done
  done
  pid_of=()
  label[cached]="Chatelaine \`GET /v1/whoami\`, cached, lease $lease_ms ms"
  table "$keys keys, started anew each time" nginx cached
  paste -d' ' "$dir/result.cached" "$dir/result.nginx" |
    awk '{v = log($1 / $7); sum += v; squares += v * v}
      END {mean = sum / NR; printf "\nCached checks cost %.3f of nginx, geometric mean of %d rounds, standard error %.3f.\n",
        exp(mean), NR, sqrt((squares / NR - mean * mean) / (NR - 1))}'
}
