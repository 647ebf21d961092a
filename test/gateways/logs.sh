# Sourced by scripts/gateways: no secret may reach a gateway's log.
# shellcheck shell=bash

send_secret() { # GATEWAY METHOD TARGET
    curl -sS -g -o /dev/null --max-time 20 -X "$2" -H "Authorization: Bearer ${value[LIVE]}" -H "X-CSRF-Token: ${value[CSRF]}" \
        -H "Cookie: ${value[SESSION]}" "${gateway_url[$1]}$3" || true
}
# Secrets where they do not belong: in queries and paths, accepted, refused and while the backend is gone, for which
# HAProxy and Caddy look for 3 s.
send_secrets() { # GATEWAY
    local line method target sent=()
    while read -r line; do
        fill_in line
        read -r method target <<<"$line"
        send_secret "$1" "$method" "$target" &
        sent+=("$!")
    done <<'END'
GET /v1/patients/1?api_key=${LIVE}
GET /v1/patients/${LIVE}/x
GET /v1/patients//${LIVE}?api_key=${LIVE}
GET /v1/nothing?api_key=${LIVE}
POST /v1/usage?api_key=${LIVE}
GET /console/activate?user_code=${CODE}
GET /v1/console/device_enrolments/${CODE}
POST /v1/console/device_enrolments/${CODE}/approve?x=${LIVE}
END
    wait "${sent[@]}" || true
    send_secret "$1" GET /v1/patients/last-one
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
