#!/usr/bin/env bash
# The life of the package on one machine; runs in the container of lifecycle.sh, as root, with systemd.
set -euo pipefail
# shellcheck source=test/package/machine.sh
. /test/package/machine.sh

# Every file outside what changes by itself.
list_files() {
    find / -xdev \( -path /proc -o -path /sys -o -path /run -o -path /tmp -o -path /var/cache -o -path /var/lib/apt \
        -o -path /var/lib/dpkg -o -path /var/lib/redis -o -path /var/log/journal -o -path /var/lib/systemd \) -prune \
        -o -print | sort
}

look_at_installation() {
    say "installed: nothing runs, nothing is enabled, no secret was made"
    systemctl is-enabled --quiet chatelaine && fail "enabled by the package"
    systemctl is-active --quiet chatelaine && fail "started by the package"
    is "the user's home and shell" "/:/usr/sbin/nologin" "$(getent passwd chatelaine | cut -d: -f6,7)"
    is "files in /etc/chatelaine" "chatelaine.conf" "$(ls /etc/chatelaine)"
    is "dpkg --verify" "" "$(dpkg --verify chatelaine | grep -v /usr/share/ || true)"
    systemd-analyze verify --man=no chatelaine.service 2>&1 | grep -i chatelaine && fail "systemd-analyze verify"
    systemd-analyze security --threshold=15 --no-pager chatelaine.service >/tmp/security || fail "$(tail -1 /tmp/security)"
    say "$(tail -n 1 /tmp/security)"
}

look_at_wrong_settings() {
    say "wrong settings: the start fails with the reason, and is not tried again"
    systemctl start chatelaine 2>/dev/null && fail "started without settings"
    journal_of | grep -q -- '--public-origin is required' || fail "the journal does not say why"
    sleep 5
    is "state without settings" "failed 2 0" \
        "$(property ActiveState) $(property ExecMainStatus) $(property NRestarts)"
    sed -i 's|^CHATELAINE_PUBLIC_ORIGIN=.*|CHATELAINE_PUBLIC_ORIGIN=https://console.test|' $conf
    systemctl start chatelaine 2>/dev/null && fail "started without the address of Redis"
    journal_of | grep -q '/etc/chatelaine/redis' || fail "the journal does not name the file that is missing"
    chmod 0 $conf
    runuser -u chatelaine -- /usr/sbin/chatelaine-as-node doctor 2>/dev/null && fail "read settings that it may not read"
    mv $conf /tmp/conf
    systemctl start chatelaine 2>/dev/null && fail "started without its settings file"
    mv /tmp/conf $conf
    chmod 0644 $conf
    systemctl reset-failed chatelaine
}

first_start() {
    say "the steps of OPERATIONS.md: secrets, doctor, account, user, start"
    write_secrets
    chatelaine master-key --write /etc/chatelaine/master-key 2>/dev/null && fail "a master key was overwritten"
    is "modes of secrets" "400 chatelaine 400 chatelaine" \
        "$(stat --format '%a %U' /etc/chatelaine/master-key /etc/chatelaine/redis | tr '\n' ' ' | sed 's/ $//')"
    $binary doctor >/tmp/doctor || fail "doctor: $(cat /tmp/doctor)"
    grep -i 'empty' /tmp/doctor >/dev/null || fail "doctor does not say that the store is empty"
    systemctl enable --now chatelaine 2>/dev/null || fail "a start with an empty store must not fail"
    says_status "waits for the first account" chatelaine || fail "status: $(property StatusText)"
    make_owner
    $binary ready || fail "not ready"
}

