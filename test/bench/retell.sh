# Sourced by scripts/bench: how long nodes that have heard of many revocations need until they have repeated them at a
# Redis that has lost all of them (src/lease/README.md, rule 13).
# shellcheck shell=bash disable=SC2154

RETELL_NODES=10
RETELL_AT_ONCE=8192 # ids in one request; at most 10,000

revoke_all() { # FILE of ids
    local part
    split -l "$RETELL_AT_ONCE" "$1" "$dir/part."
    for part in "$dir"/part.*; do
        jq -Rnc '{ids: [inputs]}' <"$part" >"$dir/body.json"
        [ "$(curl -s -o "$dir/body" -w '%{http_code}' -H "Authorization: Bearer $first" \
            -H 'Content-Type: application/json' --data-binary "@$dir/body.json" "$url/v1/api_keys/revoke")" = 200 ] ||
            die "revoking: $(head -c 300 "$dir/body")"
        [ "$(jq '.revoked | length' "$dir/body")" = "$(wc -l <"$part")" ] || die "some were not revoked"
    done
}

# is_ready NODE: without a process, which would take Redis' core.
is_ready() {
    local at connection line
    at=$(<"$dir/ready.$1")
    [[ $at =~ \"internal_listen\":\ ?\"([^\"]*):([0-9]+)\" ]] || die "$at"
    exec {connection}<>"/dev/tcp/${BASH_REMATCH[1]}/${BASH_REMATCH[2]}"
    printf 'GET /readyz HTTP/1.1\r\nHost: node\r\nConnection: close\r\n\r\n' >&"$connection"
    read -r line <&"$connection"
    exec {connection}>&-
    [[ $line == 'HTTP/1.1 200 '* ]]
}

bench_retell() {
    local server began died secret statuses=''
    deployment retell first "$lease_ms"
    for server in $(seq 2 "$RETELL_NODES"); do node "node$server" "$lease_ms"; done
    make_keys "$retell_keys" "$dir/keys"
    cp -r "$dir/redis/appendonlydir" "$dir/before"
    began=$(now_ms)
    revoke_all "$dir/keys.ids"
    say "revoked in $(($(now_ms) - began)) ms; killing Redis and bringing back the file from before"
    local rss=0 pid
    for pid in "${pid_of[@]}"; do rss=$((rss > $(rss_kib "$pid") ? rss : $(rss_kib "$pid"))); done
    kill -9 "$redis_pid"
    forget "$redis_pid"
    rm -r "$dir/redis/appendonlydir"
    mv "$dir/before" "$dir/redis/appendonlydir"
    run_redis
    redis config set auto-aof-rewrite-percentage 0 >/dev/null
    died=$(now_ms)
    for server in "${!url_of[@]}"; do
        until is_ready "$server"; do sleep 0.1; done
    done
    printf '\n| `scripts/bench retell`: %s revocations, %s nodes | |\n|---|---|\n' "$retell_keys" "$RETELL_NODES"
    printf '| until all nodes are ready, from when Redis answers | %s ms |\n' "$(($(now_ms) - died))"
    printf '| largest node before | %s KiB |\n' "$rss"
    for server in "${url_of[@]}"; do
        for secret in $(shuf -n 20 "$dir/keys"); do
            statuses+=$(curl -s -o /dev/null -w '%{http_code}' -H "Authorization: Bearer $secret" "$server/v1/whoami")$'\n'
        done
    done
    printf '| 20 of the keys at each node afterwards | %s |\n' "$(sort <<<"$statuses" | grep . | uniq -c | awk '{print $1 " times " $2}')"
}
