# Shows the last response, a member on each line.
show() { printf '%s\n' "$ANSWER" | sed 's/\([{,]\)\("[a-z0-9_]*":\)/\1\n    \2/g'; }
# Shows a request and its response. Fails if the request was refused.
api() { # METHOD URL [OPTION OF curl]...
    echo "> $1 $2"
    ANSWER=$(curl -sS -w ' %{http_code}' -X "$@" -H 'Content-Type: application/json') || return
    http_status=${ANSWER##* } ANSWER=${ANSWER% *}
    show
    [ "$http_status" -lt 400 ]
}
field() { printf '%s' "$ANSWER" | grep -o "\"$1\":\"[^\"]*\"" | head -n 1 | cut -d '"' -f 4; } # of the last response

totp_step() { echo $(($(date +%s) / 30)); }
# Each code works once. A node also accepts the next one; if both are used, this waits up to a minute for another.
new_code() {
    last=$(cat "$DIR/totp.last" 2>/dev/null || echo 0) code=
    [ "$(totp_step)" -ge "$last" ] || echo "Each code works once. Waiting up to a minute for a new one." >&2
    until [ -n "$code" ]; do
        now=$(totp_step) step=$now next=
        [ "$now" -ge "$last" ] || { sleep 1; continue; }
        [ "$now" -gt "$last" ] || next=--next step=$((now + 1))
        code=$("$BIN" totp $next "$DIR/totp.uri") || return
        [ "$(totp_step)" -eq "$now" ] || code= # it may be of the step that has begun meanwhile
    done
    echo "$step" >"$DIR/totp.last"
    echo "$code"
}

# Signs in with email, password and code. Replaces the file with the session cookie only if that succeeds.
sign_in() {
    CODE=$(new_code) || return
    api POST "$URL/v1/auth/login" -c "$DIR/cookies.new" \
        -d "{\"email\":\"$EMAIL\",\"password\":\"$PASSWORD\",\"totp\":\"$CODE\"}" || return
    mv "$DIR/cookies.new" "$DIR/cookies"
    CSRF=$(field csrf_token)
}

# Creating keys needs a step-up: password and a new code.
step_up() {
    CODE=$(new_code) || return
    api POST "$URL/v1/console/step_up" -b "$DIR/cookies" -c "$DIR/cookies" -H "X-CSRF-Token: $CSRF" \
        -d "{\"password\":\"$PASSWORD\",\"totp\":\"$CODE\"}"
}

# A person creates the first key. Its secret is shown once.
create_key() {
    api POST "$URL/v1/console/api_keys" -b "$DIR/cookies" -H "X-CSRF-Token: $CSRF" \
        -d '{"name":"First key","mode":"test"}' || return
    KEY=$(field secret) ID=$(field id)
}

# An integration uses the key.
use_key() {
    api GET "$URL/v1/whoami" -H "Authorization: Bearer $KEY" &&
        api POST "$URL/v1/api_keys" -H "Authorization: Bearer $KEY" \
            -d '{"name":"Reads patients","mode":"test","scopes":["patients:read"]}' &&
        api GET "$URL/v1/api_keys" -H "Authorization: Bearer $KEY"
}

# Once this is answered, no node accepts the key.
revoke_key() { # [URL OF THE NODE TO ASK]
    [ -n "${ID:-}" ] || { echo "Run tour first, in this terminal: it knows the key." >&2; return 1; }
    other=${1:-$(sed -n 's,.*"listen":"\([^"]*\)".*,http://\1,p' "$DIR/second_node" 2>/dev/null)} name="the second node"
    curl -s -o /dev/null "$other/v1/whoami" || { other=$URL name="this node"; } # the second one has ended, or never was
    api DELETE "$URL/v1/api_keys/$ID" -H "Authorization: Bearer $KEY" || return
    revoked=$(date +%s%3N)
    echo "> GET $other/v1/whoami"
    ANSWER=$(curl -sS "$other/v1/whoami" -H "Authorization: Bearer $KEY") took=$(($(date +%s%3N) - revoked))
    [ "$(field code)" = api_key_revoked ] || { show; echo "✗ not refused as revoked by $name" >&2; return 1; }
    echo "✓ refused by $name, $took ms after the revocation (401 api_key_revoked)"
}

tour() {
    { sign_in || { [ "$(field code)" = invalid_login ] && sign_in; }; } && # the first code may have been used in a browser
        step_up && create_key && use_key && echo "✓ signed in, created a key, used it; revoke_key ends it" && return
    echo "Stopped: the last response says why. No later step ran." >&2
    return 1
}

second_node() { # every user of the machine can see arguments, so the password in $REDIS is not one
    CHATELAINE_REDIS=$REDIS "$BIN" serve $REDIS_OPTION --master-key-file "$DIR/master.key" --public-origin "$URL" \
        --listen 127.0.0.1:0 --internal-listen 127.0.0.1:0 --ready-file "$DIR/second_node" --connections-max 1000
}
