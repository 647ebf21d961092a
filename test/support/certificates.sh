# Sourced by scripts that need certificates; deployment.sh comes first. Everything lies in $dir.
# shellcheck shell=bash disable=SC2154

# make_ca: $dir/ca.pem and its key, for ninety days.
make_ca() {
    (
        umask 077
        openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 90 -subj '/CN=Test CA' \
            -addext keyUsage=critical,keyCertSign,cRLSign -keyout "$dir/ca.key" -out "$dir/ca.pem" 2>/dev/null
    ) || die "the CA could not be made"
}
# make_certificate NAME ecdsa|rsa [server|client]: $dir/NAME.pem, with the CA's, and $dir/NAME.key; of P-256 or 2048 bits.
make_certificate() {
    local algorithm=(ec -pkeyopt ec_paramgen_curve:P-256)
    [ "$2" = ecdsa ] || algorithm=(rsa:2048)
    (
        umask 077
        openssl req -newkey "${algorithm[@]}" -nodes -subj "/CN=localhost" -keyout "$dir/$1.key" -out "$dir/$1.csr" &&
            openssl x509 -req -in "$dir/$1.csr" -CA "$dir/ca.pem" -CAkey "$dir/ca.key" -days 90 -sha256 \
                -set_serial "0x01$(openssl rand -hex 15)" -out "$dir/$1.pem" -extfile <(
                    echo 'subjectAltName=DNS:localhost,IP:127.0.0.1'
                    echo 'basicConstraints=critical,CA:FALSE'
                    echo 'keyUsage=critical,digitalSignature'
                    echo "extendedKeyUsage=${3:-server}Auth"
                )
    ) 2>/dev/null || die "the certificate $1 could not be made"
    cat "$dir/ca.pem" >>"$dir/$1.pem"
    rm "$dir/$1.csr"
}
serial_of() { openssl x509 -noout -serial -in "$1" | cut -d= -f2; } # PEM FILE
# served_serial PORT ecdsa|rsa: of the certificate that a new connection with that kind of key gets.
served_serial() {
    local signature=ecdsa_secp256r1_sha256
    [ "$2" = ecdsa ] || signature=rsa_pss_rsae_sha256
    openssl s_client -connect "127.0.0.1:$1" -servername localhost -sigalgs "$signature" </dev/null 2>/dev/null |
        openssl x509 -noout -serial 2>/dev/null | cut -d= -f2
}
