#include "cork_internal.h"

#include "base/check.h"
#include "base/secure.h"

/* A scratch larger than this is freed after use. */
enum { SCRATCH_KEPT_BYTES = 256 * 1024 };

void cork_init(struct cork *cork, struct turn *turn,
               void (*send)(struct conn *conn, struct text answer, struct text lasting))
{
    buf_init(&cork->scratch, REPLY_MAX_BYTES);
    cork->send = send;
    cork->part = (struct turn_part){.before = cork_close, .after = cork_open, .arg = cork};
    list_init(&cork->part.node);
    if (turn)
        turn_add(turn, &cork->part);
}

void cork_finish(struct cork *cork)
{
    list_remove(&cork->part.node);
    buf_wipe(&cork->scratch);
}

/* Wipes everything after the first `bytes`. */
static void cut(struct buf *scratch, size_t bytes)
{
    ALL_REQUIRE(bytes <= scratch->len);
    if (bytes == 0 && scratch->capacity > SCRATCH_KEPT_BYTES) {
        buf_wipe(scratch);
        buf_init(scratch, REPLY_MAX_BYTES);
        return;
    }
    secure_wipe(scratch->ptr + bytes, scratch->len - bytes);
    scratch->len = bytes;
}

void cork_send(struct cork *cork, struct conn *conn, size_t from, struct text lasting)
{
    struct text answer = text_skip(buf_text(&cork->scratch), from);

    if (cork->is_corked && cork->corked_count < TURN_SLICE && !lasting.ptr) {
        cork->corked[cork->corked_count++] = (struct corked){conn, from, answer.len};
        return;
    }
    cork->send(conn, answer, lasting);
    cut(&cork->scratch, from);
}

void cork_send_now(struct cork *cork, struct conn *conn, size_t from)
{
    cork->send(conn, text_skip(buf_text(&cork->scratch), from), (struct text){NULL, 0});
    cut(&cork->scratch, from);
}

void cork_forget(struct cork *cork, const struct conn *conn)
{
    for (size_t i = 0; i < cork->corked_count; i++)
        if (cork->corked[i].conn == conn)
            cork->corked[i].conn = NULL;
}

void cork_close(void *arg)
{
    struct cork *cork = arg;

    cork->is_corked = true;
}

/* Sending may cause another response to be printed. It is appended, and may move the scratch. */
void cork_open(void *arg)
{
    struct cork *cork = arg;

    cork->is_corked = false;
    while (cork->uncorked_count < cork->corked_count) {
        const struct corked next = cork->corked[cork->uncorked_count++];

        ALL_INVARIANT(next.from + next.bytes <= cork->scratch.len);
        if (next.conn)
            cork->send(next.conn, (struct text){cork->scratch.ptr + next.from, next.bytes}, (struct text){NULL, 0});
    }
    if (cork->corked_count > 0)
        cut(&cork->scratch, 0);
    cork->corked_count = cork->uncorked_count = 0;
}
