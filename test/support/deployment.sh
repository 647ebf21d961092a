# Sourced by scripts that need a running deployment of their own: a private durable Redis, nodes, an account, a signed-in
# user. Everything lives in $dir and ends with the script. The caller sets name (of its file in scripts/) and binary.
# shellcheck shell=bash disable=SC2154

dir=$(mktemp -d "${TMPDIR:-/tmp}/chatelaine-$name.XXXXXX")
pids=()
redis_prefix=()            # what Redis is started by: taskset -c 1
redis_flags=()             # what it gets beside what all get
declare -A redis_pid_of=() # SERVER: its process
scheme=http                # of $url
node_flags=()              # what the next nodes get beside what all get
node_listen=127.0.0.1:0    # where they listen
# Of passwords, in builds with sanitizers: see quick_password.c.
export CHATELAINE_TEST_PASSWORD_COST=${CHATELAINE_TEST_PASSWORD_COST:-10}
PATH=$PATH:/usr/sbin # nginx and haproxy are there, and Debian's users do not look there

exec {never}<> <(:)                            # nobody writes there
sleep() { read -rt "$1" -u "$never" || true; } # without a process, because loops that wait would mostly start those
say() { printf '\033[1m[%s]\033[0m %s\n' "$name" "$*" >&2; }
die() {
    say "$*"
    exit 1
}
usage() { # prints the comment that the script begins with
    sed -n '2,/^set /{/^# shellcheck/!s/^# \{0,1\}//p}' "scripts/$name" >&2
    exit 2
}
end_all() { # PID…: what a measurement has stopped goes on, to end
    local pid
    for pid; do
        kill "$pid" 2>/dev/null || true
        kill -CONT "$pid" 2>/dev/null || true
    done
    for pid; do wait "$pid" 2>/dev/null || true; done
}
deployment_end() { # Redis last: a node that ends writes its usage counts, and would wait for it
    local pid stores=() rest=()
    for pid in "${pids[@]}"; do
        if [[ " ${redis_pid_of[*]} " == *" $pid "* ]]; then stores+=("$pid"); else rest+=("$pid"); fi
    done
    for pid in "${stores[@]}"; do kill -CONT "$pid" 2>/dev/null || true; done
    end_all "${rest[@]}"
    end_all "${stores[@]}"
    rm -rf "$dir"
}
trap deployment_end EXIT
trap 'exit 130' INT TERM

build_preset() { # PRESET [OPTION OF cmake --build…]
    local preset=$1
    shift
    { cmake --preset "$preset" && cmake --build --preset "$preset" --parallel "$(nproc)" "$@"; } >"$dir/build.log" 2>&1 ||
        {
            tail -30 "$dir/build.log" >&2
            die "$preset could not be built"
        }
}
build_release() {
    say "building the release"
    build_preset release
}
# forget PID: waits for its end; the script no longer ends it.
forget() {
    local kept=() pid
    wait "$1" 2>/dev/null || true
    for pid in "${pids[@]}"; do [ "$pid" = "$1" ] || kept+=("$pid"); done
    pids=("${kept[@]}")
}
redis_at() { # SERVER COMMAND…
    local server=$1
    shift
    redis-cli -s "$dir/$server.sock" "$@"
}
redis() { redis_at redis "$@"; }
# run_redis [SERVER]: sets redis_pid. After forget, runs it again on the same data. SERVER is its name if there are several.
run_redis() {
    local server=${1:-redis}
    "${redis_prefix[@]}" redis-server --port 0 --unixsocket "$dir/$server.sock" --dir "$dir/$server" --appendonly yes \
        --appendfsync always --maxmemory-policy noeviction --save '' --daemonize no "${redis_flags[@]}" >>"$dir/$server.log" 2>&1 &
    redis_pid=$! redis_pid_of[$server]=$!
    pids+=("$redis_pid")
    for _ in $(seq 6000); do
        [ "$(redis_at "$server" ping 2>/dev/null)" = PONG ] && return
        kill -0 "$redis_pid" 2>/dev/null || break
        sleep 0.02
    done
    die "Redis did not start: $(tail -3 "$dir/$server.log")"
}
# start_redis: sets $CHATELAINE_REDIS.
start_redis() {
    mkdir "$dir/redis"
    run_redis
    "$binary" master-key >"$dir/master" && chmod 600 "$dir/master"
    export CHATELAINE_REDIS="unix:$dir/redis.sock" CHATELAINE_MASTER_KEY_FILE="$dir/master"
}
# stop_redis [SERVER]: also deletes its data.
stop_redis() {
    local server=${1:-redis}
    kill "${redis_pid_of[$server]}"
    forget "${redis_pid_of[$server]}"
    rm -r "${dir:?}/$server"
}
# start_node ID SECONDS [COMMAND PREFIX…]: sets node_pid and url. Waits up to SECONDS until it is ready. Gateways that do
# not look at /readyz go on asking it while it drains, so the drain is short.
start_node() {
    local id=$1 patience=$2
    shift 2
    "$@" "$binary" serve --listen "$node_listen" --internal-listen 127.0.0.1:0 --public-origin https://console.test \
        --ready-file "$dir/ready.$id" --log-level warn --drain-ms 2s "${node_flags[@]}" &
    node_pid=$!
    pids+=("$node_pid")
    for _ in $(seq $((patience * 500))); do
        [ -s "$dir/ready.$id" ] && break
        kill -0 "$node_pid" 2>/dev/null || die "node $id has ended: its messages are above"
        sleep 0.002
    done
    [ -s "$dir/ready.$id" ] || die "node $id did not become ready"
    url=$scheme://$(jq -r .listen "$dir/ready.$id")
}
# stop_node PID: lets it drain.
stop_node() {
    kill "$1"
    forget "$1"
}

