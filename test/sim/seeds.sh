#!/usr/bin/env bash
# seeds.sh SIMULATE: runs a deployment in virtual time (world/README.md) under the seeds that once failed, and under 15 new ones,
# with one Redis, each for two minutes, which take about 3 s of CPU. New ones with Sentinels or a cluster are for people: one in 60
# or so finds something that nobody has explained yet (world/README.md). A seed that finds something is printed with the command that runs it again.
set -euo pipefail
simulate=$1 virtual_s=120 seeds=15
export ASAN_OPTIONS=detect_leaks=0 # what a process has when it is killed nobody frees here

run() { # SEED STORE
    "$simulate" --store "$2" --seed "$1" --seconds "$virtual_s" || {
        echo "seed $1 found something. Again: ASAN_OPTIONS=detect_leaks=0 $simulate --store $2 --seed $1 --seconds $virtual_s --trace"
        exit 1
    }
}
while read -r seed store _; do
    run "$seed" "$store"
done < <(grep -v '^#' "$(dirname "$0")/seeds.list")
for ((i = 0; i < seeds; i++)); do
    run $((RANDOM * 32768 + RANDOM)) single
done
