# Sourced by scripts/containers: keys are made, revoked and tried while Redis fails. They belong to the account of $first;
# what was acknowledged is in the folder $writes.
# shellcheck shell=bash disable=SC2154

# Keys are made slower than --changes-per-minute allows, and revoked more slowly still: there is always one to revoke, so
# that revocations are measured from the master's death and not from the next new key.
maker_pause_s=0.15 revoker_pause_s=0.5 prober_pause_s=0.05 retry_s=0.03

now_ms() { echo $(($(date +%s%N) / 1000000)); }
# Both write a line for each thing acknowledged: "made|revoked ASKED-MS ANSWERED-MS ID SECRET".
maker() {
    local answer asked
    while [ ! -e "$dir/writes.enough" ]; do
        asked=$(now_ms)
        answer=$(curl -s --max-time 20 -w '\n%{http_code}' -H "Authorization: Bearer $first" -H 'Content-Type: application/json' \
            -d '{"name":"written","mode":"live"}' "$url/v1/api_keys") || true
        [ "${answer##*$'\n'}" = 201 ] || {
            sleep "$retry_s"
            continue
        }
        echo "made $asked $(now_ms) $(jq -r '"\(.id) \(.secret)"' <<<"${answer%$'\n'*}")" >>"$writes/1"
        sleep "$maker_pause_s"
    done
}
# Revokes every second key.
revoker() {
    local asked id secret count=0
    while [ ! -e "$dir/writes.enough" ]; do
        [ "$(wc -l <"$writes/1")" -ge $((count + 2)) ] || {
            sleep "$retry_s"
            continue
        }
        count=$((count + 2))
        read -r id secret < <(awk -v line="$count" 'NR == line {print $4, $5}' "$writes/1")
        # Until the answer came, the key is neither revoked nor made: nobody can know.
        asked=$(now_ms)
        echo "asked $asked - $id $secret" >>"$writes/2"
        until [ "$(curl -s --max-time 20 -o /dev/null -w '%{http_code}' -X DELETE -H "Authorization: Bearer $first" "$url/v1/api_keys/$id")" = 200 ]; do
            [ ! -e "$dir/writes.enough" ] || return 0
            sleep "$retry_s"
            asked=$(now_ms)
        done
        echo "revoked $asked $(now_ms) $id $secret" >>"$writes/2"
        sleep "$revoker_pause_s"
    done
}
# Asks again and again for keys whose revocation was acknowledged before.
prober() {
    local secret status
    while [ ! -e "$dir/writes.enough" ]; do
        for secret in $(
            awk '$1 == "revoked" {print $5}' "$writes"/[12] | tail -5
            awk '$1 == "revoked" {print $5}' "$writes"/[12] | shuf -n 3
        ); do
            status=$(curl -s --max-time 20 -o /dev/null -w '%{http_code}' -H "Authorization: Bearer $secret" "$url/v1/patients/1") || true
            echo "$status" >>"$writes/probes"
            [ "$status" != 200 ] || echo "a revoked key was accepted at $(now_ms): ${secret: -4}" >>"$writes/wrong"
        done
        sleep "$prober_pause_s"
    done
}
start_writes() { # FOLDER
    local work
    writes=$1
    mkdir "$writes"
    : >"$writes/1"
    : >"$writes/2"
    for work in maker revoker prober; do
        $work &
        pids+=($!)
    done
}
acknowledged_since() { # made|revoked MS: when the first request that was sent since then was answered, or nothing
    awk -v what="$1" -v since="$2" '$1 == what && $2 >= since {print $3}' "$writes"/[12] | sort -n | head -1
}
# await_writes WHERE MS LIMIT-MS: until a key was made and one revoked by requests that were sent since then.
await_writes() {
    local what when
    for what in made revoked; do
        for _ in $(seq 600); do
            when=$(acknowledged_since "$what" "$2")
            [ -z "$when" ] || break
            sleep 0.1
        done
        [ -n "$when" ] || {
            fail "$1: no key was $what within 60 s"
            continue
        }
        say "$1: a key was $what after $((when - $2)) ms"
        echo "$what $((when - $2))" >>"$writes/failovers"
        [ $((when - $2)) -le "$3" ] || fail "$1: later than $(($3 / 1000)) s"
    done
}
end_writes() {
    sleep 2
    touch "$dir/writes.enough"
    sleep 1
}
# No revoked key was accepted meanwhile, and what was acknowledged is there.
look_at_writes() {
    local what secret
    [ ! -e "$writes/wrong" ] || {
        cat "$writes/wrong" >&2
        fail "revoked keys were accepted"
    }
    # Whether a key whose revocation was asked for and not acknowledged is revoked, nobody can know.
    awk '{last[$5] = $1} END {for (secret in last) print last[secret], secret}' "$writes"/[12] >"$writes/final"
    while read -r what secret; do
        http GET /v1/whoami -H "Authorization: Bearer $secret" --max-time 20 >/dev/null
        case $what in
            made) judge 'a key that was acknowledged' "200 mode=live" ;;
            revoked) judge 'a revocation that was acknowledged' '401 api_key_revoked' ;;
        esac
    done <"$writes/final"
    for what in made revoked; do
        say "after a failover a key was $what within $(awk -v what="$what" '$1 == what {print $2}' "$writes/failovers" | sort -n | tail -1) ms"
    done
    say "$(grep -c made "$writes/final") keys and $(grep -c revoked "$writes/final") revocations were acknowledged, and are there; $(wc -l <"$writes/probes") probes with revoked keys"
}
