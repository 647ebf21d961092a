# Sourced by scripts/containers: verdicts, and what the sample backend receives.
# shellcheck shell=bash

make_key() { # JSON: prints its secret
    http POST /v1/api_keys -H "Authorization: Bearer $first" -H 'Content-Type: application/json' -d "$1" >/dev/null
    expect 201 "making a key"
    jq -r .secret "$dir/body"
}
ask() { # VERDICT SECRET METHOD PATH [curl options]
    local verdict=$1 secret=$2
    shift 2
    http "$@" -H "Authorization: Bearer $secret" >/dev/null
    judge "$*" "$verdict"
}
look_at_requests() {
    local test read
    test=$(make_key '{"name":"test","mode":"test"}')
    read=$(make_key '{"name":"read","mode":"live","scopes":["patients:read"]}')
    ask "200 mode=live kind=api_key billable=true account=$account" "$first" GET /v1/patients/1
    ask '200 mode=test billable=false records=["Pat_Example_(made_up)"]' "$test" GET /v1/patients/1
    ask '200 scopes=patients:read' "$read" GET /v1/patients/1
    ask '403 insufficient_scope' "$read" POST /v1/patients -d '{}'
    ask "200 account=$account mode=test forged=-" "$test" GET /v1/patients/1 -H 'X-Auth-Account: acct_other' \
        -H 'X-Auth-Mode: live' -H 'X-Auth-Error: none'
    ask '403 mode_not_permitted' "$test" POST /v1/api_keys -H 'Content-Type: application/json' -d '{"name":"x","mode":"live"}'
    ask '400 bad_request' "$read" GET /v1/exchanges/%2e%2e/patients
    ask '404 not_found' "$first" GET /v1/nothing
    http GET /v1/patients/1 -H 'X-Auth-Account: acct_other' >/dev/null
    judge 'without a key' '401 missing_credentials'
    console GET /v1/console/patients/1 >/dev/null
    judge 'a session' "200 kind=session account=$account"
    for _ in 1 2 3; do
        known_key 'a key' "$first"
        revoke_and_try 'a key' "$url" "$first"
    done
    say "requests looked at"
}
