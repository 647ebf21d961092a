# Sourced by scripts/bench: the same measurements over TLS.
# shellcheck shell=bash disable=SC2154,SC2034 # measure.sh sets and reads the others

# measure_tls: from here on nodes and nginx speak TLS, with the same certificate.
measure_tls() {
    make_ca
    make_certificate bench ecdsa
    export CURL_CA_BUNDLE=$dir/ca.pem
    scheme=https tls_flags=(--tls-cert "$dir/bench.pem" --tls-key "$dir/bench.key"
        --internal-tls-cert "$dir/bench.pem" --internal-tls-key "$dir/bench.key")
}
cipher_of() { # NAME
    openssl s_client -connect "127.0.0.1:$(port_of "${url_of[$1]}")" </dev/null 2>/dev/null | sed -n 's/^New, //p'
}
# print_cipher NAME: that server must encrypt as nginx does.
print_cipher() {
    local nginx other
    [ "$scheme" = https ] || return 0
    nginx=$(cipher_of nginx) other=$(cipher_of "$1")
    [ -n "$nginx" ] && [ "$nginx" = "$other" ] || die "nginx encrypts with $nginx, $1 with $other"
    printf 'Over TLS connections that stay open: %s.\n' "$nginx"
}
