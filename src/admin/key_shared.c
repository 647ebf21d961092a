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
