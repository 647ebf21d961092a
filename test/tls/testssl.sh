# Sourced by parts.sh: testssl.sh, Debian's package of that name, whose command is `testssl`.
# shellcheck shell=bash disable=SC2154

# Findings that say nothing of the listener: about our certificates, whose CA has no revocation list and issues for
# ninety days, and about what Debian's testssl cannot try with Debian's OpenSSL.
ABOUT_CERTIFICATE='^(cert_|OCSP_stapling|DNS_CAArecord|certificate_transparency)'
ABOUT_TESTSSL='^(engine_problem|scanTime|optimal_proto)'

# findings FILE FILTER: as "id severity finding".
findings() { jq -r ".[] | select($2) | [.id, .severity, .finding] | @tsv" "$1" | tr '\t' ' '; }
is_empty() { [ -z "$1" ]; }

# judge NAME PORT [testssl's option…]
judge() {
    local title=$1 port=$2 file=$dir/testssl.$1.json worse
    shift 2
    testssl --quiet --color 0 --warnings off --nodns none --add-ca "$dir/ca.pem" --jsonfile "$file" --ip 127.0.0.1 "$@" \
        "https://localhost:$port" >"$dir/testssl.out" 2>&1 </dev/null || true # its status is the number of findings
    jq -e 'length > 100' "$file" >/dev/null || die "testssl did not run: $(tail -5 "$dir/testssl.out")"
    findings "$file" '.severity | IN("MEDIUM", "HIGH", "CRITICAL", "WARN")' >"$dir/worse"
    grep -E "$ABOUT_CERTIFICATE" "$dir/worse" | sed 's/^/      of the test certificate only: /' || true
    grep -E "$ABOUT_TESTSSL" "$dir/worse" | sed 's/^/      of testssl only: /' || true
    findings "$file" '.severity == "LOW"' | sed 's/^/      /'
    worse=$(grep -vE "$ABOUT_CERTIFICATE|$ABOUT_TESTSSL" "$dir/worse" || true)
    verdict "$title listener: nothing worse than LOW${worse:+, but: ${worse//$'\n'/; }}" is_empty "$worse"
    only "$title: no SSL, TLS 1.0 or 1.1" '^(SSLv2|SSLv3|TLS1|TLS1_1) ' '(OK|INFO) not offered$' 4
    only "$title: TLS 1.2 and 1.3" '^(TLS1_2|TLS1_3) ' 'OK offered' 2
    only "$title: no renegotiation by clients" '^secure_client_renego ' 'OK not vulnerable' 1
    only "$title: trusted, for both certificates" '^cert_chain_of_trust' 'OK passed' 2
}
# only SENTENCE IDS PATTERN COUNT: so many findings with those ids, and all of them match.
only() {
    local found
    found=$(findings "$file" true | grep -E "$2" || true)
    verdict "$1" test "$(grep -cE "$3" <<<"$found")" = "$4" -a "$(wc -l <<<"$found")" = "$4"
}
tls_testssl() {
    judge public "$port"
    judge internal "$internal_port"
}