look_at_use() {
    say "sign in, make keys, revoke one"
    sign_in
    step_up
    first_key
    check_answers 200 "$first"
    second=$(http POST /v1/api_keys -H "Authorization: Bearer $first" -H 'Content-Type: application/json' \
        -d '{"name":"second","mode":"live"}' | tee /tmp/key | jq -r .secret)
    check_answers 200 "$second"
    $binary key revoke "$(jq -r .id /tmp/key)" >/dev/null || fail "revoke"
    check_answers 401 "$second"
    is "lines in the revocation log" 1 "$(wc -l </var/log/chatelaine/revocations)"
    is "its owner and mode" "chatelaine 600" "$(stat --format '%U %a' /var/log/chatelaine/revocations)"
    is "owner and mode of the audit log" "chatelaine 600" "$(stat --format '%U %a' /var/log/chatelaine/audit.log)"
    grep -q '"type":"api_key.created"' /var/log/chatelaine/audit.log || fail "the audit log lacks a change"
    $binary audit verify --json /var/log/chatelaine/audit.log >/tmp/verified || [ $? = 3 ] ||
        fail "audit verify: $(cat /tmp/verified)"
    grep -E '^(warn|fail) +(audit|revocation)-log' <($binary doctor) && fail "doctor misses a log"
    ls -l /proc/"$(property MainPID)"/fd >/dev/null
}

look_at_rotation() {
    say "logrotate: the log is renamed, the node writes to the new one, no line is lost"
    logrotate --force /etc/logrotate.d/chatelaine || fail "logrotate"
    await "a new revocation log" test -e /var/log/chatelaine/revocations
    second=$(http POST /v1/api_keys -H "Authorization: Bearer $first" -H 'Content-Type: application/json' \
        -d '{"name":"third","mode":"live"}' | tee /tmp/key | jq -r .secret)
    http DELETE "/v1/api_keys/$(jq -r .id /tmp/key)" -H "Authorization: Bearer $first" >/dev/null
    check_answers 401 "$second"
    is "lines in both logs" "1 1" "$(cat /var/log/chatelaine/revocations-* | wc -l) $(wc -l </var/log/chatelaine/revocations)"
    await "the end of the reload" test "$(property ActiveState)" = active
}

look_at_reload_and_gateway() {
    say "reload; a Unix socket that only the group reaches"
    systemctl reload chatelaine || fail "reload"
    await "active after the reload" test "$(property ActiveState)" = active
    sed -i 's|^#CHATELAINE_INTERNAL_LISTEN=.*|CHATELAINE_INTERNAL_LISTEN=unix:/run/chatelaine/check.sock|' $conf
    systemctl restart chatelaine
    runuser -u www-data -- curl -sf --unix-socket /run/chatelaine/check.sock http://x/livez >/dev/null &&
        fail "a stranger reaches the internal listener"
    usermod --append --groups chatelaine www-data
    runuser -u www-data -- curl -sf --unix-socket /run/chatelaine/check.sock http://x/livez >/dev/null ||
        fail "the gateway's user does not reach the internal listener"
    runuser -u www-data -- cat /etc/chatelaine/master-key 2>/dev/null && fail "the gateway's user reads the master key"
    $binary ready || fail "not ready over the socket"
}

