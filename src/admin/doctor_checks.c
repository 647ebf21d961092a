#include "doctor_internal.h"

#include "core/address.h"
#include "engine/fitness.h"

#include <inttypes.h>

static void check_origin(struct doctor_report *report, const struct doctor_evidence *evidence)
{
    const char *origin = evidence->settings->public_origin;

    if (!origin)
        doctor_add(report, "public-origin", DOCTOR_FAIL,
                   "No node starts without it: pass --public-origin as on the nodes.", "not given");
    else if (evidence->origin_trouble)
        doctor_add(report, "public-origin", DOCTOR_FAIL, "Write it as in https://console.example.org.", "%s",
                   evidence->origin_trouble);
    else
        doctor_add(
            report, "public-origin", settings_origin_is_https(origin) ? DOCTOR_OK : DOCTOR_WARN,
            "Browsers send the session cookie only over https: put TLS in front, and set --public-origin to https://….",
            "%s", origin);
}

/* Only this machine reaches it. */
static bool is_local(const char *listen)
{
    struct address address;
    struct text at = text_of(listen);

    return text_starts_with(at, TEXT("unix:")) || text_starts_with(at, TEXT("localhost:")) ||
           (address_parse(at, &address) && address_is_loopback(&address));
}

static void check_certificates(struct doctor_report *report, const char *name, const struct doctor_tls *tls)
{
    if (tls->trouble[0])
        doctor_add(report, name, DOCTOR_FAIL,
                   "Correct the files. A node that runs keeps the old certificates until then.", "%s", tls->trouble);
    else
        doctor_add(report, name, tls->left_s < LOSS_CERTIFICATE_S ? DOCTOR_WARN : DOCTOR_OK,
                   "Renew the certificate: nobody can connect once it has expired.",
                   "the first certificate to expire has %" PRId64 " days left", tls->left_s / DOCTOR_DAY_S);
}

/* exposed: what crosses the network, and what to set. */
static void check_tls(struct doctor_report *report, const char *name, const struct doctor_tls *tls, const char *listen,
                      const char *exposed)
{
    if (tls->is_on)
        check_certificates(report, name, tls);
    else if (is_local(listen))
        doctor_add(report, name, DOCTOR_OK, NULL, "no TLS, on this machine: %s", listen);
    else
        doctor_add(report, name, DOCTOR_WARN, exposed, "no TLS: %s", listen);
}

static void check_listeners(struct doctor_report *report, const struct doctor_evidence *evidence)
{
    const struct settings *settings = evidence->settings;
    bool is_private = is_local(settings->internal_listen);

    check_tls(
        report, "tls", &evidence->tls, settings->listen,
        "Keys and passwords cross the network in clear text: set --tls-cert and --tls-key, unless a proxy on this "
        "machine ends TLS.");
    check_tls(report, "internal-tls", &evidence->internal_tls, settings->internal_listen,
              "Gateways' checks carry keys in clear text: set --internal-tls-cert, --internal-tls-key and "
              "--internal-client-ca.");
    doctor_add(
        report, "internal-client-ca", is_private || settings->internal_client_ca ? DOCTOR_OK : DOCTOR_WARN,
        "Everybody who reaches --internal-listen can try keys and read metrics: set --internal-client-ca, so that only "
        "gateways and Prometheus are answered.",
        "%s",
        settings->internal_client_ca ? "clients must show a certificate"
        : is_private                 ? "no client certificates, on this machine"
                                     : "no client certificates");
}

static void check_key(struct doctor_report *report, const struct doctor_evidence *evidence)
{
    static const char *const DETAILS[] = {
        [STORE_KEYS_UNJUDGED] = "readable by this user only",
        [STORE_KEYS_FIT] = "readable by this user only, and the one that made this store",
        [STORE_KEYS_OTHER] = "not the one that made this store",
        [STORE_KEYS_LACKING] = "the store has records of another master key, which is missing",
        [STORE_KEYS_UNNOTED] = "the store does not record which master key made it",
    };
    const struct store_facts *facts = &evidence->facts;
    enum store_keys keys = evidence->is_reachable ? facts->keys : STORE_KEYS_UNJUDGED;
    const char *breach = evidence->is_reachable ? fitness_breach(facts, FITNESS_KEYS) : NULL;

    if (evidence->key_trouble)
        doctor_add(report, "master-key", DOCTOR_FAIL,
                   "No node starts without it: pass --master-key-file as on the nodes.", "%s", evidence->key_trouble);
    else
        doctor_add(report, "master-key", breach ? DOCTOR_FAIL : DOCTOR_OK, breach, "%s%s%s", DETAILS[keys],
                   keys == STORE_KEYS_LACKING ? ": " : "", keys == STORE_KEYS_LACKING ? facts->lacking : "");
}

