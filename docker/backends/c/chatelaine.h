/* Asks a node whether the key of a request is good. A connection is kept for each thread. */
#pragma once
#include <cjson/cJSON.h>
#include <stddef.h>

/* Call curl_global_init() first. socket_path: /run/chatelaine/check.sock. authorization: the value of that header, NULL
 * if there is none; times: how often it came. path: as the client sent it. network: the client's address. Returns an
 * object for cJSON_Delete(). Let the request pass only if its member valid is true: then account_id, id, kind, mode and
 * scopes say who it is. Else answer with status, code, message, and www_authenticate as that header if there is one.
 * NULL: no memory; answer 503. */
cJSON *chatelaine_ask(const char *socket_path, const char *authorization, size_t times, const char *method,
                      const char *path, const char *network);