# As docker/gateways/README.md says.
start_nginx_with_module() {
    cat >/etc/nginx/conf.d/chatelaine.conf <<'END'
chatelaine_table /run/chatelaine/table.sock;
server {
    listen 127.0.0.1:8085;
    location / {
        root /var/www/html;
        chatelaine_check /_check;
        add_header X-Checked-By $chatelaine_from always;
        location /v1/patients { chatelaine_scope read=patients:read; alias /usr/share/common-licenses/BSD; }
    }
    location = /_check {
        internal;
        proxy_pass http://unix:/run/chatelaine/check.sock:/check/auth-request;
        proxy_pass_request_body off;
        proxy_set_header Content-Length "";
        proxy_set_header X-Original-Method $request_method;
        proxy_set_header X-Original-URI $request_uri;
    }
}
END
    systemctl restart nginx || fail "nginx does not start: $(journalctl --unit nginx --no-pager --output cat | tail -5)"
}
through_nginx() { # SECRET: "STATUS WHO"
    curl -s -o /dev/null -D /tmp/head -w '%{http_code}' -H "Authorization: Bearer $1" http://127.0.0.1:8085/v1/patients
    sed -n 's/^X-Checked-By: \([a-z]*\).*/ \1/p' /tmp/head | tr -d '\r\n'
}
is_by_table() { [ "$(through_nginx "$1")" = '200 table' ]; }
# in_program USER KEY: who decides about it, and before it about $other, which the node has in its table: "table" or
# "http". The table comes soon after the program has connected.
in_program() {
    : >/tmp/decided
    {
        for _ in $(seq 100); do
            echo "$other"
            sleep 0.1
            ! grep -q '^table' /tmp/decided || break
        done
        echo "$other"
        echo "$2"
    } | runuser -u "$1" -- /tmp/client /run/chatelaine/table.sock 1 2>/dev/null >>/tmp/decided
    tail -2 /tmp/decided | cut -d' ' -f1 | xargs
}
make_read_key() { # FILE: where the answer is left; prints the secret
    http POST /v1/api_keys -H "Authorization: Bearer $first" -H 'Content-Type: application/json' \
        -d '{"name":"by table","mode":"live","scopes":["patients:read"]}' | tee "$1" | jq -r .secret
}
look_at_table() {
    local key other
    say "the shared table: nginx with the module, and a program in C"
    install_package "$(package_file libchatelaine-check1)" "$(package_file libchatelaine-check-dev)" \
        "$(package_file libnginx-mod-http-chatelaine)" || fail "cannot be installed: $(cat /tmp/apt.log)"
    is "links of nginx's module" 1 "$(find /etc/nginx/modules-enabled -name '*chatelaine*' | wc -l)"
    # shellcheck disable=SC2046 # options
    gcc -std=gnu11 -D_GNU_SOURCE $(pkg-config --cflags chatelaine-check) /test/check/client.c -o /tmp/client ||
        fail "the header does not compile"
    echo CHATELAINE_TABLE=/run/chatelaine/table.sock >>$conf
    echo CHATELAINE_CHECK_STATUS=strict401 >>$conf
    systemctl restart chatelaine || fail "the node does not start with a table"
    start_nginx_with_module
    key=$(make_read_key /tmp/key) other=$(make_read_key /tmp/other)
    is "with a wrong key" '401 node' "$(through_nginx wrong)"
    await "a check by the table" is_by_table "$key"
    await "a check of another key by the table" is_by_table "$other"
    is "in a program in C" 'table table' "$(in_program www-data "$key")"
    is "in a stranger's program" 'http http' "$(in_program nobody "$key")"
    http DELETE "/v1/api_keys/$(jq -r .id /tmp/key)" -H "Authorization: Bearer $first" >/dev/null
    is "after its revocation" '401 node' "$(through_nginx "$key")"
    is "in the program after its revocation" 'table http' "$(in_program www-data "$key")"
    rm /etc/nginx/conf.d/chatelaine.conf
    sed -i '/^CHATELAINE_TABLE=/d; /^CHATELAINE_CHECK_STATUS=strict401/d' $conf
    systemctl restart chatelaine
    apt-get purge --yes libnginx-mod-http-chatelaine libchatelaine-check-dev libchatelaine-check1 >/tmp/apt.log 2>&1 ||
        fail "purge: $(cat /tmp/apt.log)"
    is "links of nginx's module" 0 "$(find /etc/nginx/modules-enabled -name '*chatelaine*' | wc -l)"
    systemctl restart nginx || fail "nginx does not start without the module"
    systemctl stop nginx
}

has_new_pid() { # OLD
    local now
    now=$(property MainPID)
    [ "$now" != 0 ] && [ "$now" != "$1" ] && [ "$(property ActiveState)" = active ]
}
look_at_failures() {
    local pid
    say "SIGKILL: started again"
    pid=$(property MainPID)
    kill -KILL "$pid"
    await "a new process after SIGKILL" has_new_pid "$pid"
    check_answers 200 "$first"
    say "a loop that hangs: the watchdog ends it, and it is started again (20 s)"
    pid=$(property MainPID)
    kill -STOP "$pid"
    await "a new process after a hang" has_new_pid "$pid"
    journal_of | grep -qi 'watchdog timeout' || fail "the journal does not tell of the watchdog"
    check_answers 200 "$first"
    say "Redis goes away and comes back: the node stays and tells"
    pid=$(property MainPID)
    systemctl stop redis-server
    await "a status of trouble" says_status "answers 503" chatelaine
    systemctl start redis-server
    await "recovery" says_status "lease held" chatelaine
    is "the process after Redis was away" "$pid" "$(property MainPID)"
    say "a start without Redis is not a failure"
    systemctl stop chatelaine redis-server
    systemctl start chatelaine || fail "the start failed because Redis is away"
    says_status "waits" chatelaine || fail "status: $(property StatusText)"
    systemctl start redis-server
    await "the node serves" says_status "lease held" chatelaine
}

