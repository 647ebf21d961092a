/* The shared library: the reader behind functions with stable names. */
#include "chatelaine/library.h"
#include "chatelaine/check.h"
#include <stdio.h>
#include <stdlib.h>

struct chatelaine_handle {
    struct chatelaine_table table;
    char *deployment; /* NULL: any */
    char trouble[256];
};

_Static_assert(sizeof(struct chatelaine_answer) == 72 && offsetof(struct chatelaine_answer, principal) == 32 &&
                   offsetof(struct chatelaine_answer, scopes) == 64 &&
                   offsetof(struct chatelaine_answer, is_device) == 68 &&
                   offsetof(struct chatelaine_answer, is_live) == 69,
               "callers in other languages have this layout written down");

struct chatelaine_handle *chatelaine_open(const char *path, const char *deployment, int64_t owner)
{
    struct chatelaine_handle *handle = calloc(1, sizeof *handle);

    if (!handle)
        return NULL;
    if (deployment) {
        handle->deployment = strdup(deployment);
        if (!handle->deployment) {
            free(handle);
            return NULL;
        }
    }
    chatelaine_table_init(&handle->table, path, handle->deployment,
                          owner < 0 ? CHATELAINE_OWNER_OF_FOLDER : (uid_t)owner);
    return handle;
}

int chatelaine_refresh(struct chatelaine_handle *handle)
{
    return chatelaine_table_refresh(&handle->table);
}

int chatelaine_ask(struct chatelaine_handle *handle, const char *secret, size_t length, uint32_t scopes,
                   struct chatelaine_answer *ret_answer)
{
    struct chatelaine_principal who;

    if (!chatelaine_check(&handle->table, secret, length, scopes, &who))
        return 0;
    memset(ret_answer, 0, sizeof *ret_answer);
    memcpy(ret_answer->account, who.account, strlen(who.account));
    memcpy(ret_answer->principal, who.principal, strlen(who.principal));
    ret_answer->scopes = who.scopes;
    ret_answer->is_device = who.is_device;
    ret_answer->is_live = who.is_live;
    return 1;
}

const char *chatelaine_trouble(struct chatelaine_handle *handle)
{
    const struct chatelaine_table *table = &handle->table;
    const char *text = chatelaine_trouble_text(table->trouble);
    char reason[128];

    if (table->error == 0)
        return text;
    snprintf(handle->trouble, sizeof handle->trouble, "%s: %s", text,
             strerror_r(table->error, reason, sizeof reason)); /* GNU's: may return a constant text */
    return handle->trouble;
}

void chatelaine_close(struct chatelaine_handle *handle)
{
    if (!handle)
        return;
    chatelaine_table_finish(&handle->table);
    free(handle->deployment);
    free(handle);
}
