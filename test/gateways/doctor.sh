# Sourced by scripts/gateways: 'chatelaine doctor --gateway' at each gateway as it is shipped, with gateway-echo as its
# backend, and at copies with one line changed (mistakes.table).
# shellcheck shell=bash

start_echo() {
    "$binary" gateway-echo "127.0.0.1:${port[echo]}" >"$dir/echo.log" 2>&1 &
    pids+=($!)
    await_port "${port[echo]}" echo
    printf '%s\n' "${value[TEST]}" >"$dir/test.key"
    printf '%s\n' "${value[REVOKED]}" >"$dir/revoked.key"
    chmod 600 "$dir/test.key" "$dir/revoked.key"
}
# consult GATEWAY [OPTION…]: starts it from $gateway_files, and ends it. What doctor says goes to $dir/doctor, in one line to
# $said.
consult() {
    doctor_status=0
    start_gateway "$1" echo
    "$binary" doctor --gateway "${gateway_url["$1-echo"]}/v1/patients" "${@:2}" >"$dir/doctor" 2>&1 || doctor_status=$?
    end_copy
    rm -r "${dir:?}/$1-echo"
    said=$(tr -s ' \n' '  ' <"$dir/doctor")
    ! grep -q svc_sk_ "$dir/doctor" || fail "$1: doctor tells a key"
}
with_keys=(--key-file "$dir/test.key" --revoked-key-file "$dir/revoked.key")

consult_as_shipped() { # GATEWAY
    consult "$1" "${with_keys[@]}"
    [[ $doctor_status = 0 && $said == *'Fit.'* ]] ||
        fail "$1 as shipped: doctor exits with $doctor_status: $(<"$dir/doctor")"
    consult "$1"
    [[ $doctor_status = 3 && $said == *'Not proven to be fit: '* && $said != *'fail '* && $said == *'ok no-key '* ]] ||
        fail "$1 as shipped, without a key: doctor exits with $doctor_status: $(<"$dir/doctor")"
}
consult_about() { # GATEWAY FILE EDIT CHECK REMEDY
    local line
    gateway_files=$dir/mistaken
    cp -r docker/gateways "$gateway_files"
    sed -i "$3" "$gateway_files/$2"
    ! cmp -s "docker/gateways/$2" "$gateway_files/$2" || die "$1: '$3' changes nothing"
    consult "$1" "${with_keys[@]}"
    line=${said#*"fail $4 "}
    [[ $doctor_status = 3 && $line != "$said" && $line == *"$5"* ]] ||
        fail "$1, '$3': doctor does not find $4, or does not name $5: $(<"$dir/doctor")"
}
AT_ONCE=6 # doctor waits most of the time
consulted=() examinations=()
# beside NAME COMMAND GATEWAY…: with files, ports and failures of its own.
beside() {
    ((${#consulted[@]} < AT_ONCE)) || await_consulted
    (
        dir=$dir/$1 pids=() failures=0
        trap 'end_all "${pids[@]}"' EXIT
        trap 'exit 143' TERM
        mkdir "$dir"
        for server in "$3-echo" healthecho; do port[$server]=$(test/support/free-port); done
        "${@:2}"
        exit "$failures"
    ) &
    consulted+=("$!")
    pids+=("$!")
}
await_consulted() { # whichever ends first
    local pid
    wait -n -p pid "${consulted[@]}" || failures=$((failures + 1))
    forget "$pid"
    for i in "${!consulted[@]}"; do [ "${consulted[i]}" != "$pid" ] || unset "consulted[i]"; done
}
examine_gateway() { # GATEWAY: what comes of it, examined tells
    local gateway file edit check remedy count=0
    beside "$1" consult_as_shipped "$1"
    while IFS='|' read -r gateway file edit check remedy; do
        [[ -n $gateway && $gateway != \#* ]] || continue
        trim gateway file edit check remedy
        case $1/$gateway in
            nginx/nginx | nginx/'plain nginx' | nginx-module/nginx | haproxy/haproxy | caddy/caddy) ;;
            *) continue ;;
        esac
        count=$((count + 1))
        beside "$1.$count" consult_about "$1" "$file" "$edit" "$check" "$remedy"
    done <test/gateways/mistakes.table
    ((count >= 5)) || fail "$1: only $count mistakes were tried"
    examinations+=("$1: fit as shipped, and $count mistakes were found")
}
examined() {
    while ((${#consulted[@]} > 0)); do await_consulted; done
    [ "$failures" = 0 ] || die "$failures failures"
    for line in "${examinations[@]}"; do say "$line"; done
}
