# Sourced by scripts/recovery: a machine of its own, in namespaces for mounts, network and processes. What it writes lies
# in memory, and all its processes end with the script. /srv stands for storage elsewhere: it outlives the machine.
# shellcheck shell=bash disable=SC2154

machine_mount() {
    local part
    mount -t tmpfs machine /mnt
    cp -a /etc /mnt/etc
    for part in redis log srv run local; do mkdir "/mnt/$part"; done
    mount --bind /mnt/etc /etc
    mount --bind /mnt/redis /var/lib/redis
    mount --bind /mnt/log /var/log
    mount --bind /mnt/srv /srv
    mount --bind /mnt/run /run
    mount --bind /mnt/local /usr/local
    ip link set lo up
}
# A fresh machine, with what installing brings: programs, units, the user, chatelaine.conf; and Debian's redis.conf.
machine_install() {
    cmake --install build/release >/dev/null
    systemd-sysusers /usr/local/lib/sysusers.d/chatelaine.conf
    sed -i 's|^CHATELAINE_PUBLIC_ORIGIN=$|CHATELAINE_PUBLIC_ORIGIN=https://console.example.org|' /etc/chatelaine/chatelaine.conf
    install -m 0755 test/recovery/systemctl /usr/local/bin/systemctl
    hash -r
    install -d -o redis -g redis -m 0750 /var/lib/redis /var/log/redis /run/redis
    install -o redis -g redis -m 0640 /mnt/redis.conf /etc/redis/redis.conf
}
# Power and disks are gone at once.
machine_lose() {
    local unit
    for unit in chatelaine redis-server; do
        [ ! -e "/run/units/$unit" ] || kill -KILL "$(cat "/run/units/$unit")"
    done
    find /var/lib/redis /var/log /run /usr/local -mindepth 1 -delete
    rm -rf /etc/chatelaine
    userdel chatelaine
    unset backup REDISCLI_AUTH
}

# document NAME: prints the block that stands in OPERATIONS.md behind the comment "scripts/recovery: NAME".
document() {
    local block
    block=$(awk -v mark="<!-- scripts/recovery: $1 -->" '
        $0 == mark { found = 1; next }
        found && /^```/ { if (inside) exit; inside = 1; next }
        inside' "$repository/OPERATIONS.md")
    [ -n "$block" ] || die "OPERATIONS.md has no block behind \"scripts/recovery: $1\""
    printf '%s\n' "$block"
}
# walk NAME: runs such commands as an operator's shell does: one after the other, whatever their exit status. Sets code to
# that of the last one.
walk() {
    local commands
    commands=$(document "$1")
    say "as OPERATIONS.md says: $1"
    set +eu
    eval "$commands"
    # shellcheck disable=SC2034 # the caller reads it
    code=$?
    set -eu +a
    cd "$repository"
}