look_at_drain() {
    local began=$SECONDS
    say "a drain that lasts longer than TimeoutStopSec is not cut"
    systemctl stop chatelaine
    mkdir -p /run/systemd/system/chatelaine.service.d
    printf '[Service]\nTimeoutStopSec=3\n' >/run/systemd/system/chatelaine.service.d/short.conf
    systemctl daemon-reload
    echo 'CHATELAINE_DRAIN_MS=8000' >>$conf
    systemctl start chatelaine
    # A request without an end keeps its connection.
    (printf 'GET /v1/whoami HTTP/1.1\r\nHost: x\r\n' && sleep 20) | timeout 20 bash -c 'exec 3<>/dev/tcp/127.0.0.1/8080; cat >&3' &
    sleep 1
    began=$SECONDS
    systemctl stop chatelaine
    [ $((SECONDS - began)) -ge 6 ] || fail "the drain was cut after $((SECONDS - began)) s"
    is "result of the stop" "success" "$(property Result)"
    wait $! || true
    rm -r /run/systemd/system/chatelaine.service.d
    systemctl daemon-reload
    sed -i '/^CHATELAINE_DRAIN_MS=8000/d' $conf
    systemctl start chatelaine
}

# Two more nodes, on ports of their own, with the settings of chatelaine.conf.
start_instances() {
    local i
    say "two instances of chatelaine@.service"
    for i in 1 2; do
        printf 'CHATELAINE_LISTEN=127.0.0.1:809%d\nCHATELAINE_INTERNAL_LISTEN=unix:/run/chatelaine-%d/check.sock\n' $i $i \
            >/etc/chatelaine/$i.conf
    done
    systemctl enable --now chatelaine@1 chatelaine@2 2>/dev/null || fail "the instances do not start"
    for i in 1 2; do
        check_answers 200 "$first" http://127.0.0.1:809$i
        $binary --instance $i ready || fail "instance $i is not ready"
        await "an audit log of instance $i" test -s /var/log/chatelaine/audit-$i.log
    done
}

