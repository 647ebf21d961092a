# Sourced by scripts/bench. What Redis and a node need, by number of keys, sessions, and so on; for src/config/README.md.
# shellcheck shell=bash disable=SC2154

SIZING_RECORDS=2000 # users, sessions, device keys, keys with usage
SIZING_REVOCATIONS=2000
SIZING_SIGN_INS=10
USAGE_DAYS=3 # as bench_records writes
IDLE_S=10

aof_bytes() { redis info persistence | awk -F: '/^aof_current_size:/ {printf "%d", $2}'; }
# stream_bytes: of all audit trails of the account, and events_kept their number.
stream_bytes() {
    local name bytes total=0
    for name in '' :live :test :refused; do
        bytes=$(redis memory usage "${CHATELAINE_PREFIX}acct:$account:audit$name" samples 0)
        total=$((total + ${bytes:-0})) # a trail without events does not exist
    done
    echo "$total"
}
events_kept() {
    local name total=0
    for name in '' :live :test :refused; do
        total=$((total + $(redis xlen "${CHATELAINE_PREFIX}acct:$account:audit$name")))
    done
    echo "$total"
}
peak_kib() { awk '/^VmHWM/ {print $2}' "/proc/$1/status"; }
row() { printf '| %s | %s |\n' "$1" "$2"; }

# grown FUNCTION…: runs it; sets memory (bytes of Redis, without audit events), file (bytes of the append-only file).
grown() {
    local before events file_before
    before=$(used_memory) events=$(stream_bytes) file_before=$(aof_bytes)
    "$@"
    memory=$(($(used_memory) - before - ($(stream_bytes) - events)))
    file=$(($(aof_bytes) - file_before))
}
add_records() { "$build/test/bench/bench_records" "$1" "$account" <"$2" >"$dir/made.$1" || die "no $1 could be added"; }
add_devices() { "$build/test/bench/bench_fill" "$SIZING_RECORDS" "$account" device >/dev/null || die "no devices could be added"; }

# Keys, at growing numbers, to see whether what one needs depends on how many there are.
size_keys() {
    local count made=0 total=0 file_total=0
    for count in ${SIZING_KEYS:-10000 100000 1000000}; do
        grown make_keys $((count - made)) "$dir/keys.$count"
        total=$((total + memory)) file_total=$((file_total + file)) made=$count
        row "API key, with $count keys: Redis memory" "$((total / count)) B"
        row "API key, with $count keys: append-only file" "$((file_total / count)) B"
    done
}
size_records() {
    awk -v most="$SIZING_RECORDS" 'NR <= most' "$dir"/keys.*.ids >"$dir/used.ids"
    grown add_devices
    row 'device key: Redis memory' "$((memory / SIZING_RECORDS)) B"
    seq "$SIZING_RECORDS" >"$dir/numbers"
    grown add_records users "$dir/numbers"
    row 'user: Redis memory' "$((memory / SIZING_RECORDS)) B"
    grown add_records sessions "$dir/made.users"
    row 'session: Redis memory' "$((memory / SIZING_RECORDS)) B"
    row 'sign-in: append-only file' "$((file / SIZING_RECORDS)) B"
    grown add_records uses "$dir/used.ids"
    row 'usage of a key, all in all and on its last day: Redis memory' "$((memory / SIZING_RECORDS)) B"
    row 'usage of a key, each time that it is written: append-only file' "$((file / SIZING_RECORDS)) B"
    grown add_records days "$dir/used.ids"
    row 'usage of a key, each earlier day: Redis memory' "$((memory / SIZING_RECORDS / USAGE_DAYS)) B"
    row 'audit event: Redis memory' "$(($(stream_bytes) / $(events_kept))) B"
}

# cpu_of PID…: us, of threads that have ended too, in steps of 10 ms.
cpu_of() {
    local pid total=0
    for pid; do total=$((total + $(sed 's/.*) //' "/proc/$pid/stat" | awk '{print $12 + $13}'))); done
    echo $((total * 1000000 / $(getconf CLK_TCK)))
}
idle_growth() {
    local before
    settle
    before=$(aof_bytes)
    sleep "$IDLE_S"
    echo $((($(aof_bytes) - before) / IDLE_S))
}
# Three nodes; all revocations at the first.
size_revocations() {
    local idle others before_first before_others before_redis
    node other1 "$lease_ms"
    node other2 "$lease_ms"
    idle=$(idle_growth)
    row 'three idle nodes: append-only file' "$idle B/s"
    others=("${pid_of[other1]}" "${pid_of[other2]}")
    before_first=$(cpu_of "${pid_of[first]}") before_others=$(cpu_of "${others[@]}") before_redis=$(cpu_of "$redis_pid")
    BENCH_BEARER=$first grown "$build/test/bench/bench_change" 0 "$(port_of "${url_of[first]}")" <"$dir/doomed.ids" >"$dir/revoked"
    judge_changes 200 "$dir/revoked"
    row 'revocation: CPU of the node that revokes' "$((($(cpu_of "${pid_of[first]}") - before_first) / SIZING_REVOCATIONS)) us"
    row 'revocation: CPU of each other node' "$((($(cpu_of "${others[@]}") - before_others) / SIZING_REVOCATIONS / 2)) us"
    row 'revocation: CPU of Redis, three nodes' "$((($(cpu_of "$redis_pid") - before_redis) / SIZING_REVOCATIONS)) us"
    row 'revocation: append-only file' "$((file / SIZING_REVOCATIONS)) B"
}
# A wrong password costs the same hash. Other emails, because each has a limit of its own.
size_sign_ins() {
    local number before base
    node hashing "$lease_ms"
    base=$(rss_kib "${pid_of[hashing]}")
    row 'node without keys or connections: memory' "$base KiB"
    before=$(cpu_of "${pid_of[hashing]}")
    for number in $(seq "$SIZING_SIGN_INS"); do
        http POST /v1/auth/login -H 'Origin: https://console.test' -H 'Content-Type: application/json' \
            -d "{\"email\":\"nobody$number@example.org\",\"password\":\"whatever it may be\",\"totp\":\"123456\"}" >/dev/null
        expect 401 'a wrong sign-in'
    done
    row 'sign-in: CPU of the node' "$((($(cpu_of "${pid_of[hashing]}") - before) / SIZING_SIGN_INS / 1000)) ms"
    row 'sign-in: memory of the node while a password is hashed' "$((($(peak_kib "${pid_of[hashing]}") - base) / 1024)) MiB"
}
bench_sizing() {
    export CHATELAINE_REDIS_TIMEOUT_MS=30000 # bytes do not depend on a busy disk
    deployment sizing first "$lease_ms"
    printf '\n| `scripts/bench sizing` | |\n|---|---|\n'
    size_keys
    size_records
}
bench_costs() {
    deployment costs first "$lease_ms"
    make_keys "$SIZING_REVOCATIONS" "$dir/doomed"
    printf '\n| `scripts/bench costs` | |\n|---|---|\n'
    size_revocations
    size_sign_ins
}
