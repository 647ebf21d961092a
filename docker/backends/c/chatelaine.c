/* cc -std=gnu11 … -lcurl -lcjson */
#include "chatelaine.h"
#include <curl/curl.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

enum { PATIENCE_MS = 2000, ANSWER_MAX_BYTES = 16384, KEY_MAX_CHARS = 256 };

struct answer {
    size_t length;
    char text[ANSWER_MAX_BYTES + 1];
};

static size_t collect(char *piece, size_t one, size_t length, void *arg)
{
    struct answer *answer = arg;

    if (length > ANSWER_MAX_BYTES - answer->length)
        return 0; /* too long: the transfer fails */
    memcpy(answer->text + answer->length, piece, one * length);
    answer->length += length;
    return length;
}

/* One for each thread: it keeps its connection, and asks again if the node had closed that. */
static pthread_key_t kept;
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void make_key(void)
{
    pthread_key_create(&kept, (void (*)(void *))curl_easy_cleanup);
}

static bool post(const char *socket_path, const char *question, struct answer *answer)
{
    pthread_once(&once, make_key);
    CURL *curl = pthread_getspecific(kept);
    long status = 0;

    if (!curl && (curl = curl_easy_init()))
        pthread_setspecific(kept, curl);
    struct curl_slist *fields = curl && question ? curl_slist_append(NULL, "Content-Type: application/json") : NULL;
    if (!fields)
        return false;
    curl_easy_setopt(curl, CURLOPT_UNIX_SOCKET_PATH, socket_path);
    curl_easy_setopt(curl, CURLOPT_PROXY, ""); /* whatever the environment says */
    curl_easy_setopt(curl, CURLOPT_URL, "http://node/check/verify");
    curl_easy_setopt(curl, CURLOPT_HTTPHEADER, fields);
    curl_easy_setopt(curl, CURLOPT_POSTFIELDS, question);
    curl_easy_setopt(curl, CURLOPT_TIMEOUT_MS, (long)PATIENCE_MS);
    curl_easy_setopt(curl, CURLOPT_NOSIGNAL, 1L);
    curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, collect);
    curl_easy_setopt(curl, CURLOPT_WRITEDATA, answer);
    const CURLcode code = curl_easy_perform(curl);
    curl_easy_getinfo(curl, CURLINFO_RESPONSE_CODE, &status);
    curl_slist_free_all(fields);
    if (code != CURLE_OK || status != 200)
        fprintf(stderr, "chatelaine: no verdict: %s, status %ld\n", curl_easy_strerror(code), status);
    return code == CURLE_OK && status == 200;
}

cJSON *chatelaine_ask(const char *socket_path, const char *authorization, size_t times, const char *method,
                      const char *path, const char *network)
{
    const char *key = authorization && strncasecmp(authorization, "Bearer ", 7) == 0 ? authorization + 7 : "";
    struct answer answer = {0};

    key += strspn(key, " ");
    if (times > 1 || path[0] != '/')
        return cJSON_Parse("{\"valid\":false,\"status\":400,\"code\":\"bad_request\",\"message\":\"Send it once.\"}");
    if (!key[0] || strlen(key) > KEY_MAX_CHARS)
        return cJSON_Parse(
            "{\"valid\":false,\"status\":401,\"code\":\"missing_credentials\",\"message\":\"Send a key.\","
            "\"www_authenticate\":\"Bearer realm=\\\"api\\\"\"}");
    cJSON *json = cJSON_CreateObject();
    /* Without its path, the node would judge the key alone. */
    const bool is_whole =
        method && cJSON_AddStringToObject(json, "key", key) && cJSON_AddStringToObject(json, "method", method) &&
        cJSON_AddStringToObject(json, "path", path) && (!network || cJSON_AddStringToObject(json, "network", network));
    char *question = is_whole ? cJSON_PrintUnformatted(json) : NULL;
    cJSON *verdict = post(socket_path, question, &answer) ? cJSON_Parse(answer.text) : NULL;
    cJSON_free(question);
    cJSON_Delete(json);
    const cJSON *status = cJSON_GetObjectItemCaseSensitive(verdict, "status");
    if (cJSON_IsTrue(cJSON_GetObjectItemCaseSensitive(verdict, "valid")) ||
        (cJSON_IsNumber(status) && status->valueint >= 400))
        return verdict;
    cJSON_Delete(verdict);
    return cJSON_Parse("{\"valid\":false,\"status\":503,\"code\":\"store_unavailable\",\"message\":\"Try again.\"}");
}