# new_package VERSION: the same one under that version.
new_package() {
    dpkg-deb -R "$package" /tmp/unpacked
    sed -i "s/^Version: .*/Version: $1/" /tmp/unpacked/DEBIAN/control
    dpkg-deb --root-owner-group --build /tmp/unpacked "/tmp/chatelaine_$1.deb" >/dev/null
    rm -r /tmp/unpacked
}
# One of the three must accept the key at any moment, as behind a balancer that asks the next one after a 503.
ask_all() {
    local port
    while [ ! -e /tmp/enough ]; do
        for port in 8080 8091 8092 none; do
            [ "$port" != none ] || echo "nobody answered 200"
            [ "$(curl -s -m 5 -o /dev/null -w '%{http_code}' -H "Authorization: Bearer $first" \
                "http://127.0.0.1:$port/v1/whoami")" != 200 ] || break
        done
        echo asked
    done
}
look_at_upgrade() {
    local before after asker
    say "upgrade while three nodes serve: restarted one by one, settings kept"
    before=$(property MainPID) before=$before\ $(property MainPID chatelaine@1)\ $(property MainPID chatelaine@2)
    new_package "9.0.0+deb$CHATELAINE_DEBIAN"
    cp $conf /tmp/mine
    ask_all >/tmp/asked &
    asker=$!
    install_package /tmp/chatelaine_9*.deb || fail "upgrade: $(cat /tmp/apt.log)"
    touch /tmp/enough
    wait "$asker"
    is "requests that nobody accepted" 0 "$(grep -c nobody /tmp/asked || true)"
    say "$(grep -c asked /tmp/asked) requests during the upgrade"
    cmp $conf /tmp/mine || fail "the settings were replaced"
    is "version" "9.0.0+deb$CHATELAINE_DEBIAN" "$(dpkg-query -W -f '${Version}' chatelaine)"
    after=$(property MainPID) after=$after\ $(property MainPID chatelaine@1)\ $(property MainPID chatelaine@2)
    for pid in $before; do [[ " $after " != *" $pid "* ]] || fail "process $pid was not restarted"; done
    say "an upgrade under which nodes do not start leaves those after the first one running"
    sed -i 's|^CHATELAINE_PUBLIC_ORIGIN=.*|CHATELAINE_PUBLIC_ORIGIN=wrong|' $conf
    install_package --reinstall /tmp/chatelaine_9*.deb || fail "a node that does not start must not fail the package"
    is "nodes that still run" 2 "$(systemctl list-units --plain --no-legend --state=active 'chatelaine.service' 'chatelaine@*' | wc -l)"
    grep -q 'does not start with this version' /tmp/apt.log || fail "the upgrade does not say so"
    cp /tmp/mine $conf
    systemctl restart chatelaine 'chatelaine@*'
    say "an upgrade that refuses a line of the settings leaves all nodes running, and names the line"
    echo 'export CHATELAINE_LEASE_MS=1s' >>$conf
    install_package --reinstall /tmp/chatelaine_9*.deb || fail "settings that are refused must not fail the package"
    is "nodes that go on" 3 "$(systemctl list-units --plain --no-legend --state=active 'chatelaine.service' 'chatelaine@*' | wc -l)"
    grep -q "$conf:[0-9]*: write NAME=value, without export" /tmp/apt.log || fail "the upgrade does not name the line"
    cp /tmp/mine $conf
    say "the same version again, and the older one"
    install_package --reinstall /tmp/chatelaine_9*.deb || fail "reinstall"
    install_package --allow-downgrades "$package" || fail "downgrade"
    check_answers 200 "$first"
}

look_at_full_disk() {
    say "a full disk: the installation fails, the installed version stays and serves"
    mkdir -p /tmp/little
    mount -t tmpfs -o size=256k tmpfs /usr/share/doc/chatelaine
    head -c 1M /dev/zero >/usr/share/doc/chatelaine/fill 2>/dev/null || true
    install_package /tmp/chatelaine_9*.deb && fail "installed on a full disk"
    umount /usr/share/doc/chatelaine
    check_answers 200 "$first"
    install_package --fix-broken || true
    install_package --reinstall --allow-downgrades "$package" || fail "after the disk was full: $(cat /tmp/apt.log)"
    check_answers 200 "$first"
}

look_at_removal() {
    say "removed: stopped, secrets and settings stay"
    apt-get remove --yes chatelaine >/tmp/apt.log 2>&1 || fail "remove"
    is "processes" "" "$(pgrep -x chatelaine || true)"
    [ -e $conf ] && [ -e /etc/chatelaine/master-key ] || fail "settings or secrets went"
    say "installed again: the settings are those of before"
    install_package "$package" || fail "installing again"
    systemctl start chatelaine || fail "starting again"
    check_answers 200 "$first"
    say "purged: only what the operator made is left"
    apt-get purge --yes chatelaine >/tmp/apt.log 2>&1 || fail "purge"
    grep -q 'left what is in /etc/chatelaine' /tmp/apt.log || fail "purge does not say what it left"
    [ -s /etc/chatelaine/master-key ] || fail "the master key went"
    rm -f /etc/chatelaine/{master-key,redis,1.conf,2.conf} /var/log/chatelaine/{revocations,audit}*
    rmdir /etc/chatelaine /var/log/chatelaine || fail "more was left: $(ls /etc/chatelaine /var/log/chatelaine 2>&1)"
    list_files >/tmp/after
    diff /tmp/before /tmp/after | grep '^[<>]' | grep -vE '/etc/(passwd|group|shadow|gshadow|subuid|subgid)-?$|/var/log/|/root/|/var/lib/logrotate/|/var/tmp/systemd-private-' |
        tee /tmp/left | grep . && fail "purging left or took these files"
    say "on a machine that has such a user already"
    install_package "$package" || fail "installing after a purge"
    apt-get purge --yes chatelaine >/dev/null 2>&1
}

install_needed
start_own_redis
list_files >/tmp/before
install_package "$package" || die "cannot be installed: $(cat /tmp/apt.log)"
look_at_installation
look_at_wrong_settings
first_start
look_at_use
look_at_rotation
look_at_reload_and_gateway
look_at_table
look_at_failures
look_at_drain
start_instances
look_at_upgrade
look_at_full_disk
look_at_removal
[ "$failures" = 0 ] || die "$failures failures"