/* What still needs a retired master key, so that it must stay in the files. */
static void check_retired(struct doctor_report *report, const struct key_census *census, size_t i)
{
    const struct census_row *row = &census->of[i];

    if (!key_census_needs(census, i))
        doctor_add(report, "retired-key", DOCTOR_OK, NULL, "%s: nothing needs it any more", census->names[i]);
    else
        doctor_add(report, "retired-key", DOCTOR_OK, NULL,
                   "%s: needed by %" PRIu64 " active keys, %" PRIu64 " passwords, recovery codes of %" PRIu64
                   " users, %" PRIu64 " seals",
                   census->names[i], row->keys, row->passwords, row->codes, row->seals);
}

static void check_records(struct doctor_report *report, const struct doctor_evidence *evidence)
{
    const struct key_census *census = &evidence->census;
    bool is_open = evidence->facts.unsealed_until_ms > 0;
    enum doctor_status status = census->altered > 0               ? DOCTOR_FAIL
                                : is_open || census->unsealed > 0 ? DOCTOR_WARN
                                                                  : DOCTOR_OK;

    for (size_t i = 1; i < census->generations; i++)
        check_retired(report, census, i);
    doctor_add(
        report, "records", status,
        is_open ? "Records without a seal are still accepted: once no node of the earlier version runs, run "
                  "'chatelaine master-key rotate'."
                : "Somebody else wrote to Redis: the nodes' logs name the records ('altered in Redis'). Revoke those "
                  "keys, and find out who has access.",
        "%" PRIu64 " active keys made with the current master key, %" PRIu64 " with an unknown one; %" PRIu64
        " records without a seal, %" PRIu64 " altered",
        census->of[0].keys, census->keys_unknown, census->unsealed, census->altered);
    doctor_add(
        report, "sign-in", census->users_unknown > 0 ? DOCTOR_WARN : DOCTOR_OK,
        "These users cannot sign in: add the master key that made their secrets to --retired-master-key-file, or run "
        "'chatelaine user reset-password' and 'user reset-totp'.",
        "%" PRIu64 " of %" PRIu64 " users have secrets made with a missing master key", census->users_unknown,
        census->users);
}

static void check_scopes(struct doctor_report *report, const struct key_census *census)
{
    struct buf out = BUF_FIXED(CENSUS_KEYS_NAMED * ID_TEXT_BYTES);

    for (size_t i = 0; i < census->keys_above_role && i < CENSUS_KEYS_NAMED; i++)
        buf_printf(&out, i > 0 ? " %s" : "%s", census->above_role[i].text);
    doctor_add(
        report, "key-scopes", census->keys_above_role > 0 ? DOCTOR_WARN : DOCTOR_OK,
        "Ask whoever uses these keys which scopes they need, create keys with those, and revoke these with 'chatelaine "
        "key revoke'. 'chatelaine key show' says whose they are.",
        "%" PRIu64 " active keys hold scopes that the role of their person may not give%s%.*s", census->keys_above_role,
        out.len ? ": " : "", TEXT_ARG(buf_text(&out)));
}

/* A node takes over what no other logs within two minutes. */
enum { BACKLOG_WAIT_MS = 5 * 60 * 1000, BACKLOG_MS_PER_S = 1000 };

static bool needs_attention(const struct audit_backlog *backlog)
{
    return backlog->dropped > 0 || (backlog->count > 0 && backlog->oldest_ms > BACKLOG_WAIT_MS);
}

