# Sourced by the scenes that lifecycle.sh runs in a container with systemd, as root: what they share.
# shellcheck shell=bash disable=SC2034 # the scenes read these
name=${0##*/} name=${name%.sh} binary=/usr/sbin/chatelaine-as-node
# shellcheck source=test/support/deployment.sh
. /test/support/deployment.sh
export DEBIAN_FRONTEND=noninteractive LC_ALL=C.UTF-8

failures=0
fail() {
    say "FAILED: $*"
    failures=$((failures + 1))
}
is() { # WHAT EXPECTED GOT
    [ "$2" = "$3" ] || fail "$1: expected '$2', got '$3'"
}
property() { systemctl show --property="$1" --value "${2:-chatelaine}"; }
journal_of() { journalctl --unit chatelaine --no-pager --output cat; }
# await WHAT COMMAND…: within 60 s
await() {
    local what=$1
    shift
    for _ in $(seq 300); do
        "$@" && return
        sleep 0.2
    done
    fail "$what did not come true"
}
says_status() { [[ $(property StatusText "$2") == *"$1"* ]]; }
check_answers() { # EXPECTED SECRET [URL]: the status of a request with that key
    is "a request with a key" "$1" \
        "$(curl -s -o /dev/null -w '%{http_code}' -H "Authorization: Bearer $2" "${3:-$url}/v1/whoami")"
}
# package_file NAME: of this Debian
package_file() { echo "/packages/$1_"*"+deb${CHATELAINE_DEBIAN}"_*.deb; }
package=$(package_file chatelaine)
conf=/etc/chatelaine/chatelaine.conf
# As unattended upgrades do: a question would fail.
install_package() { apt-get install --yes --no-install-recommends "$@" </dev/null >/tmp/apt.log 2>&1; }

start_own_redis() {
    cat >/etc/redis/redis.conf <<END
bind 127.0.0.1
dir /var/lib/redis
supervised systemd
daemonize no
appendonly yes
appendfsync always
no-appendfsync-on-rewrite no
maxmemory-policy noeviction
save ""
user default on >ADMIN ~* &* +@all
user chatelaine on >PASSWORD ~chatelaine:* &chatelaine:* +@all -@dangerous +info +role +config|get +acl|dryrun
END
    systemctl start redis-server
}

# What the package depends on comes first: it is not to be counted among the package's own files.
install_needed() {
    local needed
    apt-get update >/dev/null 2>&1
    mapfile -t needed < <(dpkg-deb -f "$package" Depends | tr ',' '\n' | sed 's/|.*//; s/(.*//; s/ //g')
    apt-get install --yes --no-install-recommends "${needed[@]}" >/dev/null 2>&1
}
write_secrets() {
    (umask 077 && echo "redis://chatelaine:PASSWORD@127.0.0.1:6379" >/etc/chatelaine/redis)
    chatelaine master-key --write /etc/chatelaine/master-key
    chmod 0400 /etc/chatelaine/redis
    chown chatelaine: /etc/chatelaine/redis /etc/chatelaine/master-key
}
# An account and a person in it; the node serves then.
make_owner() {
    account=$($binary account create --name Demo --json | jq -r .id)
    seed=$(echo 'amber falcons drift at 42' |
        $binary user create --account "$account" --email "$email" --password-file - --permanent-password --json |
        jq -r .totp_uri | sed 's/.*[?&]secret=\([A-Z2-7]*\).*/\1/')
    await "the status of a node that serves" says_status "lease held" chatelaine
    url=http://127.0.0.1:8080
}
