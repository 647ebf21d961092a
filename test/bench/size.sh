# Sourced by scripts/bench.
# shellcheck shell=bash disable=SC2154

IDLE_CONNECTIONS=9000
IDLE_FILES=$((2 * IDLE_CONNECTIONS + 1000)) # a node keeps a file for each connection, and some, in reserve

used_memory() { redis info memory | awk -F: '/^used_memory:/ {printf "%d", $2}'; }
bench_size() {
    local began ready_ms rss_before rss_after idle answer memory cached fds=()
    ulimit -n "$IDLE_FILES" 2>/dev/null || die "the limit of open files must allow $IDLE_FILES"
    deployment size first "$lease_ms" taskset -c 0
    began=$(now_ms)
    node size "$lease_ms" taskset -c 0
    ready_ms=$(($(now_ms) - began))
    memory=$(used_memory)
    make_keys "$keys" "$dir/keys"
    memory=$((($(used_memory) - memory) / keys))

    say "$IDLE_CONNECTIONS idle connections"
    rss_before=$(rss_kib "${pid_of[size]}")
    for _ in $(seq "$IDLE_CONNECTIONS"); do
        exec {fd}<>"/dev/tcp/127.0.0.1/$(port_of "$url")"
        fds+=("$fd")
    done
    answer=$(curl -sS -o /dev/null -w '%{http_code}' -H "Authorization: Bearer $first" "$url/v1/whoami")
    rss_after=$(rss_kib "${pid_of[size]}")
    idle=$(((rss_after - rss_before) * 1024 / IDLE_CONNECTIONS))
    for fd in "${fds[@]}"; do exec {fd}>&-; done
    rss_before=$(rss_kib "${pid_of[size]}")
    warm size
    settle
    cached=$((($(rss_kib "${pid_of[size]}") - rss_before) * 1024 / keys))
    strip -o "$dir/stripped" "$binary"

    printf '\nStart to ready: %s ms. Stripped binary: %s KiB.\n' "$ready_ms" $(($(stat -c %s "$dir/stripped") / 1024))
    printf 'Idle connection: %s bytes of the node each (%s open, whoami then answers %s).\n' \
        "$idle" "$IDLE_CONNECTIONS" "$answer"
    printf 'Memory of a node for each cached key, with its uses of the last second: %s bytes (%s keys).\n' "$cached" "$keys"
    printf 'Redis memory per key: %s bytes (%s keys in one account, with their audit events, never used).\n' "$memory" "$keys"
}
