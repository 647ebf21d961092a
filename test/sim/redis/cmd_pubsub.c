#include "commands.h"
#include "internal.h"
#include "simredis_cluster.h"

#include <stdlib.h>

static const char *const JOIN[] = {"subscribe", "psubscribe", "ssubscribe"};
static const char *const LEAVE[] = {"unsubscribe", "punsubscribe", "sunsubscribe"};

/* How many bytes of the pattern the class takes that begins at its "["; whether c is in it. */
static size_t class_of(struct text p, char c, bool *ret_is_in)
{
    size_t i = 1;
    bool is_not = i < p.len && p.ptr[i] == '^', is_in = false;

    for (i += is_not; i < p.len && p.ptr[i] != ']'; i++) {
        if (p.ptr[i] == '\\' && i + 1 < p.len)
            is_in |= p.ptr[++i] == c;
        else if (i + 2 < p.len && p.ptr[i + 1] == '-') {
            char low = p.ptr[i] < p.ptr[i + 2] ? p.ptr[i] : p.ptr[i + 2];
            char high = p.ptr[i] < p.ptr[i + 2] ? p.ptr[i + 2] : p.ptr[i];

            is_in |= c >= low && c <= high;
            i += 2;
        } else
            is_in |= p.ptr[i] == c;
    }
    *ret_is_in = is_in != is_not;
    return i < p.len ? i + 1 : i;
}

bool glob_matches(struct text p, struct text t, bool ignore_case)
{
    while (p.len > 0) {
        bool is_in = false;
        size_t taken = 1;

        if (p.ptr[0] == '*' && p.len == 1)
            return true;
        if (p.ptr[0] == '*') {
            for (size_t skipped = 0; skipped <= t.len; skipped++)
                if (glob_matches(text_skip(p, 1), text_skip(t, skipped), ignore_case))
                    return true;
            return false;
        }
        if (t.len == 0)
            return false;
        if (p.ptr[0] == '[')
            taken = class_of(p, t.ptr[0], &is_in);
        else {
            taken = p.ptr[0] == '\\' && p.len > 1 ? 2 : 1;
            is_in = (taken == 1 && p.ptr[0] == '?') || p.ptr[taken - 1] == t.ptr[0] ||
                    (ignore_case && text_lower(p.ptr[taken - 1]) == text_lower(t.ptr[0]));
        }
        if (!is_in)
            return false;
        p = text_skip(p, taken);
        t = text_skip(t, 1);
    }
    return t.len == 0;
}

size_t client_subscriptions(const struct simredis_client *client)
{
    return client->channels[CHANNEL].count + client->channels[PATTERN].count + client->channels[SHARD_CHANNEL].count;
}

static void deliver(struct simredis_client *client, enum channel_kind kind, struct text channel, struct text message)
{
    out_array(&client->out, 3);
    out_text(&client->out, text_of(kind == SHARD_CHANNEL ? "smessage" : "message"));
    out_text(&client->out, channel);
    out_text(&client->out, message);
}

static size_t deliver_to_patterns(struct simredis_client *client, struct text channel, struct text message)
{
    struct dict_entry *pattern;
    size_t place = 0, count = 0;

    while ((pattern = dict_next(&client->channels[PATTERN], &place))) {
        if (!glob_matches(pattern->key, channel, false))
            continue;
        out_array(&client->out, 4);
        out_text(&client->out, TEXT("pmessage"));
        out_text(&client->out, pattern->key);
        out_text(&client->out, channel);
        out_text(&client->out, message);
        count++;
    }
    return count;
}

size_t publish(struct simredis *server, enum channel_kind kind, struct text channel, struct text message)
{
    size_t count = 0;

    for (struct list *node = server->clients.next; node != &server->clients; node = node->next) {
        struct simredis_client *client = LIST_ENTRY(node, struct simredis_client, node);

        if (dict_find(&client->channels[kind], channel)) {
            deliver(client, kind, channel, message);
            count++;
        }
        if (kind == CHANNEL)
            count += deliver_to_patterns(client, channel, message);
    }
    return count;
}

void cmd_publish(struct call *call)
{
    log_message(call);
    say_integer(call, (int64_t)publish(call->server, CHANNEL, call->argv[1], call->argv[2]));
}

void cmd_spublish(struct call *call)
{
    log_message(call);
    say_integer(call, (int64_t)publish(call->server, SHARD_CHANNEL, call->argv[1], call->argv[2]));
}

/* Of shard channels there is a count of their own. */
static int64_t count_of(const struct simredis_client *client, enum channel_kind kind)
{
    return (int64_t)(kind == SHARD_CHANNEL ? client->channels[SHARD_CHANNEL].count
                                           : client->channels[CHANNEL].count + client->channels[PATTERN].count);
}

