# Sourced by scripts/alerts: a Prometheus with the shipped rules.
# shellcheck shell=bash disable=SC2154

start_prometheus() {
    local port
    port=$(test/support/free-port)
    prometheus=http://127.0.0.1:$port
    mkdir "$dir/prometheus"
    cat >"$dir/prometheus/prometheus.yml" <<Y
global: {scrape_interval: 1s, scrape_timeout: 900ms, evaluation_interval: 1s}
rule_files: [alerts.yml]
scrape_configs: [{job_name: chatelaine, file_sd_configs: [{files: [targets.json], refresh_interval: 1s}]}]
Y
    sed -E 's/^( *for:) .*/\1 2s/' docker/prometheus/alerts.yml >"$dir/prometheus/alerts.yml"
    echo '[]' >"$dir/prometheus/targets.json"
    build/prometheus/usr/bin/prometheus --config.file="$dir/prometheus/prometheus.yml" --log.level=warn \
        --storage.tsdb.path="$dir/prometheus/data" --web.listen-address="127.0.0.1:$port" >"$dir/prometheus/log" 2>&1 &
    pids+=("$!")
    for _ in $(seq 100); do
        curl -fsS "$prometheus/-/ready" >/dev/null 2>&1 && return
        sleep 0.1
    done
    die "Prometheus did not start: $(tail -3 "$dir/prometheus/log")"
}
# watch INSTANCE…: what it scrapes from now on. Renamed into place, so that it never reads half a file.
watch() {
    jq -n '[{targets: $ARGS.positional}]' --args "$@" >"$dir/prometheus/targets.new"
    mv "$dir/prometheus/targets.new" "$dir/prometheus/targets.json"
}
query() { curl -fsS --get "$prometheus/api/v1/query" --data-urlencode "query=$1"; }
# firing INSTANCE: the alerts that fire for it, and those that are about no instance.
firing() {
    curl -fsS "$prometheus/api/v1/alerts" | jq -r --arg instance "$1" \
        '.data.alerts[] | select(.state == "firing" and (.labels.instance // $instance) == $instance) | .labels.alertname' | sort -u
}
# await_scrapes COUNT INSTANCE…: until each was scraped that often.
await_scrapes() {
    local count=$1 instance
    shift
    for instance; do
        for _ in $(seq 300); do
            [ "$(query "count_over_time(up{instance=\"$instance\"}[1m])" | jq -r '.data.result[0].value[1] // 0')" -lt "$count" ] || continue 2
            sleep 0.2
        done
        die "Prometheus does not scrape $instance"
    done
}
# await_alert ALERT INSTANCE SECONDS
await_alert() {
    for _ in $(seq $(($3 * 5))); do
        ! firing "$2" | grep -qx "$1" || return 0
        sleep 0.2
    done
    return 1
}
