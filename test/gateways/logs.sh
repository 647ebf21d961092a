# Sourced by scripts/gateways: no secret may reach a gateway's log.
# shellcheck shell=bash

# Secrets where they do not belong: in queries and paths, accepted, refused and while the backend is gone.
send_secrets() { # GATEWAY
    local line method target
    while read -r line; do
        fill_in line
        read -r method target <<<"$line"
        curl -sS -g -o "$dir/body" --max-time 20 -X "$method" -H "Authorization: Bearer ${value[LIVE]}" -H "X-CSRF-Token: ${value[CSRF]}" \
            -H "Cookie: ${value[SESSION]}" "${gateway_url[$1]}$target" || true
    done <<'END'
GET /v1/patients/1?api_key=${LIVE}
GET /v1/patients/${LIVE}/x
GET /v1/patients//${LIVE}?api_key=${LIVE}
GET /v1/nothing?api_key=${LIVE}
POST /v1/usage?api_key=${LIVE}
GET /console/activate?user_code=${CODE}
GET /v1/console/device_enrolments/${CODE}
POST /v1/console/device_enrolments/${CODE}/approve?x=${LIVE}
GET /v1/patients/last-one
END
}
logs_of() { # GATEWAY [options of grep]: what it wrote
    grep -raF "${@:2}" "$dir/$1.log" "$dir/$1"
}
look_at_log() { # GATEWAY
    local secret
    send_secrets "$1"
    for _ in $(seq 6000); do
        ! logs_of "$1" -q last-one || break
        sleep 0.02
    done
    logs_of "$1" -q last-one || fail "$1: paths are not logged"
    # A gateway's own log, where a request is a line.
    [ "${1%%-*}" = caddy ] || jq -Rn 'inputs | select(try (fromjson | type != "object") catch true)' "$dir/$1/log" >"$dir/other-lines"
    [ ! -s "$dir/other-lines" ] || fail "$1: lines of the log are not JSON: $(head -n 3 "$dir/other-lines")"
    for secret in LIVE CODE CSRF SESSION; do
        ! logs_of "$1" -m 1 -e "${value[$secret]}" >&2 || fail "$1: $secret was logged"
    done
}
