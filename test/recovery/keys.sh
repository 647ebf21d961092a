# Sourced by scripts/recovery: people, keys, and what must have become of each key.
# shellcheck shell=bash disable=SC2154

url=http://127.0.0.1:8080 origin=https://console.example.org
email=ada@example.org

now_ms() { echo $(($(date +%s%N) / 1000000)); }
# make_user EMAIL: sets seed.
make_user() {
    seed=$(chatelaine-as-node user create --account "$account" --email "$1" --password-file "$dir/password" \
        --permanent-password --json | jq -r .totp_uri | sed 's/.*[?&]secret=\([A-Z2-7]*\).*/\1/')
}
# Bob signs in for the first time after the restore: each code works once.
make_people() {
    chmod 0755 "$dir"
    (umask 077 && echo 'amber falcons drift at 42' >"$dir/password")
    chown chatelaine: "$dir/password"
    account=$(chatelaine-as-node account create --name "North Clinic" --json | jq -r .id)
    make_user bob@example.org
    bob_seed=$seed
    make_user "$email"
}
make_manager() {
    sign_in
    step_up
    first_key
}

# Requests by the manager key; the status is in $dir/TAG.status, so that several may run at once.
# managed TAG METHOD PATH [JSON]
managed() {
    curl -sS --max-time 20 -X "$2" -o "$dir/$1.body" -w '%{http_code}' "$url$3" -H "Authorization: Bearer $first" \
        ${4:+-H 'Content-Type: application/json' -d "$4"} >"$dir/$1.status" || echo 000 >"$dir/$1.status"
}
# status_of SECRET: of a check; the error's code is in $dir/check.code.
status_of() {
    curl -sS --max-time 20 -o "$dir/check.body" -w '%{http_code}' "$url/v1/whoami" -H "Authorization: Bearer $1"
    jq -r '.error.code? // "-"' "$dir/check.body" >"$dir/check.code"
}

# $dir/created: "<ms before> <ms after> ID SECRET" for each key whose creation was answered. $dir/revoked: the ids of keys
# whose revocation was answered. $dir/tried: of those whose revocation was sent.
make_key() { # [TAG]
    local tag=${1:-make} began
    began=$(now_ms)
    managed "$tag" POST /v1/api_keys '{"name":"short-lived","mode":"live"}'
    [ "$(cat "$dir/$tag.status")" = 201 ] || return 0
    jq -r --arg began "$began" --arg ended "$(now_ms)" '"\($began) \($ended) \(.id) \(.secret)"' "$dir/$tag.body" >>"$dir/created"
}
revoke_key() { # TAG ID
    echo "$2" >>"$dir/tried"
    managed "$1" DELETE "/v1/api_keys/$2"
    [ "$(cat "$dir/$1.status")" != 200 ] || echo "$2" >>"$dir/revoked"
}
# Of three keys, one is revoked at once, one a while later, and one stays.
churn() {
    local count=0 late=()
    while [ ! -e "$dir/churn.enough" ]; do
        make_key churn
        count=$((count + 1))
        case $((count % 3)) in
            0) revoke_key churn "$(tail -n 1 "$dir/created" | cut -d' ' -f3)" ;;
            1) late+=("$(tail -n 1 "$dir/created" | cut -d' ' -f3)") ;;
        esac
        if [ ${#late[@]} -gt 8 ]; then
            revoke_key churn "${late[0]}"
            late=("${late[@]:1}")
        fi
        sleep 0.05
    done
}
start_churn() {
    rm -f "$dir/churn.enough"
    churn &
    churn_pid=$!
    pids+=("$churn_pid")
}
stop_churn() {
    touch "$dir/churn.enough"
    forget "$churn_pid"
}

# made_before MS / made_after MS: ids of keys, sorted.
made_before() { awk -v at="$1" '$2 < at {print $3}' "$dir/created" | sort; }
made_after() { awk -v at="$1" '$1 > at {print $3}' "$dir/created" | sort; }
# The replay names each revoked key once, and those that were made after the backup as unknown.
judge_replay() { # FILE
    local named revoked before unknown unreadable all late
    named=$(grep -oE '^[0-9]+ keys? revoked, .*' "$1") || named=''
    read -r revoked before unknown unreadable < <(grep -oE '[0-9]+' <<<"$named" | tr '\n' ' ') || true
    all=$(sort -u "$dir/revoked" | wc -l)
    late=$(made_after "$backup_ended" | join - <(sort -u "$dir/revoked") | wc -l)
    say "the replay: $named; confirmed before the loss: $all revocations, $late of them of keys made after the backup"
    [ "${revoked:-0}" -gt 0 ] || fail "the replay revoked nothing: $(cat "$1")"
    [[ ${unknown:-0} -ge $late && $late -gt 0 ]] || fail "$late revoked keys were made after the backup: $named"
    [ $((${revoked:-0} + ${before:-0} + ${unknown:-0})) -ge "$all" ] || fail "$all keys were revoked: $named"
    [ "${unreadable:-1}" = 0 ] || fail "unreadable lines: $named"
    says "$1" 'Unknown keys were created after the backup'
}
# expect_key WHAT SECRET STATUS CODE
expect_key() {
    local got
    got=$(status_of "$2")
    [ "$got $(cat "$dir/check.code")" = "$3 $4" ] || fail "$1: $got $(cat "$dir/check.code") instead of $3 $4"
}
judge_keys() {
    local began ended id secret refused=0 working=0 unknown=0
    while read -r began ended id secret; do
        if grep -qx "$id" "$dir/revoked"; then
            [ "$(status_of "$secret")" = 401 ] || fail "$id is accepted, and its revocation was confirmed"
            refused=$((refused + 1))
        elif [ "$ended" -lt "$backup_begins" ] && ! grep -qx "$id" "$dir/tried"; then
            expect_key "$id, made before the backup" "$secret" 200 -
            working=$((working + 1))
        elif [ "$began" -gt "$backup_ended" ]; then
            expect_key "$id, made after the backup" "$secret" 401 invalid_api_key
            unknown=$((unknown + 1))
        fi
    done <"$dir/created"
    say "$refused revoked keys are refused, $working keys made before the backup work, $unknown made after it are unknown"
    [[ $refused != 0 && $working != 0 && $unknown != 0 ]] || fail "one kind of key is missing"
}
# The store serves on: a person signs in, a key is made, used and revoked.
judge_service() {
    local id secret
    email=bob@example.org seed=$bob_seed
    sign_in now
    make_key service
    read -r _ _ id secret < <(tail -n 1 "$dir/created")
    expect_key 'a key made after the restore' "$secret" 200 -
    revoke_key service "$id"
    expect_key 'the same key, revoked' "$secret" 401 api_key_revoked
}
