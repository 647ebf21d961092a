#include "history.h"

#include <pthread.h>
#include <search.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct history {
    pthread_mutex_t lock;
    size_t count;
    struct key_knowledge *keys;
    struct hsearch_data by_id;
};

struct history *history_create(void)
{
    struct history *history = calloc(1, sizeof *history);
    pthread_mutex_init(&history->lock, NULL);
    history->keys = calloc(HISTORY_KEYS_MAX, sizeof *history->keys);
    if (!history->keys || !hcreate_r(HISTORY_KEYS_MAX * 2, &history->by_id))
        abort();
    return history;
}

void history_destroy(struct history *history)
{
    hdestroy_r(&history->by_id);
    pthread_mutex_destroy(&history->lock);
    free(history->keys);
    free(history);
}

void history_created(struct history *history, const char *id, const char *secret)
{
    pthread_mutex_lock(&history->lock);
    if (history->count < HISTORY_KEYS_MAX) {
        struct key_knowledge *key = &history->keys[history->count];
        ENTRY *found;
        key->index = history->count++;
        snprintf(key->id, sizeof key->id, "%s", id);
        snprintf(key->secret, sizeof key->secret, "%s", secret);
        hsearch_r((ENTRY){.key = key->id, .data = key}, ENTER, &found, &history->by_id);
    }
    pthread_mutex_unlock(&history->lock);
}

bool history_pick(struct history *history, unsigned *seed, struct key_knowledge *ret_key)
{
    pthread_mutex_lock(&history->lock);
    bool any = history->count > 0;
    if (any)
        *ret_key = history->keys[(size_t)rand_r(seed) % history->count];
    pthread_mutex_unlock(&history->lock);
    return any;
}

bool history_pick_to_revoke(struct history *history, unsigned *seed, struct key_knowledge *ret_key)
{
    bool found = false;
    pthread_mutex_lock(&history->lock);
    for (int tries = 0; tries < 20 && !found && history->count > 0; tries++) {
        struct key_knowledge *key = &history->keys[(size_t)rand_r(seed) % history->count];
        found = !key->revoke_tried;
        if (found) {
            key->revoke_tried = true;
            *ret_key = *key;
        }
    }
    pthread_mutex_unlock(&history->lock);
    return found;
}

void history_revoked(struct history *history, size_t index)
{
    pthread_mutex_lock(&history->lock);
    history->keys[index].revoke_answered = true;
    pthread_mutex_unlock(&history->lock);
}

bool history_judge(struct history *history, const struct key_knowledge *before, int status, const char *code)
{
    struct key_knowledge now;
    const char *wrong = NULL;

    history_at(history, before->index, &now);
    if (status == 200 && before->revoke_answered)
        wrong = "accepted after its revocation was answered";
    else if (status == 401 && strcmp(code, "api_key_revoked") == 0 && !now.revoke_tried)
        wrong = "told to be revoked, and nobody revoked it";
    else if (status == 401 && strcmp(code, "api_key_revoked") != 0)
        wrong = "an acknowledged key is not known";
    else if (status != 200 && status != 401 && status != 503)
        wrong = "an answer that can't be";
    if (wrong)
        fprintf(stderr, "VIOLATION: %s: %s %d %s\n", wrong, before->id, status, code);
    return !wrong;
}

size_t history_count(const struct history *history)
{
    return history->count;
}

void history_at(struct history *history, size_t index, struct key_knowledge *ret_key)
{
    pthread_mutex_lock(&history->lock);
    *ret_key = history->keys[index];
    pthread_mutex_unlock(&history->lock);
}

size_t history_find(struct history *history, const char *id)
{
    char key[HISTORY_ID_BYTES];
    ENTRY *found = NULL;

    snprintf(key, sizeof key, "%s", id);
    pthread_mutex_lock(&history->lock);
    hsearch_r((ENTRY){.key = key}, FIND, &found, &history->by_id);
    pthread_mutex_unlock(&history->lock);
    return found ? ((struct key_knowledge *)found->data)->index : HISTORY_KEYS_MAX;
}
