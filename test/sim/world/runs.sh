# shellcheck shell=bash
# For scripts/simulate: long runs, and the shortest one that finds something. `simulate` is the program, `seed` the first
# seed, `options` whatever else it is told, `seconds` of each seed.

# What line $1 of a simulation adds to `sums`: faults, revocations, checks, hundredths of a virtual and a CPU second.
add_line() {
    [[ $1 =~ ([0-9]+)\ faults\;.*\ ([0-9]+)\ revoked.*:\ ([0-9]+)\ accepted,\ ([0-9]+)\ refused,\ ([0-9]+)\ unavailable,\ ([0-9]+)\ unknown.*\ ([0-9]+)\.([0-9])\ s\ in\ ([0-9]+)\.([0-9]+)\ s\ of ]] || {
        echo "simulate: this is no result: $1" >&2
        return 1
    }
    ((sums[0] += BASH_REMATCH[1], sums[1] += BASH_REMATCH[2], 1))
    ((sums[2] += BASH_REMATCH[3] + BASH_REMATCH[4] + BASH_REMATCH[5] + BASH_REMATCH[6], 1))
    ((sums[3] += BASH_REMATCH[7] * 100 + BASH_REMATCH[8] * 10, sums[4] += 10#${BASH_REMATCH[9]}${BASH_REMATCH[10]}, 1))
}

print_sums() {
    awk -v "days=$days" -v "virtual=${sums[3]}" -v "cpu=${sums[4]}" -v "faults=${sums[0]}" -v "revoked=${sums[1]}" \
        -v "checks=${sums[2]}" 'BEGIN { printf "%.3f of %s days, %d faults, %d revocations, %d checks, %.0f times real time",
            virtual / 8640000, days, faults, revoked, checks, virtual / (cpu + 0.01) }'
}

# Seeds in turn, of 3, 4 and 5 nodes if --nodes is not said, until so many virtual days are done.
simulate_days() {
    local days=$1 line code sums=(0 0 0 0 0) run
    while awk -v "done=${sums[3]}" -v "days=$days" 'BEGIN { exit !(done < days * 8640000) }'; do
        run=(--seed "$seed" --seconds "$seconds" "${options[@]}" --first)
        [[ " ${options[*]} " == *" --nodes "* ]] || run+=(--nodes $((3 + seed % 3)))
        code=0
        line=$("$simulate" "${run[@]}") || code=$?
        ((code <= 1)) && add_line "$line"
        ((code == 0)) || {
            echo "$line"
            echo "after $(print_sums)"
            echo "again: scripts/simulate ${run[*]}"
            echo "with the fewest faults: scripts/simulate ${run[*]} --shrink"
            echo "on: scripts/simulate --days $days --seed $((seed + 1)) --seconds $seconds ${options[*]}"
            return "$code"
        }
        echo "seed $seed: $(print_sums)"
        seed=$((seed + 1))
    done
}

# Without a folder of what the nodes printed. Sets `found`: what, without its numbers; `at_s`: when; `begun`: how many faults.
try_without() {
    local out folder code=0
    out=$("$simulate" "${options[@]}" --seed "$seed" --seconds "$seconds" --first --trace ${1:+--without "$1"} 2>&1) || code=$?
    grep -oE "/tmp/simulate\\.[[:alnum:]]{6}" <<<"$out" | sort -u | while read -r folder; do rm -rf -- "$folder"; done || true
    found='' at_s=$seconds
    begun=$(grep -oE ' faults +[0-9]+:' <<<"$out" | grep -oE '[0-9]+' | sort -n | tail -1) || begun=0
    case $code in
        1)
            found=$(grep -m 1 -oE 'VIOLATION: [^:;]*' <<<"$out" | sed 's/[0-9.]//g')
            at_s=$(awk '/VIOLATION: / { print int($1) + 1; exit }' <<<"$out")
            ;;
        3) found=$(tail -1 <<<"$out" | sed 's/;.*//; s/[0-9.]//g') ;;
    esac
}

# Numbers, each in a line, as a list with ranges.
print_list() {
    awk 'function out() { printf "%s%s", n++ ? "," : "", from == to ? from : from "-" to }
        NR > 1 && $1 == to + 1 { to = $1; next } NR > 1 { out() } { from = to = $1 } END { if (NR) out() }'
}

# Those of 1 to $all that are not among the arguments.
others() {
    comm -23 <(seq 1 "$all" | sort) <(printf '%s\n' "$@" | sort) | sort -n | print_list
}

# Leaves out faults, by halves, then one by one, as long as the same is found.
simulate_shrink() {
    local found at_s begun all wanted size i rest changed kept tries=1
    try_without ''
    wanted=$found all=$begun size=$begun
    [[ -n $wanted ]] || {
        echo "seed $seed finds nothing in $seconds s"
        return 1
    }
    ((at_s >= seconds)) || seconds=$at_s
    mapfile -t kept < <(seq 1 "$all")
    while ((${#kept[@]})); do
        changed=false i=0
        while ((i < ${#kept[@]})); do
            rest=("${kept[@]:0:i}" "${kept[@]:i+size}")
            try_without "$(others "${rest[@]}")"
            tries=$((tries + 1))
            if [[ $found != "$wanted" ]]; then
                i=$((i + size))
                continue
            fi
            changed=true
            ((at_s >= seconds)) || seconds=$at_s
            kept=()
            for number in "${rest[@]}"; do ((number > begun)) || kept+=("$number"); done
            echo "${#kept[@]} of $all faults, in $seconds s" >&2
        done
        ((size > 1)) || $changed || break
        size=$(((size + 1) / 2))
    done
    tell_shortest
}

# Fails unless it finds the same once more.
tell_shortest() {
    local without run story
    without=$(others "${kept[@]}")
    run=(--seed "$seed" --seconds "$seconds" "${options[@]}" --first ${without:+--without "$without"})
    echo "The shortest of $tries runs has ${#kept[@]} of $all faults, in $seconds s:"
    story=$("$simulate" "${run[@]}" --trace 2>&1) || true
    grep -E ' faults +[0-9]+:| VIOLATION: |says why$|what the nodes printed' <<<"$story"
    echo "again: scripts/simulate ${run[*]} --trace"
    [[ $(sed 's/[0-9.]//g' <<<"$story") == *"$wanted"* ]]
}
