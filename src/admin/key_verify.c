/* key verify: looks at a secret without asking anybody. */
#include "admin/commands.h"

#include "admin_internal.h"

#include "base/json.h"
#include "core/secret.h"

static const struct option_row ROWS[] = {ROW_JSON};
const struct option_group KEY_VERIFY_OPTIONS[] = {OPTIONS_OF(ROWS), {0}};

enum { FILE_MAX_BYTES = 4096 };

static int print_verdict(const struct command_line *line, bool is_whole, enum key_kind kind, enum key_mode mode)
{
    struct buf out = BUF_FIXED(ADMIN_WHY_MAX_BYTES);

    if (line->json) {
        struct json_writer w = {.out = &out};
        json_object_begin(&w);
        json_put_flag(&w, "well_formed", is_whole);
        if (is_whole) {
            json_put_member(&w, "kind", key_kind_text(kind));
            json_put_member(&w, "mode", key_mode_text(mode));
        }
        json_line_end(&w);
    } else if (is_whole) {
        buf_printf(&out, "A well-formed %s, for %.*s data. Only a node knows whether it is active.\n",
                   kind == KEY_DEVICE ? "device key" : "API key", TEXT_ARG(key_mode_text(mode)));
    }
    return command_print(buf_text(&out));
}

static const char *malformed(struct text secret)
{
    return secret_has_shape(secret) ? "the checksum is wrong: a character was changed or swapped"
                                    : "this is not a key: it has another prefix or length, so perhaps it was cut";
}

int key_verify_run(const struct command_line *line)
{
    const char *operand = line->operands[0];
    struct buf why = BUF_FIXED(ADMIN_WHY_MAX_BYTES);
    struct buf content CLEANUP(buf_wipe) = BUF_UP_TO(FILE_MAX_BYTES);
    enum key_kind kind = KEY_API;
    enum key_mode mode = MODE_TEST;

    if (secret_has_shape(text_of(operand)))
        return command_fail(EXIT_USAGE, KEY_AS_ARGUMENT);
    if (!secret_file_read(operand, &content, &why))
        return command_fail(EXIT_FAILED, "%.*s", TEXT_ARG(buf_text(&why)));
    struct text secret = text_trim(buf_text(&content));
    bool is_whole = secret_parse(secret, &kind, &mode);
    int code = is_whole || line->json ? print_verdict(line, is_whole, kind, mode) : EXIT_DONE;
    if (code != EXIT_DONE || is_whole)
        return code;
    if (line->json)
        return EXIT_FAILED;
    return command_fail(EXIT_FAILED, "%s", malformed(secret));
}
