# Sourced by scripts/bench.
# shellcheck shell=bash disable=SC2154

OUTAGE_S=4
REDIS_TIMEOUT_MS=1000 # the default of --redis-timeout-ms
WATCHED_SAMPLES=30 # of 100 ms, after Redis' return
STEP_MS=10 # of the timeline

total_commands() { redis info stats | tr -d '\r' | sed -n 's/^total_commands_processed://p'; }
# Prints how many commands came between two samples; the first line counts from BASE.
watch_commands() { # BASE
  redis -i 0.1 -r "$WATCHED_SAMPLES" info stats | tr -d '\r' |
    awk -F: -v last="$1" '/^total_commands_processed/ {print $2 - last; last = $2}'
}
# The timeline's columns: 2 answers 200, 3 answers 503, 4 others.
first_of() { # COLUMN SINCE_MS
  awk -v f="$1" -v from="$2" '$1 >= from && $f > 0 {first = $1 - from " ms"; exit} END {print first ? first : "never"}' \
    "$dir/timeline"
}
last_of() { # COLUMN FROM_MS TO_MS
  awk -v f="$1" -v from="$2" -v to="$3" '$1 >= from && $1 < to && $f > 0 {last = $1 - from " ms"}
    END {print last ? last : "never"}' "$dir/timeline"
}
count_of() { # COLUMN FROM_MS TO_MS
  awk -v f="$1" -v from="$2" -v to="$3" '$1 >= from && $1 < to {n += $f} END {print n + 0}' "$dir/timeline"
}
hang() { kill -STOP "$redis_pid"; }
hang_ends() { kill -CONT "$redis_pid"; }
crash() {
  kill -KILL "$redis_pid"
  forget "$redis_pid"
}
crash_ends() { run_redis; }

# outage_by WHAT HOW: HOW and HOW_ends are functions.
outage_by() {
  local load_pid began_ms lost_ms away_until_ms back_ms end_ms usual base
  base=$(total_commands)
  BENCH_TIMELINE=$dir/timeline "${check_wrk[@]}" -t1 -c"$connections" -d3600 "${url_of[outage]}" -- "$dir/keys" >"$dir/load.out" &
  load_pid=$!
  pids+=("$load_pid")
  began_ms=$(now_ms)
  sleep "$each"
  lost_ms=$(now_ms)
  usual=$((($(total_commands) - base) * 100 / (lost_ms - began_ms))) base=$(total_commands)
  "$2"
  sleep "$OUTAGE_S"
  back_ms=$(now_ms)
  away_until_ms=$((back_ms / STEP_MS * STEP_MS)) # the step within which it returns also has answers that came after
  "$2_ends"
  [ "$2" = hang ] || base=$(total_commands) # it counts what it has replayed from its file
  watch_commands "$base" >"$dir/watched"
  end_ms=$(now_ms)
  kill -INT "$load_pid"
  forget "$load_pid"
  printf '\n%s for %s s; lease %s ms, %s keys, %s connections:\n' "$1" "$OUTAGE_S" "$lease_ms" "$keys" "$connections"
  printf -- '- first 503 after %s, last 200 after %s; answers 200 later than lease and timeout (%s ms): %s\n' \
    "$(first_of 3 "$lost_ms")" "$(last_of 2 "$lost_ms" "$away_until_ms")" $((lease_ms + REDIS_TIMEOUT_MS)) \
    "$(count_of 2 $((lost_ms + lease_ms + REDIS_TIMEOUT_MS)) "$away_until_ms")"
  printf -- '- its return (from its start on): first 200 after %s, last 503 after %s; neither 200 nor 503 in all: %s\n' \
    "$(first_of 2 "$back_ms")" "$(last_of 3 "$back_ms" "$end_ms")" "$(count_of 4 0 "$end_ms")"
  printf -- '- Redis commands in 100 ms before: %s; in each 100 ms after its return: %s\n' "$usual" \
    "$(paste -sd' ' "$dir/watched")"
}
bench_outage() {
  deployment outage outage "$lease_ms" taskset -c 0
  make_keys "$keys" "$dir/keys"
  warm outage
  outage_by 'Redis hangs' hang
  settle
  outage_by 'Redis killed and away' crash
}
