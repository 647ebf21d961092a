# Sourced by scripts/gateways: no request may switch the connection to the backend to HTTP/2, where a second stream
# would carry forged headers past the check.
# shellcheck shell=bash

# two_streams URL KEY [--upgrade]: two requests on one HTTP/2 connection, by a key that may both, and both forged.
# $dir/streams has what came of it.
two_streams() {
    timeout 30 nghttp "${@:3}" --verbose --no-dep -H "authorization: Bearer $2" -H 'x-auth-account: acct_other' \
        -H 'x-auth-mode: live' "$1/v1/patients/1" "$1/v1/sandbox" >"$dir/streams" 2>&1 || true
}
streams_have() { grep -q "$1" "$dir/streams"; }
# The attack works where no gateway stands: else nothing would be shown by its failing.
prove_tunnel() {
    two_streams "http://127.0.0.1:${port[h2c]}" any --upgrade
    { streams_have 'HTTP Upgrade success' && streams_have '"uri":"/v1/sandbox".*"account":"acct_other".*"mode":"live"'; } ||
        die "the backend does not upgrade to HTTP/2: $(tail -5 "$dir/streams")"
}
no_tunnel() { # WHERE URL KEY
    local upgrade
    for upgrade in --upgrade ''; do
        two_streams "$2" "$3" $upgrade
        ! streams_have '"account":"acct_other"' || fail "$1: a forged stream reached the backend ${upgrade:-by HTTP/2 from the start}"
        ! streams_have 'HTTP Upgrade success' || fail "$1: the connection is upgraded to HTTP/2"
    done
}
look_for_tunnels() {                                           # GATEWAY
    no_tunnel "$1" "${gateway_url["$1-h2c"]}" "${value[TEST]}" # first: the table's requests may spoil kept connections
    send_table "$1-h2c" 'Upgrade:.*upgrade=-'
}
