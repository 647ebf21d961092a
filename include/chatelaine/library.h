/* chatelaine/check.h as a shared library, libchatelaine-check.so.1, for languages that cannot include it. C programs do
 * not need it. src/check/README.md has examples in Python, Node.js and C.
 *
 * Every function and struct stays as it is for as long as the library's name ends in .so.1. A handle belongs to one
 * thread at a time. Nothing blocks. */
#ifndef CHATELAINE_LIBRARY_H
#define CHATELAINE_LIBRARY_H
#include <stddef.h>
#include <stdint.h>

struct chatelaine_handle;

/* Who asks. 72 bytes, without holes. */
struct chatelaine_answer {
    char account[32];   /* X-Auth-Account; NUL-terminated */
    char principal[32]; /* X-Auth-Principal; NUL-terminated */
    uint32_t scopes;    /* X-Auth-Scopes, as bits: enum chatelaine_scope in chatelaine/check.h */
    uint8_t is_device;  /* 1: X-Auth-Kind is device_key; 0: api_key */
    uint8_t is_live;    /* 1: X-Auth-Mode is live; 0: test */
    uint8_t unused[2];  /* 0 */
};

/* path: what the node got as --table. deployment: NULL for any. owner: the user id that the node must have; -1 for that
 * of the folder's owner. Copies the strings. Returns NULL if memory is exhausted. A wrong path is no error here:
 * chatelaine_refresh() returns 0, and chatelaine_trouble() says why. The caller closes the handle. */
struct chatelaine_handle *chatelaine_open(const char *path, const char *deployment, int64_t owner);

/* Call it every second, or more often: connects, gets the table, and gets the next one when the node has ended. Returns
 * 1 if there is a table, otherwise 0; the first call usually only connects. */
int chatelaine_refresh(struct chatelaine_handle *handle);

/* Returns 1 if the key is accepted and has all of those scopes. Then the answer is filled in, and this was one use of
 * the key. Otherwise returns 0, leaves the answer as it was, and says nothing: ask the node over HTTP. Call it after
 * the request has come, and use the answer for that request alone. */
int chatelaine_ask(struct chatelaine_handle *handle, const char *secret, size_t length, uint32_t scopes,
                   struct chatelaine_answer *ret_answer);

/* Why there is no table, in English; "none" if there is one. Valid until the next call with this handle. */
const char *chatelaine_trouble(struct chatelaine_handle *handle);

/* handle may be NULL. */
void chatelaine_close(struct chatelaine_handle *handle);
#endif
