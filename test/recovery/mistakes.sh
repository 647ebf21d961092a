# Sourced by scripts/recovery: what operators may get wrong, each with the sentence that tells them.
# shellcheck shell=bash disable=SC2154

# The node is told to start, and must end with status 3.
expect_no_start() { # PART OF ITS LOG
    local pid
    : >/var/log/chatelaine.out
    systemctl start chatelaine
    pid=$(cat /run/units/chatelaine)
    for _ in $(seq 200); do
        kill -0 "$pid" 2>/dev/null || break
        sleep 0.1
    done
    ! kill -0 "$pid" 2>/dev/null || fail "the node serves, though: $1"
    says /var/log/chatelaine.out "$1"
    systemctl stop chatelaine
}
doctor_says() { # PART
    ! chatelaine-as-node doctor >"$dir/doctor" 2>&1 || fail "doctor sees nothing wrong: $1"
    says "$dir/doctor" "$1"
}
put_back() { # restores $1, as the document says, and leaves the nodes stopped
    walk stop
    restore_from "$1"
}
# The document restores the last backup; here it is another one.
restore_from() {
    mv /srv/backup /srv/backup.all
    install -d -m 0700 /srv/backup
    cp -a "$1" /srv/backup/
    walk restore
    rm -r /srv/backup
    mv /srv/backup.all /srv/backup
}

wrong_master_key() {
    say "the right backup, another master key"
    systemctl stop chatelaine
    cp -a /etc/chatelaine/master-key "$dir/right-key"
    chatelaine master-key >/etc/chatelaine/master-key
    doctor_says 'not the one that made this store'
    expect_no_start 'This master key is not the one that this store was created with'
    cp -a "$dir/right-key" /etc/chatelaine/master-key
}
# other_store FOLDER MASTER_KEY: leaves a backup of another clinic's store there, made with that master key.
other_store() {
    walk stop
    mv /var/lib/redis/appendonlydir "$dir/ours"
    cp "$2" /etc/chatelaine/master-key
    systemctl start redis-server
    account=$(chatelaine-as-node account create --name Elsewhere --json | jq -r .id)
    make_user eve@example.org
    walk data >/dev/null
    mv "$backup" "$1"
    walk stop
    rm -r /var/lib/redis/appendonlydir
    mv "$dir/ours" /var/lib/redis/appendonlydir
    cp "$dir/right-key" /etc/chatelaine/master-key
}
wrong_backup() {
    local ours
    ours=$(grep -h '^ok *store ' "$right/doctor")
    chatelaine master-key >"$dir/other-key"
    other_store /srv/other "$dir/other-key"
    other_store /srv/staging "$dir/right-key"
    say "the right master key, the backup of another store"
    restore_from /srv/other
    doctor_says 'not the one that made this store'
    expect_no_start 'This master key is not the one that this store was created with'
    say "the backup of another store that has the same master key"
    put_back /srv/staging
    chatelaine-as-node doctor >"$dir/doctor" 2>&1 || fail "doctor ended with $?: $(cat "$dir/doctor")"
    [ "$(grep '^ok *store ' "$dir/doctor")" != "$ours" ] || fail "another store has the same id"
    walk replay >"$dir/replayed" 2>&1
    says "$dir/replayed" 'No key of this log is in this store'
    says "$dir/replayed" 'Is it the right backup'
}
cut_backup() {
    local cut=/srv/cut file
    say "a backup that was cut short"
    cp -a "$right" "$cut"
    file=$(find "$cut/appendonlydir" -name '*.aof' -size +1k | head -n 1)
    truncate -s $(($(stat -c %s "$file") / 2)) "$file"
    walk stop
    restore_from "$cut" >"$dir/cut" 2>&1
    [ "$code" != 0 ] || fail "a backup that was cut short was restored"
    says "$dir/cut" 'FAILED'
    ! redis-cli ping >/dev/null 2>&1 || fail "Redis was started on a backup that was cut short"
}
# The node knows what it has confirmed, and tells this Redis the revocations that it lacks. Until then it decides nothing.
node_not_stopped() {
    local id secret late
    say "a node that was not stopped"
    put_back "$right"
    walk replay >/dev/null 2>&1
    walk start
    await_ready
    read -r _ _ id secret < <(sed -n 4p "$dir/created") # made before the backup
    expect_key 'a key made before the backup' "$secret" 200 -
    make_key late
    late=$(tail -n 1 "$dir/created" | cut -d' ' -f3)
    for late in "$late" "$id"; do
        revoke_key late "$late"
        grep -qx "$late" "$dir/revoked" || fail "$late could not be revoked: $(cat "$dir/late.body")"
    done
    walk logs
    systemctl stop redis-server
    restore_from "$right" >/dev/null 2>&1
    for _ in $(seq 200); do
        [ "$(status_of "$secret")" = 503 ] || break
        sleep 0.1
    done
    expect_key 'a key whose revocation this Redis lacked' "$secret" 401 api_key_revoked
    walk replay >/dev/null 2>&1
    walk accept-loss
    [ "$code" = 0 ] || fail "accept-loss ended with $code"
    await_ready
    expect_key 'a key revoked before the loss' "$secret" 401 api_key_revoked
}
look_at_mistakes() {
    cp -a "$backup" /srv/right # of the first restore
    right=/srv/right
    wrong_master_key
    wrong_backup
    cut_backup
    node_not_stopped
}
