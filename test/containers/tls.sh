# Sourced by scripts/containers: every hop speaks TLS, and certificates are renewed while requests are served.
# shellcheck shell=bash

# in_gateway CURL-ARGS…: prints the status, or 000 if there is no answer.
in_gateway() { compose exec -T gateway curl -s -o /dev/null -w '%{http_code}' --max-time 5 "$@" || true; }
as_gateway=(--cacert /run/gateway/front-ca.crt --connect-to "nodes.chatelaine.internal::node1:" --cert /run/gateway/front.pem)
as_nobody=("${as_gateway[@]:0:4}")
ask_a_check=(https://nodes.chatelaine.internal:8081/check/auth-request -H 'X-Original-Method: GET' -H 'X-Original-URI: /v1/patients')

look_at_gateway_tls() {
    local version
    ! curl -s -o /dev/null --cacert /etc/ssl/certs/ca-certificates.crt "$url/" || fail "the world believes the gateway's certificate"
    [ "$(curl -s -o /dev/null -w '%{http_code}' "${url/https:/http:}/")" = 400 ] || fail "the gateway answers plain HTTP"
    for version in tls1 tls1_1; do
        ! openssl s_client -"$version" -cipher ALL@SECLEVEL=0 -connect "${url#https://}" </dev/null >/dev/null 2>&1 ||
            fail "the gateway speaks $version"
    done
    http GET /v1/whoami >/dev/null
    grep -qi '^strict-transport-security:' "$dir/head" || fail "browsers are not told to insist on TLS"
}
look_at_node_tls() {
    local status
    [ "$(in_gateway "${as_gateway[@]}" "${ask_a_check[@]}")" = 401 ] || fail "the gateway cannot ask node1"
    status=$(in_gateway "${as_nobody[@]}" "${ask_a_check[@]}")
    [[ $status = 000 || $status = 403 ]] || fail "node1 answers a check without a client certificate: $status"
    status=$(in_gateway "${as_nobody[@]}" --cert /run/gateway/server.pem "${ask_a_check[@]}")
    [[ $status = 000 || $status = 403 ]] || fail "node1 answers a check with a certificate of another CA: $status"
    status=$(in_gateway "http://node1:8081/check/auth-request")
    [ "$status" = 400 ] || fail "node1 answers a plain check: $status"
    status=$(in_gateway "http://node1:8080/v1/whoami")
    [ "$status" = 400 ] || fail "node1 answers plain HTTP: $status"
    status=$(in_gateway --cacert /run/gateway/front-ca.crt --connect-to "backend.chatelaine.internal::backend:" \
        https://backend.chatelaine.internal:8443/v1/patients/1)
    [ "$status" = 400 ] || fail "the backend answers without a client certificate: $status"
}
look_at_redis_tls() {
    local ping=(--user health --pass none --no-auth-warning ping)
    ! compose exec -T "$a_redis" timeout 3 redis-cli -h 127.0.0.1 "${ping[@]}" 2>/dev/null | grep -q PONG || fail "Redis speaks plain"
    ! compose exec -T "$a_redis" timeout 3 redis-cli -h 127.0.0.1 --tls --cacert /run/store/store-ca.crt "${ping[@]}" 2>/dev/null |
        grep -q PONG || fail "Redis answers without a client certificate"
    compose exec -T "$a_redis" sh /etc/chatelaine/cli 6379 "${ping[@]}" | grep -q PONG || fail "Redis does not answer with one"
}
# Who has which keys.
look_at_keys() {
    local service
    for service in gateway backend "$a_redis" node1; do
        ! compose exec -T "$service" sh -c 'ls /run/ca/*.key' >/dev/null 2>&1 || fail "$service sees the keys of the CAs"
    done
    [ "$(compose exec -T node1 sh -c 'stat -c %a /run/node/*.pem /run/node/master.key | sort -u')" = 600 ] ||
        fail "keys of the nodes can be read by others"
    [ "$(compose exec -T "$a_redis" sh -c 'stat -c %a /run/store/*.pem')" = 640 ] || fail "the key of Redis can be read by others"
    [ "$(compose exec -T gateway sh -c 'stat -c %a /run/gateway/*.pem | sort -u')" = 640 ] ||
        fail "keys of the gateway can be read by others"
}

# fingerprint HOST:PORT: of the certificate that is shown there.
fingerprint() {
    compose exec -T gateway sh -c "openssl s_client -connect $1 </dev/null 2>/dev/null | openssl x509 -noout -fingerprint -sha256"
}
await_another() { # HOST:PORT FINGERPRINT
    for _ in $(seq 150); do
        [ "$(fingerprint "$1")" = "$2" ] || return 0
        sleep 0.2
    done
    fail "$1 still shows its old certificate"
}
look_at_renewal() {
    local hop before=()
    compose run --rm -T secrets >"$dir/renewal" 2>>"$dir/compose.log"
    ! grep -q made "$dir/renewal" || fail "certificates are renewed although they are new: $(cat "$dir/renewal")"
    start_load "$url/v1/patients/1" "Authorization: Bearer $first"
    load_phase "certificates are renewed"
    for hop in node1:8080 node1:8081 127.0.0.1:8443; do before+=("$(fingerprint "$hop")"); done
    compose run --rm -T -e RENEW_DAYS=500 secrets >"$dir/renewal" 2>>"$dir/compose.log"
    [ "$(grep -c made "$dir/renewal")" = 7 ] || fail "not all certificates are renewed: $(cat "$dir/renewal")"
    await_another node1:8080 "${before[0]}"
    await_another node1:8081 "${before[1]}"
    compose exec -T gateway nginx -c /etc/chatelaine/nginx.conf -s reload 2>>"$dir/compose.log"
    await_another 127.0.0.1:8443 "${before[2]}"
    known_key 'after the renewal' "$first"
    revoke_and_try 'after the renewal' "$url" "$first"
    end_load || fail "requests failed while certificates were renewed"
}
look_at_own_certificate() {
    local before
    ! compose run --rm -T secrets own-certificate <"$CURL_CA_BUNDLE" >/dev/null 2>&1 ||
        fail "a certificate without a key is taken"
    openssl req -x509 -newkey rsa:2048 -nodes -keyout "$dir/own.key" -out "$dir/own.crt" -days 2 -subj /CN=own \
        -addext subjectAltName=IP:127.0.0.1 2>/dev/null
    before=$(fingerprint 127.0.0.1:8443)
    cat "$dir/own.crt" "$dir/own.key" | compose run --rm -T secrets own-certificate >>"$dir/compose.log" 2>&1
    compose exec -T gateway nginx -c /etc/chatelaine/nginx.conf -s reload 2>>"$dir/compose.log"
    await_another 127.0.0.1:8443 "$before"
    export CURL_CA_BUNDLE=$dir/own.crt
    http GET /v1/patients/1 -H "Authorization: Bearer $first" >/dev/null
    judge "with the operator's own certificate" '200 mode=live'
    compose run --rm -T -e RENEW_DAYS=500 secrets >"$dir/renewal" 2>>"$dir/compose.log"
    ! grep -q server.pem "$dir/renewal" || fail "the operator's own certificate is replaced"
}
look_at_tls() {
    look_at_gateway_tls
    look_at_node_tls
    look_at_redis_tls
    look_at_keys
    look_at_renewal
    look_at_own_certificate
    say "TLS looked at"
}
