# Sourced by scripts/bench: instructions of a check, counted by callgrind.
# shellcheck shell=bash disable=SC2154,SC2034 # measure.sh sets and reads the others

# At most so many, in build/release by Debian 12's gcc. A bound rises only in a commit that names the feature and its
# count. A commit that makes checks cheaper lowers it.
declare -A INSTRUCTIONS_MAX=([whoami]=9320 [gateway]=12150)
INSTRUCTIONS_RUNS=3
INSTRUCTIONS_CHECKS=(2000 12000) # what the node does beside checks is in both: the difference counts
INSTRUCTIONS_SLACK=1             # percent below its bound, from which on the bound is to be lowered
INSTRUCTIONS_SPREAD=0.5          # percent: runs that differ by more say nothing

ask_times() { # PATH COUNT
    BENCH_PATH=${path_of[$1]:-} BENCH_CHECKED=${checked_of[$1]:-} BENCH_COUNT=$2 "${check_wrk[@]}" -t1 -c"$connections" \
        -d600 "${url_of[$1]}" -- "$dir/keys" >/dev/null || die "$1: a check was refused"
}
callgrind() { # OPTION
    callgrind_control "$1" "$node_pid" >"$dir/callgrind.log" 2>&1 || die "callgrind: $(cat "$dir/callgrind.log")"
}
# profile FILE: "instructions function" a line, of a file of callgrind. There, the line after "calls=" has what the called
# function took, which is told with that function; names have numbers, and are written out once.
profile() {
    awk 'function named(names, id) {
            id = $1
            sub(/.*=/, "", id)
            if (NF > 1) names[id] = substr($0, length($1) + 2)
            return names[id]
        }
        /^c?ob=/ {object = named(objects)}
        /^cfn=/ {named(functions)}
        /^ob=/ {library = object; sub(/.*\//, "", library)}
        /^fn=/ {
            own = named(functions)
            if (own ~ /^0x/) own = library
            sub(/\.(lto_priv|constprop|part|isra|cold).*/, "", own)
            gsub(/ /, "_", own)
        }
        /^calls=/ {getline; next}
        /^[-+*0-9]/ {cost[own] += $2}
        END {for (own in cost) printf "%d %s\n", cost[own], own}' "$1"
}
count_instructions() { # PATH
    local count
    for count in "${INSTRUCTIONS_CHECKS[@]}"; do
        callgrind -z
        ask_times "$1" "$count"
        callgrind -d
        dumps=$((dumps + 1))
        profile "$dir/callgrind.$dumps" >"$dir/profile.$count"
    done
    awk -v checks=$((INSTRUCTIONS_CHECKS[1] - INSTRUCTIONS_CHECKS[0])) \
        'NR == FNR {less[$2] = $1; next} {printf "%.1f %s\n", ($1 - less[$2]) / checks, $2}' \
        "$dir/profile.${INSTRUCTIONS_CHECKS[0]}" "$dir/profile.${INSTRUCTIONS_CHECKS[1]}" | sort -gr >"$dir/functions.$1"
    awk '{sum += $1} END {printf "%.0f\n", sum}' "$dir/functions.$1" >>"$dir/result.$1"
}
judge_instructions() { # PATH: prints its row; false: the bound is exceeded
    sort -g "$dir/result.$1" | awk -v what="${label[$1]}" -v max="${INSTRUCTIONS_MAX[$1]}" -v slack="$INSTRUCTIONS_SLACK" \
        -v spread="$INSTRUCTIONS_SPREAD" '
        {v[NR] = $1}
        END {
            median = v[int((NR + 1) / 2)]
            off = 100 * (v[NR] - v[1]) / v[1]
            verdict = off > spread ? "the runs differ too much" : median > max ? "EXCEEDED" : \
                median < max * (1 - slack / 100) ? "lower the bound" : "held"
            printf "| %s | %d | %d to %d (%.2f %%) | %d | %s |\n", what, median, v[1], v[NR], off, max, verdict
            exit off > spread || median > max
        }'
}
print_functions() { # PATH
    printf '\n| %s | instructions |\n|---|---|\n' "$1"
    awk -v rows="$FUNCTIONS" 'NR <= rows {printf "| `%s` | %.0f |\n", $2, $1; next} {rest += $1}
        END {printf "| others | %.0f |\n", rest}' "$dir/functions.$1"
}
bench_instructions() {
    local path dumps=0 exceeded=''
    node_flags=(--lease-ms 10s --redis-timeout-ms 10s --usage-flush-ms 60s --canary-interval-ms 0)
    export CHATELAINE_PREFIX=instructions:
    # Valgrind counts each byte that "rep stosb" writes as an instruction, so a wipe of some KB would be half of all noise.
    export GLIBC_TUNABLES=glibc.cpu.x86_rep_stosb_threshold=1000000000:glibc.cpu.x86_rep_movsb_threshold=1000000000
    make_account
    start_node counted 20 valgrind --quiet --tool=callgrind --callgrind-out-file="$dir/callgrind"
    two_paths counted
    make_keys "$connections" "$dir/keys"
    for path in whoami gateway; do
        ask_times "$path" "${INSTRUCTIONS_CHECKS[0]}" # all keys are in the cache then
        for _ in $(seq "$INSTRUCTIONS_RUNS"); do count_instructions "$path"; done
    done
    printf '\n| asked | instructions per check | runs | bound | |\n|---|---|---|---|---|\n'
    for path in whoami gateway; do judge_instructions "$path" || exceeded=1; done
    [ -z "${FUNCTIONS:-}" ] || for path in whoami gateway; do print_functions "$path"; done
    stop_node "$node_pid"
    pid_of=()
    [ -z "$exceeded" ] || die "a check takes more instructions than its bound, or the runs say nothing: see above"
}
