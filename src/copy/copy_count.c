/* Counts what accounts hold, by the sets that list it. */
#include "base/mem.h"
#include "copy_internal.h"

#include <stdio.h>
#include <stdlib.h>

enum { ACCOUNTS_AT_ONCE = 500 };

struct copy_counting {
    unsigned side; /* index into copy->counted */
    unsigned partition;
    size_t from, found; /* accounts of the partition: before this page, on it */
};

static copy_step page_read;

static struct copy_side *side_of(struct store_copy *copy)
{
    return copy->counting->side == 0 ? &copy->from : &copy->to;
}

static void add(struct store_copy *copy, void *sum, const struct redis_reply *reply)
{
    int64_t count;

    if (reply_integer(reply, &count) && count >= 0)
        *(uint64_t *)sum += (uint64_t)count;
    else
        copy_malformed(side_of(copy), "number");
}

static void count_in(struct store_copy *copy, const char *command, const char *kind, struct text account,
                     const char *rest, uint64_t *sum)
{
    struct buf of = BUF_FIXED(ID_TEXT_BYTES + 32);

    buf_append_text(&of, account);
    buf_append_str(&of, rest);
    copy_read(side_of(copy), copy->counting->partition, command, kind, buf_text(&of), add, sum);
}

static void count_account(struct store_copy *copy, struct text account)
{
    static const char *const KEYS[] = {":keys:ak-test:active",  ":keys:ak-test:revoked", ":keys:ak-live:active",
                                       ":keys:ak-live:revoked", ":keys:dk:active",       ":keys:dk:revoked"};
    static const char *const TRAILS[] = {":audit", ":audit:live", ":audit:test", ":audit:refused"};
    struct store_copy_counts *counts = &copy->counted[copy->counting->side];

    counts->accounts++;
    for (size_t i = 0; i < sizeof KEYS / sizeof *KEYS; i++)
        count_in(copy, "ZCARD", "acct:", account, KEYS[i], &counts->keys);
    for (size_t i = 0; i < sizeof TRAILS / sizeof *TRAILS; i++)
        count_in(copy, "XLEN", "acct:", account, TRAILS[i], &counts->events);
    count_in(copy, "SCARD", "acct:", account, ":users", &counts->users);
}

static void on_accounts(struct store_copy *copy, UNUSED void *item, const struct redis_reply *reply)
{
    struct text account;

    copy->counting->found = reply->type == REPLY_ARRAY ? reply->count : 0;
    for (size_t i = 0; i < copy->counting->found; i++) {
        if (reply_text(reply->items[i], &account) && account.len < ID_TEXT_BYTES)
            count_account(copy, account);
        else
            copy_malformed(side_of(copy), "account");
    }
}

/* One of the fields is the version. */
static void on_suspended(struct store_copy *copy, UNUSED void *item, const struct redis_reply *reply)
{
    struct text field;

    for (size_t i = 0; reply->type == REPLY_ARRAY && i < reply->count; i++)
        copy->counted[copy->counting->side].suspended +=
            reply_text(reply->items[i], &field) && !text_equal(field, TEXT("version"));
}

static void page_done(struct store_copy *copy)
{
    struct copy_counting *count = copy->counting;

    count->from += count->found;
    if (count->found == 0) {
        count->from = 0;
        count->partition++;
    }
    if (count->partition == side_of(copy)->settings->partitions) {
        count->partition = 0;
        count->side++;
    }
    if (count->side < 2) {
        page_read(copy);
        return;
    }
    copy_count_finish(copy);
    copy_next(copy);
}

static void page_read(struct store_copy *copy)
{
    struct copy_counting *count = copy->counting;
    struct copy_side *side = side_of(copy);
    char first[24], last[24];

    snprintf(first, sizeof first, "%zu", count->from);
    snprintf(last, sizeof last, "%zu", count->from + ACCOUNTS_AT_ONCE - 1);
    copy_call_on(side, count->partition, "ZRANGE", "accounts", TEXT(""), COPY_WITH(text_of(first), text_of(last)),
                 on_accounts, NULL);
    if (count->from == 0)
        copy_read(side, count->partition, "HKEYS", "suspended", TEXT(""), on_suspended, NULL);
    copy_then(copy, page_done);
}

void copy_count(struct store_copy *copy)
{
    copy->counting = mem_alloc(sizeof *copy->counting);
    page_read(copy);
}

void copy_count_finish(struct store_copy *copy)
{
    free(copy->counting);
    copy->counting = NULL;
}
