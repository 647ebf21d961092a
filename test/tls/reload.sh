# Sourced by parts.sh: certificates replaced while clients check and connect.
# shellcheck shell=bash disable=SC2154

CHANGES=20
CHANGE_PATIENCE_S=10 # until new connections get the new certificate

# put FILE NEW FILE: as tools that renew certificates do.
put() { mv "$2" "$1"; }
# Kubernetes: files are links into a folder that is a link, and that one is replaced.
mount_pair() { # NAME
    local folder=$dir/mount/..$1
    mkdir -p "$folder"
    mv "$dir/$1.pem" "$folder/tls.crt"
    mv "$dir/$1.key" "$folder/tls.key"
    ln -s "..$1" "$dir/mount/..new"
    mv -T "$dir/mount/..new" "$dir/mount/..data"
}
has_serial() { [ "$(served_serial "$1" "$2")" = "$3" ]; }           # PORT KIND SERIAL
reloads() { metric chatelaine_tls_certificate_reloads_total "$1"; } # RESULT
refused_again() { (($(reloads failed) > $1)); }                     # BEFORE
changed() {                                                         # KIND SERIAL
    verdict "change $change: new connections get the new certificate" until_true "$CHANGE_PATIENCE_S" has_serial "$port" "$1" "$2"
    ((waited_ms <= slowest_ms)) || slowest_ms=$waited_ms
}
renamed() {
    make_certificate "new$change" ecdsa
    local serial
    serial=$(serial_of "$dir/new$change.pem")
    put "$dir/live.key" "$dir/new$change.key"
    put "$dir/live.pem" "$dir/new$change.pem"
    [ -z "${1:-}" ] || kill "-$1" "$node_pid"
    changed ecdsa "$serial"
}
swapped() {
    make_certificate "new$change" rsa
    local serial
    serial=$(serial_of "$dir/new$change.pem")
    mount_pair "new$change"
    changed rsa "$serial"
}
# A certificate without its key, as of a renewal that was cut short.
broken() {
    local serial before
    make_certificate "new$change" ecdsa
    serial=$(served_serial "$port" ecdsa) before=$(reloads failed)
    put "$dir/live.pem" "$dir/new$change.pem"
    verdict "change $change: the pair that does not fit is refused, and the metric says so" \
        until_true "$CHANGE_PATIENCE_S" refused_again "$before"
    verdict "change $change: the old certificate stays" has_serial "$port" ecdsa "$serial"
}
tls_reload() {
    local change slowest_ms=0 checks_pid full_pid
    make_certificate live ecdsa
    make_certificate mounted rsa
    mkdir "$dir/mount"
    mount_pair mounted
    ln -s ..data/tls.crt ..data/tls.key "$dir/mount/"
    node_flags=(--tls-cert "$dir/live.pem,$dir/mount/tls.crt" --tls-key "$dir/live.key,$dir/mount/tls.key" "${internal_flags[@]}")
    node reload
    in_background "$dir/checks" taskset -c 1 "$load" checks "$((rate / 2))" 16 3600 "$port"
    checks_pid=$background_pid
    in_background "$dir/full" taskset -c 1 "$load" full 10000000 "$port"
    full_pid=$background_pid
    for change in $(seq "$CHANGES"); do
        case $((change % 4)) in
            1) renamed ;;
            2) swapped ;;
            3) broken ;;
            0) renamed HUP ;;
        esac
    done
    end_background "$checks_pid" "$full_pid"
    verdict "$CHANGES changes: $(value answered "$dir/checks") checks on 16 open connections, $(value failed "$dir/checks") failed" \
        test "$(value failed "$dir/checks")" = 0 -a "$(value answered "$dir/checks")" -gt 0
    verdict "$CHANGES changes: $(value full "$dir/full") new connections, $(value failed "$dir/full") failed" \
        test "$(value failed "$dir/full")" = 0 -a "$(value full "$dir/full")" -gt 0
    say "the slowest change was seen after $slowest_ms ms; the node counts $(reloads ok) reloads, $(reloads failed) refused"
    stop_node "$node_pid"
}
