#!/usr/bin/env bash
# Installs, uses, upgrades, breaks, removes and purges the package in containers that run systemd, one for each scene.
# Called by scripts/package --test:
#   test/package/lifecycle.sh DEBIAN CODENAME FOLDER_OF_PACKAGES [SCENE…]      KEEP=1 leaves the container running
set -euo pipefail
debian=$1 codename=$2 packages=$3
shift 3
cd "$(dirname "$0")/../.."
scenes=("$@")
[ $# -gt 0 ] || scenes=(inside upgrade first-start)

say() { printf '\033[1m[lifecycle %s]\033[0m %s\n' "$debian" "$*" >&2; }
image=chatelaine-lifecycle:$debian container=''
finish() {
    [ "${KEEP-}" = 1 ] || [ -z "$container" ] || docker rm --force --volumes "$container" >/dev/null 2>&1 || true
}
trap finish EXIT

say "an image with systemd, Redis, nginx, logrotate and a compiler"
docker build --quiet --tag "$image" - >/dev/null <<END
FROM debian:$codename-slim
RUN apt-get update && DEBIAN_FRONTEND=noninteractive apt-get install --yes --no-install-recommends \\
    systemd systemd-sysv dbus redis-server nginx logrotate curl jq oathtool procps gcc libc6-dev pkg-config
# Images forbid packages to start, stop and restart services, and leave documents out; machines do not.
RUN systemctl disable redis-server nginx && rm -f /usr/sbin/policy-rc.d /etc/dpkg/dpkg.cfg.d/docker
ENTRYPOINT ["/sbin/init"]
END

# What systemd needs to be the first process: to mount, to make namespaces for its services, and to see into them.
start_machine() { # SCENE
    container=chatelaine-lifecycle-$debian-$1-$$
    docker run --detach --name "$container" --cap-add SYS_ADMIN --cap-add SYS_PTRACE \
        --security-opt seccomp=unconfined --security-opt apparmor=unconfined --security-opt systempaths=unconfined \
        --cgroupns private --tmpfs /run --tmpfs /run/lock --env container=docker \
        --volume "$PWD/test:/test:ro" --volume "$PWD/OPERATIONS.md:/operations:ro" \
        --volume "$packages:/packages:ro" "$image" >/dev/null
    for _ in $(seq 100); do
        [ "$(docker exec "$container" systemctl is-system-running 2>/dev/null)" = running ] && break
        sleep 0.2
    done
}

for scene in "${scenes[@]}"; do
    start_machine "$scene"
    say "$scene, with $(docker exec "$container" systemctl --version | head -n 1)"
    docker exec --env CHATELAINE_DEBIAN="$debian" "$container" bash "/test/package/$scene.sh" || {
        say "FAILED: $scene"
        docker exec "$container" journalctl --no-pager --lines 60 >&2
        exit 1
    }
    finish
done
say "passed"
