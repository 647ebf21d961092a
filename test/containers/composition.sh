# Sourced by scripts/containers: the composition, its image and its people.
# shellcheck shell=bash

compose() { docker compose "${settings[@]}" "$@"; }
containers_end() {
    if [ -z "${KEEP:-}" ]; then
        say "taking it down"
        touch "$dir/load.enough" "$dir/writes.enough"
        compose down --volumes --remove-orphans --timeout 3 >>"$dir/compose.log" 2>&1 || tail -5 "$dir/compose.log" >&2
    fi
    deployment_end
}
trap containers_end EXIT

chatelaine() { compose exec -T node1 chatelaine "$@"; }
container() { compose ps --all --quiet "$1"; } # SERVICE: its id
await_healthy() {                              # SERVICE
    for _ in $(seq 150); do
        [ "$(docker inspect --format '{{.State.Health.Status}}' "$(container "$1")")" = healthy ] && return
        sleep 0.2
    done
    compose logs --tail 20 "$1" >&2
    die "$1 does not become healthy"
}

await_serving() { # the nodes wait for the first account
    local node
    for node in node1 node2 node3; do
        for _ in $(seq 100); do
            compose exec -T "$node" chatelaine ready >/dev/null 2>&1 && continue 2
            sleep 0.1
        done
        die "$node does not serve although there is an account"
    done
}

bring_up() { # HOW TO GET THE IMAGE
    local began=$SECONDS
    compose up --detach "$1" --wait >>"$dir/compose.log" 2>&1 || {
        tail -30 "$dir/compose.log" >&2
        compose logs --tail 20 >&2
        die "the composition did not start"
    }
    say "started after $((SECONDS - began)) s"
}
start_all() {
    say "starting everything on port $CHATELAINE_PORT"
    bring_up "$build"
    url=https://127.0.0.1:$CHATELAINE_PORT
    # curl believes the deployment's own CA, and no other.
    compose exec -T gateway cat /run/gateway/edge-ca.crt >"$dir/edge-ca.crt"
    export CURL_CA_BUNDLE=$dir/edge-ca.crt
}
# What was acknowledged must survive it.
stop_and_start_all() {
    say "stopping everything and starting it again"
    compose down --timeout 15 >>"$dir/compose.log" 2>&1
    bring_up --no-build
    await_serving
}
# The image is small, and what runs is shut in.
look_at_image() {
    local size base
    size=$(docker image inspect --format '{{.Size}}' chatelaine)
    base=$(docker image inspect --format '{{.Size}}' debian:trixie-slim)
    say "the image is $(((size - base) / 1000000)) MB above its base"
    [ $((size - base)) -lt 60000000 ] || fail "the image is larger than 60 MB above its base"
    [ "$(compose exec -T node1 id -u)" = 10001 ] || fail "the node runs as a privileged user"
    ! compose exec -T node1 touch /usr/local/bin/x 2>/dev/null || fail "the root of the node can be written"
    [ "$(compose exec -T node1 stat -c %a /run/node/master.key)" = 600 ] || fail "the master key can be read by others"
    ! compose exec -T "$a_redis" cat /run/node/master.key 2>/dev/null || fail "Redis sees the master key"
    ! compose port "$a_redis" 6379 2>/dev/null | grep -qv ':0$' || fail "Redis has a published port"
    chatelaine doctor >"$dir/doctor" || {
        cat "$dir/doctor" >&2
        fail "doctor: not fit"
    }
    look_at_protections
}
# Both logs are written, both listeners speak TLS, and doctor misses nothing of it.
look_at_protections() {
    local node log
    ! grep -E '^(warn|fail) +(audit-log|revocation-log|tls|internal-tls|internal-client-ca) ' "$dir/doctor" ||
        fail "doctor misses a protection"
    for node in node1 node2 node3; do
        for log in audit.log revocations; do
            [ "$(compose exec -T $node stat -c '%u %a' /var/log/chatelaine/$log)" = "10001 600" ] || fail "$node: no $log"
        done
    done
}
# Sets account. A busy machine may need another attempt.
new_account() {
    for _ in 1 2 3 4 5; do
        ! account=$(chatelaine account create --name Demo --json | jq -r .id) || return 0
        sleep 2
    done
    die "no account can be created"
}
make_person() { # with $email, in $account; sets seed and first
    seed=$(echo 'amber falcons drift at 42' | chatelaine user create --account "$account" --email "$email" \
        --password-file /dev/stdin --permanent-password --json | jq -r .totp_uri | sed 's/.*[?&]secret=\([A-Z2-7]*\).*/\1/')
    sign_in
    step_up
    first_key
}
make_people() {
    new_account
    await_serving
    make_person
}
