# Sourced by scripts/containers: the master of Redis fails while keys are made and revoked.
# shellcheck shell=bash

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
ended_at() { # SERVICE: when its container ended
    date --date "$(docker inspect --format '{{.State.FinishedAt}}' "$(container "$1")")" +%s%3N
}
fail_over() { # ROUND
    local master
    await_replicas
    master=$(master_service)
    compose kill "$master" >>"$dir/compose.log" 2>&1
    await_writes "round $1, $master killed" "$(ended_at "$master")" 10000
    compose start "$master" >>"$dir/compose.log" 2>&1
    await_healthy "$master"
}
look_at_failing_masters() {
    local round
    start_writes "$dir/writes"
    sleep 5 # until revocations have begun
    for round in $(seq "${rounds:-10}"); do fail_over "$round"; done
    end_writes
    stop_and_start_all
    await_replicas
    look_at_writes
}
