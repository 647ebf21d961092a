# Sourced by scripts/bench.
# shellcheck shell=bash disable=SC2154

bench_checks() {
    deployment checks strict 0 taskset -c 0
    node cached "$lease_ms" taskset -c 0
    label[strict]="Chatelaine \`GET /v1/whoami\`, strict: one Redis read each"
    label[cached]="Chatelaine \`GET /v1/whoami\`, cached, lease $lease_ms ms"
    make_keys "$keys" "$dir/keys"
    start_nginx "$(answer_bytes -H "Authorization: Bearer $(head -n 1 "$dir/keys")" "${url_of[cached]}/v1/whoami")"
    print_cipher cached
    warm strict cached
    rounds_of nginx page strict cached
    table "$keys keys" nginx page strict cached
    printf '\n'
    print_calls strict cached
}