static void check_backlog(struct doctor_report *report, const struct audit_backlog *backlog)
{
    bool is_late = backlog->count > 0 && backlog->oldest_ms > BACKLOG_WAIT_MS;

    doctor_add(
        report, "audit-log", needs_attention(backlog) ? DOCTOR_WARN : DOCTOR_OK,
        is_late ? "No node writes them: look at the nodes' log lines about the audit log, and set --audit-log on at "
                  "least one node. Beyond 100,000 of each class the oldest are dropped."
                : "They are gone for good: say so where you keep the logs, then delete the key 'log_dropped' in Redis.",
        "%" PRId64 " events wait for one, the oldest for %" PRId64 " s; %" PRId64 " were dropped", backlog->count,
        backlog->oldest_ms / BACKLOG_MS_PER_S, backlog->dropped);
}

static void check_reports(struct doctor_report *report, const struct doctor_evidence *evidence)
{
    for (enum loss i = 0; i < LOSS_COUNT; i++)
        if (evidence->losses[i] > 0)
            doctor_add(report, LOSSES[i].name, DOCTOR_WARN, LOSSES[i].remedy, "%u of %u nodes: %s", evidence->losses[i],
                       evidence->nodes, LOSSES[i].sentence);
}

static void check_audit_log(struct doctor_report *report, const struct doctor_evidence *evidence)
{
    const struct audit_backlog *backlog = &evidence->backlog;

    if (evidence->has_backlog && needs_attention(backlog))
        check_backlog(report, backlog);
    else if (!evidence->settings->audit_log)
        doctor_add(
            report, "audit-log", DOCTOR_WARN,
            "Whoever can write to Redis can change the audit trail, and nothing proves it: set --audit-log, a file of "
            "its own for each node.",
            evidence->has_backlog && backlog->has_logs ? "not set, though nodes write one" : "not set");
    else if (evidence->has_backlog && backlog->has_logs)
        check_backlog(report, backlog);
    else
        doctor_add(report, "audit-log", DOCTOR_OK, NULL, "set; no node writes one yet");
}

static void check_logs(struct doctor_report *report, const struct doctor_evidence *evidence)
{
    bool has_log = evidence->settings->revocation_log;

    check_audit_log(report, evidence);
    doctor_add(report, "revocation-log", has_log ? DOCTOR_OK : DOCTOR_WARN,
               "Once a backup of Redis is restored, keys that were revoked since work again: set --revocation-log.",
               has_log ? "set" : "not set");
}

/* What 'serve' refuses besides what other checks are about, and what it warns of. */
static void check_own_settings(struct doctor_report *report, const struct doctor_evidence *evidence)
{
    const struct unknown_settings *unknown = evidence->settings->unknown;
    struct text rest = evidence->mistakes, mistake;

    for (size_t i = 0; i < DOCTOR_MISTAKES_MAX && text_next(&rest, '\n', &mistake) && mistake.len > 0; i++)
        doctor_add(report, "settings", DOCTOR_FAIL, "No node starts with these settings.", "%.*s", TEXT_ARG(mistake));
    for (size_t i = 0; unknown && i < unknown->count; i++) {
        struct buf out = BUF_FIXED(DOCTOR_DETAIL_BYTES);

        unknown_setting_print(&unknown->of[i], &out);
        doctor_add(report, "settings", DOCTOR_FAIL,
                   "Correct the name, or remove it: 'chatelaine serve --help' lists all.", "%.*s",
                   TEXT_ARG(buf_text(&out)));
    }
}

void doctor_evaluate(const struct doctor_evidence *evidence, struct doctor_report *ret_report)
{
    const struct settings *settings = evidence->settings;
    uint64_t needed = settings_files_needed(settings);

    *ret_report = (struct doctor_report){0};
    check_own_settings(ret_report, evidence);
    doctor_check_redis(ret_report, evidence);
    check_key(ret_report, evidence);
    if (evidence->is_counted) {
        check_records(ret_report, evidence);
        check_scopes(ret_report, &evidence->census);
    }
    check_logs(ret_report, evidence);
    check_reports(ret_report, evidence);
    check_origin(ret_report, evidence);
    check_listeners(ret_report, evidence);
    doctor_add(
        ret_report, "file-limit", evidence->file_limit >= needed ? DOCTOR_OK : DOCTOR_WARN,
        "Nodes accept fewer connections than --connections-max: raise the limit (ulimit -Hn, LimitNOFILE=), or lower "
        "--connections-max.",
        "%" PRIu64 " open files allowed, up to %" PRIu64 " needed", evidence->file_limit, needed);
}
