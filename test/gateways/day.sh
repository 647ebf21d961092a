# Sourced by scripts/gateways: a clinic's day. Each step prints nothing if it is right; it builds on the steps before it.
# shellcheck shell=bash

live='' live_id='' test='' test_id='' narrow='' # set by console_key
# ask VERDICT METHOD PATH KEY [curl options]: as a program does, with a key.
ask() {
    http "$2" "$3" -H "Authorization: Bearer $4" "${@:5}" >/dev/null
    judge "$day_step" "$1"
}
console_key() { # NAME JSON: made by the person; sets $NAME and ${NAME}_id
    console POST /v1/console/api_keys "$2" >/dev/null
    expect 201 "$day_step"
    printf -v "$1" %s "$(jq -r .secret "$dir/body")"
    printf -v "$1_id" %s "$(jq -r .id "$dir/body")"
}
post_form() { # PATH FIELD…
    local fields=()
    for field in "${@:2}"; do fields+=(--data-urlencode "$field"); done
    http POST "$1" "${fields[@]}" >/dev/null
    expect 200 "$day_step"
}
day_signs_in() {
    sign_in
    step_up
}
day_makes_keys() {
    console_key live '{"name":"records","mode":"live"}'
    console_key test '{"name":"trial","mode":"test"}'
    console_key narrow '{"name":"reports","mode":"live","scopes":["patients:read"]}'
}
day_works() {
    ask "200 method=POST mode=live account=$account principal=$live_id" POST /v1/patients "$live" -H 'Content-Type: application/json' -d '{"name":"Ada"}'
    ask '200 method=GET mode=live' GET '/v1/patients?identifier=urn:oid:1.2%7C42' "$live"
    ask '200 method=DELETE mode=live' DELETE /v1/patients/1 "$live"
    ask '200 mode=test billable=false' GET /v1/patients/1 "$test"
}
day_refuses() {
    ask '403 insufficient_scope' POST /v1/patients "$narrow" -d '{}'
    ask '401 invalid_api_key' GET /v1/patients svc_sk_live_00000000000000000000000000000000000000
    ask '401 bearer_not_accepted' GET /v1/console/patients/1 "$live"
}
day_reads_as_person() {
    console GET /v1/console/patients/1 >/dev/null
    judge "$day_step" '200 kind=session cookie=-'
    console POST /v1/console/patients/1/identifier '{}' >/dev/null
    judge "$day_step" '200 kind=session method=POST'
}
day_lets_a_device_in() {
    local device user
    post_form /v1/auth/device_authorization client_id=desktop-agent 'device_name=Reception PC'
    device=$(jq -r .device_code "$dir/body") user=$(jq -r .user_code "$dir/body")
    console POST "/v1/console/device_enrolments/$user/approve" '{}' >/dev/null
    expect 200 "$day_step"
    post_form /v1/auth/token grant_type=urn:ietf:params:oauth:grant-type:device_code "device_code=$device" client_id=desktop-agent
    device=$(jq -r .access_token "$dir/body")
    ask '200 kind=device_key method=POST' POST /v1/documents "$device" -d letter
    ask '403 insufficient_scope' GET /v1/patients/1 "$device"
}
day_has_no_tunnel() { no_tunnel "$day_step" "$url" "$test"; }
day_revokes() {
    console DELETE "/v1/console/api_keys/$test_id" >/dev/null
    expect 200 "$day_step"
    ask '401 api_key_revoked' GET /v1/patients/1 "$test"
    ask '200 mode=live' GET /v1/patients/1 "$live"
}
day_has_no_tunnel_for_a_dead_key() { no_tunnel "$day_step" "$url" "$test"; }
day_keeps_account() {
    console GET '/v1/console/audit_events?limit=100' >/dev/null
    expect 200 "$day_step"
    [ "$(jq -c '[.data[].type | select(. == "api_key.revoked" or . == "device_key.created")] | sort' "$dir/body")" = \
        '["api_key.revoked","device_key.created"]' ] || fail "$day_step: $(jq -c '[.data[].type]' "$dir/body")"
    console POST /v1/auth/logout >/dev/null
    expect 204 "$day_step"
}

run_day() { # GATEWAY: sets day_result[STEP GATEWAY]
    local step before
    url=${gateway_url["$1-h2c"]} email=$1@console.test
    make_account
    for step in "${day_steps[@]}"; do
        day_step="$1: $step" before=$failures
        "day_${step// /_}"
        day_result["$step $1"]=right
        [ "$failures" = "$before" ] || day_result["$step $1"]=WRONG
    done
}
declare -A day_result=()
day_steps=('signs in' 'makes keys' 'works' 'refuses' 'reads as person' 'lets a device in' 'has no tunnel' 'revokes'
    'has no tunnel for a dead key' 'keeps account')
show_day() {
    local step gateway
    printf '%-30s' 'the clinic' "${gateways[@]}" && echo
    for step in "${day_steps[@]}"; do
        printf '%-30s' "$step"
        for gateway in "${gateways[@]}"; do printf '%-30s' "${day_result["$step $gateway"]}"; done
        echo
    done
}
