/* Keys as commands read, print and explain them. */
#include "admin_internal.h"
#include "listing_internal.h"

#include "base/clock.h"

#include <string.h>

int key_operand_read(const char *operand, struct id *ret_id)
{
    struct text t = text_of(operand);

    if (id_parse(ID_KEY, t, ret_id) || id_parse(ID_DEVICE, t, ret_id))
        return EXIT_DONE;
    return command_fail(EXIT_USAGE, "'%s' is not a key id (key_… or dev_…)", operand);
}

int key_print_revoked(const struct command_line *line, const struct key_record *key)
{
    char revoked[CLOCK_RFC3339_BYTES];
    struct buf out CLEANUP(buf_finish) = BUF_UP_TO(ADMIN_WHY_MAX_BYTES);

    clock_print_rfc3339(key->revoked_ms, revoked);
    buf_printf(&out,
               line->json ? "{\"id\":\"%s\",\"revoked_at\":\"%s\"}\n"
                          : "Key %s was revoked at %s; no node accepts it.\n",
               key->id.text, revoked);
    return command_print(buf_text(&out));
}

int key_fail_unlogged(const struct command_line *line, int error)
{
    return command_fail(EXIT_FAILED, "the key is revoked, but could not be added to the revocation log %s: %s",
                        line->settings.revocation_log, strerror(error));
}

static void put_scopes(struct json_writer *w, scope_set scopes)
{
    json_key(w, "scopes");
    json_array_begin(w);
    for (unsigned n = 0; n < SCOPE_COUNT; n++)
        if (scopes & (1u << n))
            json_put_text(w, scope_name(n));
    json_array_end(w);
}

/* The members that a key has in a list. */
void put_key_members(struct json_writer *w, const struct key_record *key)
{
    json_put_member(w, "id", id_text(&key->id));
    json_put_member(w, "kind", key_kind_text(key->kind));
    json_put_member(w, "account_id", id_text(&key->account));
    json_put_member(w, "name", key_name(key));
    json_put_member(w, "mode", key_mode_text(key->mode));
    json_put_member(w, "status", key->revoked_ms > 0 ? TEXT("revoked") : TEXT("active"));
    put_scopes(w, key->scopes);
    json_put_member(w, "last4", text_of(key->last4));
    put_time_member(w, "created_at", key->created_ms);
    put_text_member(w, "created_by", id_text(&key->by));
    put_text_member(w, "origin", id_text(&key->origin));
    put_time_member(w, "last_used_at", key->last_used_ms);
    put_time_member(w, "revoked_at", key->revoked_ms);
}
