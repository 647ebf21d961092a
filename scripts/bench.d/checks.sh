# Sourced by scripts/bench.
# shellcheck shell=bash disable=SC2154

bench_checks() {
  deployment checks strict 0 taskset -c 0
  node cached "$lease_ms" taskset -c 0
  start_nginx
  label[strict]="Chatelaine \`GET /v1/whoami\`, strict: one Redis read each"
  label[cached]="Chatelaine \`GET /v1/whoami\`, cached, lease $lease_ms ms"
  make_keys "$keys" "$dir/keys"
  warm strict cached
  rounds_of nginx strict cached
  table "$keys keys" nginx strict cached
  printf '\n'
  print_calls strict cached
}
