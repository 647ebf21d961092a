# Sourced by scripts/bench. Each row has a cached node of its own, so that each begins with an empty cache. In the first
# table Redis takes the more of wrk's core the more different keys are used, so that wrk asks less often and
# waits to see the answers. The second table is without that: all are asked as often.
# shellcheck shell=bash disable=SC2154

UNKNOWN_IN_HUNDRED=5
# For the second table. At nice 19 wrk's core is wrk's first, as though Redis had one of its own; at the highest rate little
# would be left for it.
KEYS_PAUSE_MS=1 # before each request
REDIS_NICE=19

# The file's secrets with some replaced by well-formed ones that were never added.
mix_unknown() { # IN_HUNDRED FILE RESULT
  local step=$((100 / $1))
  "$build/test/bench/bench_fill" $(($(wc -l <"$2") / step + 1)) >"$dir/unknown.made"
  awk -v step="$step" -v unknown="$dir/unknown.made" \
    'NR % step == 0 {getline line <unknown; split(line, made, " "); $0 = made[1]} {print}' "$2" >"$3"
}
bench_keys() {
  local server rss_before rss_after revoke_ms=$revoke_ms rows=(nginx one some many mixed revoking)
  deployment keys one "$lease_ms" taskset -c 0
  for server in some many mixed revoking; do node "$server" "$lease_ms" taskset -c 0; done
  start_nginx
  make_keys "$many_keys" "$dir/many"
  [ "$revoke_ms" -gt 0 ] || revoke_ms=100
  make_doomed $((2 * rounds * (each + 2))) # for two tables
  head -n "$keys" "$dir/many" >"$dir/keys"
  head -n 1 "$dir/many" >"$dir/one"
  mix_unknown "$UNKNOWN_IN_HUNDRED" "$dir/keys" "$dir/mixed"
  label[one]='1 key' label[some]="$keys keys" label[many]="$many_keys keys"
  label[mixed]="$keys keys, $UNKNOWN_IN_HUNDRED % of them unknown"
  label[revoking]="$keys keys, another revoked each $revoke_ms ms"
  keys_of=([one]=$dir/one [many]=$dir/many [mixed]=$dir/mixed)
  refused[mixed]=$UNKNOWN_IN_HUNDRED
  aside[revoking]=revoke_now_and_then

  warm one
  rss_before=$(rss_kib "${pid_of[many]}")
  warm many
  settle
  rss_after=$(rss_kib "${pid_of[many]}")
  warm some mixed revoking
  rounds_of "${rows[@]}"
  table 'cached checks' "${rows[@]}"
  printf '\n'
  print_calls some many mixed revoking
  renice -n "$REDIS_NICE" -p "$redis_pid" >/dev/null
  BENCH_DELAY_MS=$KEYS_PAUSE_MS rounds_of "${rows[@]}"
  table "the same, each connection pausing $KEYS_PAUSE_MS ms before each request, Redis at nice $REDIS_NICE" "${rows[@]}"
  printf '\n'
  print_revoked
  printf 'Memory of a node for each of %s cached keys, counting its uses included: %s bytes (%s KiB before, %s KiB after).\n' \
    "$many_keys" $(((rss_after - rss_before) * 1024 / many_keys)) "$rss_before" "$rss_after"
}