static void join(struct call *call, enum channel_kind kind)
{
    for (size_t i = 1; i < call->argc; i++) {
        dict_add(&call->client->channels[kind], call->argv[i], NULL);
        say_array(call, 3);
        say_text(call, text_of(JOIN[kind]));
        say_text(call, call->argv[i]);
        say_integer(call, count_of(call->client, kind));
    }
}

static void leave_one(struct call *call, enum channel_kind kind, struct text channel)
{
    struct dict_entry *entry = dict_find(&call->client->channels[kind], channel);

    say_array(call, 3);
    say_text(call, text_of(LEAVE[kind]));
    say_text(call, channel);
    if (entry)
        dict_remove(&call->client->channels[kind], entry);
    say_integer(call, count_of(call->client, kind));
}

void pubsub_end_slot(struct simredis *server, unsigned slot)
{
    for (struct list *node = server->clients.next; node != &server->clients; node = node->next) {
        struct simredis_client *client = LIST_ENTRY(node, struct simredis_client, node);
        struct call call = {.server = server, .client = client, .out = &client->out};
        struct dict_entry *entry;
        size_t place = 0;

        while ((entry = dict_next(&client->channels[SHARD_CHANNEL], &place)))
            if (simredis_slot_of(entry->key) == slot)
                leave_one(&call, SHARD_CHANNEL, entry->key);
    }
}

static void leave(struct call *call, enum channel_kind kind)
{
    struct dict *channels = &call->client->channels[kind];
    struct dict_entry *entry;
    size_t place = 0;

    for (size_t i = 1; i < call->argc; i++)
        leave_one(call, kind, call->argv[i]);
    if (call->argc == 1 && channels->count == 0) {
        say_array(call, 3);
        say_text(call, text_of(LEAVE[kind]));
        say_nil(call);
        say_integer(call, count_of(call->client, kind));
    }
    while (call->argc == 1 && (entry = dict_next(channels, &place)))
        leave_one(call, kind, entry->key);
}

void cmd_subscribe(struct call *call)
{
    join(call, CHANNEL);
}

void cmd_psubscribe(struct call *call)
{
    join(call, PATTERN);
}

void cmd_ssubscribe(struct call *call)
{
    join(call, SHARD_CHANNEL);
}

void cmd_unsubscribe(struct call *call)
{
    leave(call, CHANNEL);
}

void cmd_punsubscribe(struct call *call)
{
    leave(call, PATTERN);
}

void cmd_sunsubscribe(struct call *call)
{
    leave(call, SHARD_CHANNEL);
}

static void say_numbers(struct call *call, enum channel_kind kind)
{
    say_array(call, 2 * (call->argc - 2));
    for (size_t i = 2; i < call->argc; i++) {
        int64_t count = 0;

        for (struct list *node = call->server->clients.next; node != &call->server->clients; node = node->next)
            count += dict_find(&LIST_ENTRY(node, struct simredis_client, node)->channels[kind], call->argv[i]) != NULL;
        say_text(call, call->argv[i]);
        say_integer(call, count);
    }
}

void cmd_pubsub_numsub(struct call *call)
{
    say_numbers(call, CHANNEL);
}

void cmd_pubsub_shardnumsub(struct call *call)
{
    say_numbers(call, SHARD_CHANNEL);
}

/* All that anybody has of this kind, each once. The caller finishes it. */
static struct dict gather(const struct simredis *server, enum channel_kind kind, struct text pattern)
{
    struct dict all = {0};
    struct dict_entry *entry;

    for (struct list *node = server->clients.next; node != &server->clients; node = node->next) {
        size_t place = 0;

        while ((entry = dict_next(&LIST_ENTRY(node, struct simredis_client, node)->channels[kind], &place)))
            if (!pattern.ptr || glob_matches(pattern, entry->key, false))
                dict_add(&all, entry->key, NULL);
    }
    return all;
}

static void say_channels(struct call *call, enum channel_kind kind)
{
    struct dict all = gather(call->server, kind, call->argc > 2 ? call->argv[2] : (struct text){0});
    struct dict_entry *entry;
    size_t place = 0;

    say_array(call, all.count);
    while ((entry = dict_next(&all, &place)))
        say_text(call, entry->key);
    dict_finish(&all);
}

void cmd_pubsub_channels(struct call *call)
{
    say_channels(call, CHANNEL);
}

void cmd_pubsub_shardchannels(struct call *call)
{
    say_channels(call, SHARD_CHANNEL);
}

void cmd_pubsub_numpat(struct call *call)
{
    struct dict all = gather(call->server, PATTERN, (struct text){0});

    say_integer(call, (int64_t)all.count);
    dict_finish(&all);
}