# --- a person at the console: curl, with the cookie and the CSRF token kept here -----------------------------------
cookie='' csrf='' seed='' status='' email=ada@console.test origin=https://console.test
# http METHOD PATH [curl options]: prints the body; the status is in $dir/status.
http() {
    local method=$1 path=$2
    shift 2
    curl -sS -X "$method" -D "$dir/head" -o "$dir/body" -w '%{http_code}' "$url$path" "$@" >"$dir/status"
    cat "$dir/body"
}
# console METHOD PATH [JSON]: with session and CSRF token.
console() {
    http "$1" "$2" -H "Origin: $origin" ${cookie:+-H "Cookie: $cookie"} ${csrf:+-H "X-CSRF-Token: $csrf"} \
        ${3:+-H 'Content-Type: application/json' -d "$3"}
}
expect() { # STATUS WHAT: the last answer had that status
    status=$(cat "$dir/status")
    [ "$status" = "$1" ] || die "$2: expected $1, got $status: $(cat "$dir/body")"
}
take_cookie() { cookie=$(sed -n 's/^[Ss]et-[Cc]ookie: \(__Host-session=[^;]*\).*/\1/p' "$dir/head"); }
make_account() {
    account=$("$binary" account create --name Demo --json | jq -r .id)
    (umask 077 && echo 'amber falcons drift at 42' >"$dir/password")
    seed=$("$binary" user create --account "$account" --email "$email" --password-file "$dir/password" \
        --permanent-password --json | jq -r .totp_uri | sed 's/.*[?&]secret=\([A-Z2-7]*\).*/\1/')
}
# A code is accepted once, one step early or late: the previous step's code signs in, the present one's steps up.
totp() { oathtool --totp --base32 --now "$1" "$seed"; }
# Answered 503, it may have been done all the same, as when the disk under Redis stalls: then the code is used up.
next_code() {
    local was
    was=$(($(date +%s) / 30))
    while [ $(($(date +%s) / 30)) -le "$was" ]; do sleep 0.2; done
}
was_unavailable() { [ "$(cat "$dir/status")" = 503 ]; }
sign_in() { # [WHEN of the code]
    cookie='' csrf=''
    for _ in 1 2 3; do
        while [ $(($(date +%s) % 30)) -ge 20 ]; do sleep 0.2; done # the previous code ends with this half minute
        console POST /v1/auth/login \
            "{\"email\":\"$email\",\"password\":\"amber falcons drift at 42\",\"totp\":\"$(totp "${1:-now - 30 seconds}")\"}" >/dev/null
        was_unavailable || break
        next_code
    done
    expect 200 'sign-in'
    csrf=$(jq -r .csrf_token "$dir/body")
    take_cookie
}
# Answered 503, the session may have a new token that nobody got: so sign in again, with codes that come later.
step_up() {
    local when=now
    for _ in 1 2 3; do
        console POST /v1/console/step_up \
            "{\"password\":\"amber falcons drift at 42\",\"totp\":\"$(totp "$when")\"}" >/dev/null
        was_unavailable || break
        next_code
        next_code
        sign_in now
        when='now + 30 seconds'
    done
    expect 200 'step-up'
    take_cookie
}
# shellcheck disable=SC2034 # the caller reads $first
first_key() { # prints nothing; sets first
    for _ in 1 2 3; do
        console POST /v1/console/api_keys '{"name":"first","mode":"live"}' >/dev/null
        was_unavailable || break
    done
    expect 201 'creating the first key'
    first=$(jq -r .secret "$dir/body")
}
