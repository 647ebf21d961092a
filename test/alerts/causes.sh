# Sourced by scripts/alerts: cause_ALERT sets the scene and makes the cause happen. What has to go on until the alert
# fires runs beside.
# shellcheck shell=bash disable=SC2154,SC2317,SC2034

freeze_redis() { kill -STOP "$redis_pid"; }

cause_NodeDown() {
    scene
    kill -STOP "$node1_pid"
}
cause_NodeNotReady() {
    scene
    freeze_redis
}
cause_ChecksUnavailable() {
    scene
    freeze_redis
    beside keep_checking
}
cause_ChecksSlow() {
    scene --lease-ms 0
    beside stutter "$redis_pid" 0.2 0.02
    beside load 4
}
cause_NoLease() {
    scene
    freeze_redis
}
cause_LeaseLostOften() {
    scene
    beside stutter "$redis_pid" 1.4 1
}
# Five revocations at once, while a node that has a lease is paused.
revoke_without_an_acknowledgement() {
    local ids=() id rest
    scene
    add_node
    watched
    for _ in 1 2 3 4 5; do
        read -r id rest < <(create_key)
        ids+=("$id")
    done
    kill -STOP "$node_pid"
    for id in "${ids[@]}"; do revoke_key "$id" >/dev/null & done
}
cause_RevocationsWait() { revoke_without_an_acknowledgement; }
cause_RevocationsSlow() { revoke_without_an_acknowledgement; }
cause_RevocationsFailed() {
    revoke_without_an_acknowledgement
    sleep 0.3
    kill -KILL "$redis_pid"
    forget "$redis_pid"
    run_redis
}
# Puts the canary's key back as it was before its revocation, again and again.
restore_canary_key() {
    local digest record unrevoked=
    while :; do
        digest=$(redis hget chatelaine:canary digest)
        record=$(redis get "chatelaine:key:$digest")
        [[ ! $record =~ ^key_[^\ ]+\ [^\ ]+\ test\ [^\ ]+\ [0-9]+\ [0-9]+\ -\  ]] || unrevoked=$record
        [[ -z $unrevoked || $(redis hget chatelaine:canary phase) == over ]] ||
            redis set "chatelaine:key:$digest" "$unrevoked" XX >/dev/null
    done
}
cause_CanaryViolated() {
    scene --canary-interval-ms 2s
    beside restore_canary_key
}
# A process that never gives up its turn.
cause_CanaryMissing() {
    scene --canary-interval-ms 2s
    sleep 4
    redis set chatelaine:canary_runner nobody >/dev/null
}
cause_RevocationLogIncomplete() {
    local id rest
    scene --revocation-log /dev/full
    read -r id rest < <(create_key)
    revoke_key "$id" >/dev/null
}
cause_LogLost() {
    scene --audit-log "$dir/audit.log"
    create_key >/dev/null
    rm "$dir/audit.log"
}
cause_SocketLost() {
    scene --check-socket "$dir/check.sock"
    rm "$dir/check.sock"
}
# What a copy of the machine does each ten seconds.
keep_writing_chain() {
    while :; do
        redis set "chatelaine:log_writer:$1" elsewhere PX 35000 >/dev/null
        sleep 1.5
    done
}
cause_HostCopied() {
    scene --audit-log "$dir/audit.log"
    beside keep_writing_chain "$(redis hkeys chatelaine:log_heads | head -n 1)"
}
# The clock of one node is set.
cause_ClockWrong() {
    cc -shared -fPIC -O2 -D_GNU_SOURCE -o "$dir/clock.so" test/support/shifted_clock.c
    echo 0 >"$dir/clock"
    scene
    SHIFTED_CLOCK=$dir/clock LD_PRELOAD=$dir/clock.so add_node
    instance=$internal
    watched
    echo 3600 >"$dir/clock"
}
# A hash takes 128 MiB.
cause_PasswordsFail() {
    local kib
    scene
    kib=$(awk '/^VmSize/ { print $2 }' "/proc/$node1_pid/status")
    prlimit --pid "$node1_pid" --as=$((kib * 1024 + (32 << 20))):unlimited
    log_in "$email" 'not her password' 000000 192.0.2.1 >/dev/null || true
}
cause_RedisDenies() {
    scene
    redis acl setuser default -evalsha >/dev/null
}
cause_RevocationsLost() {
    scene
    redis hset chatelaine:store missing 1 >/dev/null
}
cause_ChangesLost() {
    scene
    redis hset chatelaine:store lost_changes 1 >/dev/null
}
# One node is paused while Redis restarts, so that the other waits for it in vain.
cause_NodesDidNotTell() {
    scene
    add_node
    kill -STOP "$node_pid"
    kill -KILL "$redis_pid"
    forget "$redis_pid"
    run_redis
}
cause_AuditLogFailing() {
    local id rest
    scene --audit-log "$dir/audit.log"
    read -r id rest < <(create_key)
    prlimit --pid "$node1_pid" --fsize=1:unlimited
    revoke_key "$id" >/dev/null
}
cause_AuditEventsWait() {
    scene --audit-log "$dir/audit.log"
    redis set chatelaine:log_dropped 1 >/dev/null
}
cause_RedisFull() {
    scene
    redis config set maxmemory 1mb >/dev/null
    create_key >/dev/null
}
cause_RedisAccessRefused() {
    echo "unix:$dir/redis.sock" >"$dir/address"
    scene --redis-file "$dir/address"
    echo "unix:$dir/redis.sock?password=wrong" >"$dir/address"
}
cause_RedisFinderDown() {
    scene_of_sentinel
    kill -STOP "$sentinel_pid"
}
cause_RedisSlow() {
    scene
    beside stutter "$redis_pid" 0.3 0.05
}
cause_RedisLosesCommands() {
    scene --redis-timeout-ms 300
    freeze_redis
}
cause_RedisSwitched() {
    scene_of_sentinel
    redis-cli -p "$sentinel_port" sentinel failover alerts >/dev/null
}
# Turns a live key into a test key, behind the nodes' back.
cause_RecordsAltered() {
    local id secret digest
    scene
    read -r id secret < <(create_key)
    digest=$(redis get "chatelaine:id:$id")
    redis get "chatelaine:key:$digest" | sed '1s/live/test/' | redis -x set "chatelaine:key:$digest" >/dev/null
    check "$secret" >/dev/null
}
cause_RevokedKeyUsed() {
    local id secret
    scene
    read -r id secret < <(create_key)
    revoke_key "$id" >/dev/null
    check "$secret" >/dev/null
}
cause_LoginGuessing() {
    scene
    for _ in $(seq 120); do log_in "$email" 'not her password' 000000 192.0.2.1 >/dev/null; done
}
# From a network of its own each time, so that nothing but the email tells that they belong together.
guess_password() { # FROM TO PASSWORD: at the same time
    local i guesses=()
    for i in $(seq "$1" "$2"); do
        log_in "$email" "$3" 000000 "198.51.$i.7" >/dev/null &
        guesses+=("$!")
    done
    wait "${guesses[@]}"
}
cause_LoginAttack() {
    scene --trusted-proxies 127.0.0.1/32
    guess_password 1 20 'not her password'
    guess_password 21 40 'not her password'
}
cause_UserLocked() {
    local i
    scene --trusted-proxies 127.0.0.1/32
    for i in $(seq 1 10 111); do
        guess_password "$i" $((i + 9)) 'amber falcons drift at 42'
        forget_attempts
    done
}
cause_PasswordQueueFull() {
    local i
    scene --trusted-proxies 127.0.0.1/32 --password-parallel 1 --password-queue 1
    for i in $(seq 12); do log_in "nobody$i@console.test" 'whatever it may be' 000000 "198.51.$i.7" >/dev/null & done
}
keep_listing() {
    while sleep 0.1; do
        curl -s -o /dev/null -H "Authorization: Bearer $first" "$node1_url/v1/api_keys" || true
    done
}
cause_WorkRefused() {
    scene --reads-per-second 1
    beside keep_listing
}
# The node is stopped while it works, as by a hypervisor that gives its CPU to others.
cause_LoopLag() {
    scene
    beside load 16
    beside stutter "$node1_pid" 0.15 0.1
}
cause_LoopBusy() {
    scene
    for _ in 1 2 3; do beside load 32; done
}
# Connections that have begun a request are not idle, and make no room.
cause_ConnectionsShed() {
    local port i
    scene --connections-max 4
    port=${node1_url##*:}
    for i in $(seq 8); do
        exec {connection}<>"/dev/tcp/127.0.0.1/$port"
        printf 'GET / HTTP/1.1\r\n' >&"$connection" || true
        sleep 0.2
    done
}
cause_ProxyHeadersRefused() {
    scene
    add_node --proxy-protocol --trusted-proxies 127.0.0.1/32
    instance=$internal
    watched
    beside keep_knocking "$url"
}
keep_knocking() { while sleep 0.2; do curl -s "$1/" || true; done; }
# The table of refused keys holds 1,024 between two writes. The one of used keys holds 65,536 and overflows only if Redis
# takes no write meanwhile.
cause_UsageDropped() {
    scene --usage-flush-ms 60000
    make_keys 1500 "$dir/keys"
    BENCH_ONCE=1 BENCH_PATH=/v1/team wrk -s test/bench/check.lua -t1 -c8 -d60 "$node1_url" -- "$dir/keys" >/dev/null
}
cause_LogLinesDropped() {
    mkfifo "$dir/stuck"
    sleep 600 <>"$dir/stuck" &
    besides+=("$!")
    log_to=$dir/stuck scene --access-log-sample 1
    beside load 4
}
# add_tls_node DAYS [FLAG…]: with a certificate for so many days.
add_tls_node() {
    openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days "$1" -subj /CN=localhost \
        -keyout "$dir/tls.key" -out "$dir/tls.pem" 2>/dev/null
    chmod 600 "$dir/tls.key"
    shift
    add_node --tls-cert "$dir/tls.pem" --tls-key "$dir/tls.key" "$@"
    instance=$internal
}
cause_CertificateExpires() {
    scene
    add_tls_node 13
    watch "${instances[@]}"
}
cause_CertificateExpiresSoon() {
    scene
    add_tls_node 1
    watch "${instances[@]}"
}
cause_CertificateNotReloaded() {
    scene
    add_tls_node 90
    watched
    echo 'no certificate' >"$dir/tls.pem"
    kill -HUP "$node_pid"
}
# Connections that never say hello, more than may shake hands at once.
cause_HandshakesRefused() {
    local i
    scene
    add_tls_node 90 --tls-handshakes-max 16
    watched
    for i in $(seq 40); do exec {connection}<>"/dev/tcp/127.0.0.1/${url##*:}"; done
}
# A user who may not CONFIG, as with managed services: nobody can see how Redis writes its file.
cause_DurabilityAsserted() {
    local port
    scene
    port=$(test/support/free-port)
    redis config set port "$port" >/dev/null
    redis acl setuser managed on '>managed' '~*' '&*' +@all -config >/dev/null
    CHATELAINE_REDIS=redis://managed:managed@127.0.0.1:$port add_node --redis-durability asserted
    instance=$internal
    watch "${instances[@]}"
}
# A copy of the program that says another version.
cause_VersionsDiffer() {
    local version
    scene
    version=$("$binary" --version | grep -oE '[0-9]+\.[0-9]+\.[0-9]+' | head -1)
    LC_ALL=C sed "s/${version//./\\.}/${version%.*}.x/g" "$binary" >"$dir/other"
    chmod +x "$dir/other"
    binary=$dir/other add_node
    watch "${instances[@]}"
}
# What Redis holds contradicts itself: there are keys of an account, and no account.
cause_InternalErrors() {
    local account
    scene
    watched
    for account in $(redis zrange chatelaine:accounts 0 -1); do redis rename "chatelaine:acct:$account" "aside:$account" >/dev/null; done
    create_key >/dev/null
}
