/* When the certificates of nodes' listeners expire. */
#include "status_internal.h"

#include "listing_internal.h"

#include "base/json.h"

#include <inttypes.h>

enum { MS_PER_S = 1000 };

void status_read_certificates(const struct json *report, struct status_node *node)
{
    const struct json *all = json_member(report, "certificates");

    if (!all || json_type(all) != JSON_ARRAY)
        return;
    for (const struct json *item = json_first(all); item; item = json_next(item)) {
        struct status_certificate *certificate = &node->certificates[node->certificate_count];

        if (json_type(item) != JSON_OBJECT || node->certificate_count == STATUS_LISTENERS_MAX)
            continue;
        status_copy_text(item, "listener", certificate->listener, sizeof certificate->listener);
        status_copy_text(item, "files", certificate->files, sizeof certificate->files);
        certificate->not_after_s = status_copy_integer(item, "not_after_s");
        certificate->has_rejected = status_copy_flag(item, "has_rejected");
        node->certificate_count++;
    }
}

static void judge(struct status *status, const struct status_node *node, const struct status_certificate *certificate)
{
    int64_t left_ms = certificate->not_after_s * MS_PER_S - status->now_ms;
    char span[STATUS_SPAN_BYTES];

    if (certificate->has_rejected)
        status_add(status,
                   "%s: changed certificates of its %s listener (%s) cannot be used, and the old ones stay: its log "
                   "says why.",
                   node->name, certificate->listener, certificate->files);
    status_print_span(left_ms < 0 ? -left_ms : left_ms, span);
    if (left_ms < 0)
        status_add(status,
                   "%s: the certificate of its %s listener (%s) expired %s ago, and clients refuse it: renew it.",
                   node->name, certificate->listener, certificate->files, span);
    else if (left_ms < (int64_t)LOSS_CERTIFICATE_S * MS_PER_S)
        status_add(status, "%s: the certificate of its %s listener (%s) expires in %s: renew it.", node->name,
                   certificate->listener, certificate->files, span);
}

void status_judge_certificates(struct status *status, const struct status_node *node)
{
    for (size_t i = 0; i < node->certificate_count; i++)
        judge(status, node, &node->certificates[i]);
}

void status_print_certificates(const struct status_node *node, struct buf *out)
{
    for (size_t i = 0; i < node->certificate_count; i++) {
        buf_printf(out, "    certificate of the %s listener until ", node->certificates[i].listener);
        print_time_column(out, node->certificates[i].not_after_s * MS_PER_S, "unknown");
        buf_append_char(out, '\n');
    }
}

void status_put_certificates(const struct status_node *node, bool is_known, struct json_writer *w)
{
    json_key(w, "certificates");
    if (!is_known) {
        json_put_null(w);
        return;
    }
    json_array_begin(w);
    for (size_t i = 0; i < node->certificate_count; i++) {
        const struct status_certificate *certificate = &node->certificates[i];

        json_object_begin(w);
        json_put_member(w, "listener", text_of(certificate->listener));
        json_put_member(w, "files", text_of(certificate->files));
        view_put_time_or_null(w, "not_after", certificate->not_after_s * MS_PER_S);
        json_put_flag(w, "rejected_newer", certificate->has_rejected);
        json_object_end(w);
    }
    json_array_end(w);
}
