#!/usr/bin/env bash
# From the last version to this one and back, unattended, with settings that an operator has edited; runs in a container of
# lifecycle.sh. /packages/last has the packages of the last version.
set -euo pipefail
# shellcheck source=test/package/machine.sh
. /test/package/machine.sh

last=$(echo "/packages/last/chatelaine_"*"+deb${CHATELAINE_DEBIAN}"_*.deb)
version_of() { dpkg-deb -f "$1" Version; }

start_last_version() {
    say "$(version_of "$last"): settings are edited, a node serves"
    install_package "$last" || die "cannot be installed: $(cat /tmp/apt.log)"
    sed -i 's|^CHATELAINE_PUBLIC_ORIGIN=.*|CHATELAINE_PUBLIC_ORIGIN=https://console.test|' $conf
    printf '# ours\nCHATELAINE_LEASE_MS=2s\n' >>$conf
    cp $conf /tmp/mine
    write_secrets
    systemctl enable --now chatelaine 2>/dev/null || fail "the last version does not start"
    make_owner
    sign_in
    step_up
    first_key
    check_answers 200 "$first"
}

# move_to PACKAGE [OPTION…]: nothing is asked, the settings stay, the node is a new process of that version.
move_to() {
    local to=$1 pid
    shift
    say "unattended, from $(dpkg-query -W -f '${Version}' chatelaine) to $(version_of "$to")"
    pid=$(property MainPID)
    install_package "$@" "$to" || fail "unattended: $(tail -5 /tmp/apt.log)"
    is "version" "$(version_of "$to") install ok installed" "$(dpkg-query -W -f '${Version} ${Status}' chatelaine)"
    cmp $conf /tmp/mine || fail "the settings were touched"
    is "files beside the settings" "chatelaine.conf master-key redis" "$(find /etc/chatelaine -type f -printf '%f\n' | sort | xargs)"
    [ "$(property MainPID)" != "$pid" ] || fail "the node is the process of the version before"
    is "the program of the node" /usr/bin/chatelaine "$(readlink "/proc/$(property MainPID)/exe")"
    await "the node serves" says_status "lease held" chatelaine
    check_answers 200 "$first"
    is "the lease that was set" 2000 "$(redis-cli --user default --pass ADMIN --no-auth-warning HVALS chatelaine:nodes | sort -n | tail -1 | cut -d' ' -f2)"
}

look_at_settings() {
    say "this version has no settings file of its own: the reference is beside its documents"
    [ -s /usr/share/doc/chatelaine/chatelaine.conf ] || fail "no reference"
    is "the package's files in /etc/chatelaine" "" "$(dpkg-deb -c "$package" | grep ' \./etc/chatelaine' || true)"
    $binary config show >/tmp/shown || fail "the settings of the last version are refused: $(cat /tmp/shown)"
}

look_at_purge() {
    say "purged after all that: the settings are gone"
    apt-get purge --yes chatelaine </dev/null >/tmp/apt.log 2>&1 || fail "purge: $(cat /tmp/apt.log)"
    is "what is left" "master-key redis" "$(find /etc/chatelaine -type f -printf '%f\n' | sort | xargs)"
    is "what dpkg knows of it" "" "$(dpkg-query -W -f '${Conffiles}' chatelaine 2>/dev/null || true)"
}

install_needed
start_own_redis
start_last_version
move_to "$package"
look_at_settings
move_to "$last" --allow-downgrades
move_to "$package"
look_at_purge
[ "$failures" = 0 ] || die "$failures failures"
