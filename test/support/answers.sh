# Sourced by scripts that check responses: verdicts, revoked keys, and a light load while something fails. Needs
# test/support/deployment.sh.
# shellcheck shell=bash disable=SC2154

failures=0
fail() {
    say "FAILED: $*"
    failures=$((failures + 1))
}
# One jq for all answers, because each start of it takes 40 ms. It reads two lines for each question, what is asked and a
# body, and writes one: 'code' the error's; 'fields NAME…' values, separated by tabs; 'essence FILTER' what is left.
READER='
def word: if type == "string" then . else tojson end | gsub("[ \t\n]"; "_") | if . == "" then "-" else . end;
def pairs: foreach inputs as $line ({}; if .ask then {pair: [.ask, $line]} else {ask: $line} end; .pair // empty);
pairs | .[0] as $ask | (.[1] | try [fromjson] catch []) as $read | $read[0] as $json |
if $ask == "code" then ($json | try .error.code catch null) // "-"
elif $ask | startswith("fields ") then [$ask[7:] | split(" ")[] as $name | ($json | try .[$name] catch null) | word] | join("\t")
elif $read == [] then "none"
elif $ask == "essence 200" then
    $json | del(.last_used_at, .idle_expires_at, .from, .to, (.. | objects | .requests, .billable, .refused)) | tojson
else $json | try (.error | del(.request_id, .message) | .doc_url |= ((. // "none") | sub("^https?://[^/]*"; "")) | tojson) catch "none" end'
# read_body QUESTION: the line goes to $told. Not in a subshell, which has no coprocess.
read_body() {
    local body=
    [ -n "${reader_PID-}" ] || coproc reader { exec jq --unbuffered -nRr "$READER"; }
    IFS= read -rd '' body <"$dir/body" || true
    printf '%s\n%s\n' "$1" "${body//$'\n'/ }" >&"${reader[1]}"
    IFS= read -r told <&"${reader[0]}"
}

# judge WHERE VERDICT: compares $dir/status and $dir/body with it.
judge() {
    local want got i told
    read -ra want <<<"$2"
    got=$(<"$dir/status")
    [ "$got" = "${want[0]}" ] || {
        fail "$1: $got instead of $2: $(head -c 300 "$dir/body")"
        return
    }
    want=("${want[@]:1}")
    if [ "$got" != 200 ]; then
        ((${#want[@]} == 0)) || [[ ${want[0]} == - && ! -s $dir/body ]] || {
            read_body code
            [ "$told" = "${want[0]}" ] || fail "$1: not ${want[0]}: $(head -c 300 "$dir/body")"
        }
    elif ((${#want[@]} > 0)); then
        read_body "fields ${want[*]%%=*}"
        IFS=$'\t' read -ra told <<<"$told"
        for i in "${!want[@]}"; do
            [ "${told[i]-}" = "${want[i]#*=}" ] || fail "$1: ${want[i]%%=*} is '${told[i]-}' instead of '${want[i]#*=}'"
        done
    fi
}

# --- revoked keys -----------------------------------------------------------------------------------------------------

# known_key WHERE SECRET: with that key, makes another at $url, and uses it there until every node knows it. Sets known_id
# and known_secret.
known_key() {
    local attempt
    http POST /v1/api_keys -H "Authorization: Bearer $2" -H 'Content-Type: application/json' \
        -d '{"name":"short-lived","mode":"live"}' >/dev/null
    expect 201 "$1: making a key"
    known_id=$(jq -r .id "$dir/body") known_secret=$(jq -r .secret "$dir/body")
    for attempt in $(seq 6); do
        http GET /v1/patients/1 -H "Authorization: Bearer $known_secret" >/dev/null
        judge "$1: a new key, request $attempt" '200 mode=live'
    done
}
# revoke_and_try WHERE URL SECRET: revokes the known key there. At $url it must be refused from the first request on.
revoke_and_try() {
    local attempt status
    status=$(curl -sS -o "$dir/body" -w '%{http_code}' --max-time 20 -X DELETE -H "Authorization: Bearer $3" "$2/v1/api_keys/$known_id")
    [ "$status" = 200 ] || {
        fail "$1: revoking: $status $(head -c 300 "$dir/body")"
        return
    }
    for attempt in $(seq 6); do
        http GET /v1/patients/1 -H "Authorization: Bearer $known_secret" >/dev/null
        judge "$1: request $attempt after the revocation" '401 api_key_revoked'
    done
}

# --- a light load -----------------------------------------------------------------------------------------------------

# start_load URL HEADER: the clients of load.js.
start_load() {
    rm -f "$dir"/load.*
    echo 'before' >"$dir/load.phase"
    : >"$dir/load.1" && : >"$dir/load.2"
    node test/support/load.js "$dir" "$@" &
    load_pid=$!
    pids+=("$load_pid")
}
load_phase() {
    say "$*"
    echo "$*" >"$dir/load.phase"
}
# load_goes_on COUNT: until each client has that many more answers.
load_goes_on() {
    local worker before=()
    for worker in 1 2; do before[worker]=$(wc -l <"$dir/load.$worker"); done
    for worker in 1 2; do
        for _ in $(seq 6000); do
            [ "$(wc -l <"$dir/load.$worker")" -lt $((before[worker] + $1)) ] || break
            sleep 0.02
        done
    done
}
# end_load: prints the number of requests. Fails if one was not answered 200, or the clients had ended early.
end_load() {
    local ended=0
    kill -0 "$load_pid" || ended=1
    touch "$dir/load.enough"
    forget "$load_pid"
    cat "$dir"/load.[12] | sort >"$dir/load.all"
    say "$(awk '{if ($2 > most) most = $2} END {printf "%d requests, the longest took %.2f s", NR, most}' "$dir/load.all")"
    ! grep -v '^200 ' "$dir/load.all" >&2 && [ "$ended" = 0 ]
}
