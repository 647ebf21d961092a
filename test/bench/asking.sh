# Sourced by scripts/bench: what a question about a key costs the node, over its check socket.
# shellcheck shell=bash disable=SC2154,SC2034 # measure.sh sets and reads the others

ASKING_WAYS=(check verify batch)
ASKING_LEAST=4 # questions of a batch that cost no more than one check
# ask_for WAY SECONDS: prints how many questions were answered.
ask_for() { taskset -c 1 "$build/test/bench/bench_ask" "$dir/check.sock" "$1" "$2" "$connections" <"$dir/keys"; }
asking_slice() { # WAY: a second of it; adds "us per question, questions" to its file
    local before questions
    before=$(cpu_ns "$node_pid")
    questions=$(ask_for "$1" 1) || die "$1: a question was not answered with yes"
    sleep 1.2 # until the uses are written, which belongs to it
    echo "$(per_request $(($(cpu_ns "$node_pid") - before)) "$questions") $questions" >>"$dir/asking.$1"
}
# Turns of a second, because a machine's other tenants make minutes differ by more than what is sought.
bench_asking() {
    local way turn
    node_flags=(--lease-ms "$lease_ms" --check-socket "$dir/check.sock")
    export CHATELAINE_PREFIX=asking:
    make_account
    start_node asked 10 taskset -c 0
    make_keys "$keys" "$dir/keys"
    pid_of[asked]=$node_pid
    for way in "${ASKING_WAYS[@]}"; do ask_for "$way" 1 >/dev/null; done # all keys are in the cache then
    for turn in $(seq $((rounds * each))); do
        for way in $(shuf -e "${ASKING_WAYS[@]}"); do asking_slice "$way"; done
    done
    printf '\n| %s keys, %s connections, medians of %s turns of 1 s | node CPU us/question | questions/s | of a check: geometric mean of the pairs, standard error |\n|---|---|---|---|\n' \
        "$keys" "$connections" $((rounds * each))
    for way in "${ASKING_WAYS[@]}"; do
        printf '| %s | %s | %.0f | %s |\n' "$way" "$(cut -d' ' -f1 "$dir/asking.$way" | median)" \
            "$(cut -d' ' -f2 "$dir/asking.$way" | median)" "$(asking_ratio "$way")"
    done
    judge_batch
}
asking_ratio() { # WAY
    paste -d' ' "$dir/asking.$1" "$dir/asking.check" | awk '
        {v = log($1 / $3); sum += v; squares += v * v}
        END {mean = sum / NR; printf "%.3f ± %.3f", exp(mean), sqrt((squares / NR - mean * mean) / (NR - 1))}'
}
judge_batch() {
    awk -v ratio="$(asking_ratio batch)" -v least="$ASKING_LEAST" 'BEGIN {exit ratio + 0 > 1 / least}' ||
        die "a batch of 64 costs more than 64 / $ASKING_LEAST checks"
}
