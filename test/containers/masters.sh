# Sourced by scripts/containers: the master of Redis fails while keys are made and revoked.
# shellcheck shell=bash

# Keys are made slower than --changes-per-minute allows, and revoked more slowly still: there is always one to revoke, so
# that revocations are measured from the master's death and not from the next new key.
maker_pause_s=0.15 revoker_pause_s=0.5 retry_s=0.03

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
        echo "made $asked $(now_ms) $(jq -r '"\(.id) \(.secret)"' <<<"${answer%$'\n'*}")" >>"$dir/writes.1"
        sleep "$maker_pause_s"
    done
}
# Revokes every second key.
revoker() {
    local asked id secret count=0
    while [ ! -e "$dir/writes.enough" ]; do
        [ "$(wc -l <"$dir/writes.1")" -ge $((count + 2)) ] || {
            sleep "$retry_s"
            continue
        }
        count=$((count + 2))
        read -r id secret < <(awk -v line="$count" 'NR == line {print $4, $5}' "$dir/writes.1")
        # Until the answer came, the key is neither revoked nor made: nobody can know.
        asked=$(now_ms)
        echo "asked $asked - $id $secret" >>"$dir/writes.2"
        until [ "$(curl -s --max-time 20 -o /dev/null -w '%{http_code}' -X DELETE -H "Authorization: Bearer $first" "$url/v1/api_keys/$id")" = 200 ]; do
            [ ! -e "$dir/writes.enough" ] || return 0
            sleep "$retry_s"
            asked=$(now_ms)
        done
        echo "revoked $asked $(now_ms) $id $secret" >>"$dir/writes.2"
        sleep "$revoker_pause_s"
    done
}
# Asks again and again for keys whose revocation was acknowledged before.
prober() {
    local secret status
    while [ ! -e "$dir/writes.enough" ]; do
        for secret in $(
            awk '$1 == "revoked" {print $5}' "$dir"/writes.[12] | tail -5
            awk '$1 == "revoked" {print $5}' "$dir"/writes.[12] | shuf -n 3
        ); do
            status=$(curl -s --max-time 20 -o /dev/null -w '%{http_code}' -H "Authorization: Bearer $secret" "$url/v1/patients/1") || true
            echo "$status" >>"$dir/probes"
            [ "$status" != 200 ] || echo "a revoked key was accepted at $(now_ms): ${secret: -4}" >>"$dir/wrong"
        done
        sleep 0.05
    done
}
sentinel() { compose exec -T "sentinel$1" sh /etc/chatelaine/cli 26379 sentinel "${@:2}"; }
master_service() {
    case $(sentinel 1 get-master-addr-by-name chatelaine | head -1) in
        *.21) echo redis ;;
        *.22) echo replica1 ;;
        *.23) echo replica2 ;;
    esac
}
# Two that follow, and three Sentinels that agree on the master.
await_replicas() {
    local deadline=$((SECONDS + 60))
    while [ "$SECONDS" -lt "$deadline" ]; do
        [ "$(for number in 1 2 3; do sentinel "$number" get-master-addr-by-name chatelaine | head -1; done | sort -u | wc -l)" = 1 ] &&
            [ "$(sentinel 1 replicas chatelaine | tr -d '\r' | paste - - | grep -c -P '^(flags\tslave|master-link-status\tok)$')" = 4 ] &&
            return
        sleep 0.3
    done
    sentinel 1 replicas chatelaine >&2
    die "the replicas do not follow"
}
acknowledged_since() { # made|revoked MS: when the first request that was sent since then was answered, or nothing
    awk -v what="$1" -v since="$2" '$1 == what && $2 >= since {print $3}' "$dir"/writes.[12] | sort -n | head -1
}
fail_over() { # ROUND
    local master killed what when
    await_replicas
    master=$(master_service)
    compose kill "$master" >>"$dir/compose.log" 2>&1
    killed=$(date --date "$(docker inspect --format '{{.State.FinishedAt}}' "$(container "$master")")" +%s%3N)
    for what in made revoked; do
        for _ in $(seq 300); do
            when=$(acknowledged_since "$what" "$killed")
            [ -z "$when" ] || break
            sleep 0.1
        done
        [ -n "$when" ] || {
            fail "round $1: no key was $what within 30 s after $master was killed"
            continue
        }
        say "round $1: $master killed, a key was $what after $((when - killed)) ms"
        echo "$what $((when - killed))" >>"$dir/failovers"
        [ $((when - killed)) -le 10000 ] || fail "round $1: later than 10 s"
    done
    compose start "$master" >>"$dir/compose.log" 2>&1
    await_healthy "$master"
}
look_at_failing_masters() {
    local round what secret
    : >"$dir/writes.1"
    : >"$dir/writes.2"
    maker &
    pids+=($!)
    revoker &
    pids+=($!)
    prober &
    pids+=($!)
    sleep 5 # until revocations have begun
    for round in $(seq "$rounds"); do fail_over "$round"; done
    sleep 2
    touch "$dir/writes.enough"
    sleep 1
    await_replicas
    [ ! -e "$dir/wrong" ] || {
        cat "$dir/wrong" >&2
        fail "revoked keys were accepted"
    }
    # Whether a key whose revocation was asked for and not acknowledged is revoked, nobody can know.
    awk '{last[$5] = $1} END {for (secret in last) print last[secret], secret}' "$dir"/writes.[12] >"$dir/final"
    while read -r what secret; do
        http GET /v1/whoami -H "Authorization: Bearer $secret" --max-time 20 >/dev/null
        case $what in
            made) judge 'a key that was acknowledged' "200 mode=live" ;;
            revoked) judge 'a revocation that was acknowledged' '401 api_key_revoked' ;;
        esac
    done <"$dir/final"
    for what in made revoked; do
        say "after a failover a key was $what within $(awk -v what="$what" '$1 == what {print $2}' "$dir/failovers" | sort -n | tail -1) ms"
    done
    say "$(grep -c made "$dir/final") keys and $(grep -c revoked "$dir/final") revocations were acknowledged, and are there; $(wc -l <"$dir/probes") probes with revoked keys"
}
