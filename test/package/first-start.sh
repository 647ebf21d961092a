#!/usr/bin/env bash
# Follows OPERATIONS.md word for word on a fresh machine, from "Redis" to the end of "First start": its blocks are run as they
# stand there, in their order, with the words replaced that it says to replace. Runs in a container of lifecycle.sh.
set -euo pipefail
# shellcheck source=test/package/machine.sh
. /test/package/machine.sh

# section HEADING: its lines in the document.
section() {
    awk -v heading="$1" '
        /^```/ { inside = !inside }
        !inside && /^#/ { found = $0 == heading }
        found' /operations
}
# split HEADING: leaves the blocks of that section in $dir/block.1, …, the first line of each being its fence.
split() {
    rm -f "$dir"/block.*
    section "$1" | awk -v file="$dir/block." '
        !inside && /^```/ { inside = 1; count++ }
        inside && /^```$/ && lines[count] > 0 { inside = 0; next }
        inside { lines[count]++; print >(file count) }'
    find "$dir" -name 'block.*' | wc -l
}
# says HEADING WORDS
says() { section "$1" | tr -s '\n ' '  ' | grep -F -- "$2" >/dev/null || fail "'$1' does not say '$2'"; }
# filled_in BLOCK: with the words replaced that the document says to replace, and nothing else. A word that is left makes a step fail.
filled_in() {
    sed '1d' "$dir/block.$1" | sed "s/ADMIN_PASSWORD/aDmin3Qx7/g; s/PASSWORD\\b/nodePw9k2/g
        s|https://console\\.example\\.org|https://console.test|g"
}
# One shell runs all blocks, as a person's would. Each command must succeed, unless the document says what else it does.
run_block() {
    local code=0
    say "$(filled_in "$1" | head -n 1) …"
    filled_in "$1" >"$dir/commands"
    set +u
    # shellcheck source=/dev/null
    . "$dir/commands" >"$dir/said" 2>&1 || code=$?
    set -u
    [ "$code" = 0 ] || fail "a block ended with $code: $(cat "$dir/commands" "$dir/said")"
}
# What a person does not see is no help: doctor names at once all that is missing.
look_at_fresh_machine() {
    local word
    say "before anything is set, doctor names all that is missing at once"
    chatelaine-as-node doctor >"$dir/doctor" 2>&1 && fail "doctor finds nothing missing"
    for word in --public-origin /etc/chatelaine/master-key /etc/chatelaine/redis; do
        grep -q -e "$word" "$dir/doctor" || fail "doctor does not name $word: $(cat "$dir/doctor")"
    done
}
follow_redis() {
    local heading='### Redis'
    is "blocks of $heading" 2 "$(split "$heading")"
    # shellcheck disable=SC2016 # as the document writes it
    says "$heading" 'append them to `/etc/redis/redis.conf`'
    # shellcheck disable=SC2016
    says "$heading" 'for `ADMIN_PASSWORD` and `PASSWORD`'
    is "the first block" '# redis.conf' "$(filled_in 1 | head -n 1)"
    filled_in 1 >>/etc/redis/redis.conf
    run_block 2
    is "redis-cli's answer" PONG "$(cat "$dir/said")"
    redis-cli config get appendfsync | grep -q always || fail "redis-cli may not do what it may"
}
follow_first_start() {
    local heading='### First start' step code
    is "blocks of $heading" 2 "$(split "$heading")"
    run_block 1
    # The second one needs the account that it prints, so its commands come one by one.
    filled_in 2 | grep -v '^#' >"$dir/steps"
    while IFS= read -r step <&3; do
        step=${step//acct_…/${account-}}
        say "${step%%  *}"
        code=0
        bash -c "$step" >"$dir/said" 2>&1 || code=$?
        case $step in
            *' doctor '*) grep -iq '^warn.* empty' "$dir/said" || fail "doctor does not warn that the store is empty" ;;
            *' ready '*) await "the node is ready" serves && code=0 ;; # "after a second"
            *'account create'*) account=$(grep -o 'acct_[0-9a-z]*' "$dir/said" | head -n 1) ;;
            *'user create'*) grep -q 'https://console.test/' "$dir/said" || fail "no link: $(cat "$dir/said")" ;;
        esac
        [ "$code" = 0 ] || fail "'$step' ended with $code: $(cat "$dir/said")"
    done 3<"$dir/steps"
}
serves() { chatelaine-as-node ready >/dev/null 2>&1; }
fits() { chatelaine-as-node status >"$dir/status" 2>&1; }
look_at_result() {
    local step
    say "it serves, and the commands of \"At three in the morning\" work in a fresh shell"
    await "the node serves" serves
    is "enabled" enabled "$(systemctl is-enabled chatelaine)"
    await "a status of all is well" fits
    says '## At three in the morning' 'chatelaine-as-node status'
    section '## At three in the morning' | grep -oE '`chatelaine (status|doctor|key|audit|session|account)[^`]*' &&
        fail "commands that have not the nodes' settings"
    for step in 'key list' 'config show' 'doctor'; do
        # shellcheck disable=SC2086 # words
        env -i PATH="$PATH" bash -lc "chatelaine-as-node $step" >"$dir/said" 2>&1 || fail "$step: $(cat "$dir/said")"
    done
}
look_at_next_upgrade() {
    say "the next upgrade asks nothing"
    says '### First start' 'asks nothing'
    cp $conf "$dir/mine"
    next_package
    install_package "$dir"/next.deb || fail "the next upgrade: $(tail -3 /tmp/apt.log)"
    cmp $conf "$dir/mine" || fail "the settings were touched"
    await "the node serves" serves
}
next_package() {
    dpkg-deb -R "$package" "$dir/unpacked"
    sed -i 's/^Version: .*/Version: 9.0.0/' "$dir/unpacked/DEBIAN/control"
    dpkg-deb --root-owner-group --build "$dir/unpacked" "$dir/next.deb" >/dev/null
}

install_needed
install_package "$package" || die "cannot be installed: $(cat /tmp/apt.log)"
look_at_fresh_machine
follow_redis
follow_first_start
look_at_result
look_at_next_upgrade
[ "$failures" = 0 ] || die "$failures failures"
