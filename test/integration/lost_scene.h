/* A row of lost_rows.h in an account of its own: what it needs is made, its request is sent, and the end is read. */
#pragma once
#include "fixture.h"
#include "lost_rows.h"

enum { LOST_LINES_MAX = 64, LOST_LINE_BYTES = 192, LOST_VALUE_BYTES = 512 };

struct lost_scene {
    const struct lost_row *row;
    char account[ID_TEXT_BYTES];
    struct fixture_user owner, person, self;
    struct fixture_session owner_session, person_session, self_session, other_session;
    struct fixture_key manager, key, device;
    char domain[32], other[64], until[32];

    /* From answers; empty before. */
    struct fixture_user invited, renewed; /* renewed: whoever gets a new authenticator */
    char made[64], secret[FIXTURE_TOKEN_BYTES], code[FIXTURE_TOKEN_BYTES], ticket[64], recovery_code[32];
    char user_code[16], device_code[64];

    unsigned sent; /* requests of the row */
    struct http_client client;
    char lines[LOST_LINES_MAX][LOST_LINE_BYTES]; /* the end, sorted */
    size_t line_count;
};

/* The store must be open (fixture_open_store()). The caller frees it. */
struct lost_scene *lost_scene_start(struct fixture *fixture, size_t node, const struct lost_row *row);
/* "POST /v1/api_keys", valid until the next call. */
const char *lost_row_name(const struct lost_row *row);
/* Sends the row's request to the node over scene->client. Codes are those of now; of a repetition, the next ones. */
void lost_scene_send(struct lost_scene *scene, const struct fixture *fixture, size_t node);
/* Sends it until it is answered by something else than 503 or 429, both of which ask for that; judges that answer and
 * learns from it. */
void lost_scene_repeat(struct lost_scene *scene, const struct fixture *fixture, size_t node);
/* Whether this is what the row says of its first request, or of a repetition. */
void lost_scene_expect(const struct lost_scene *scene, const struct http_answer *answer);
/* GET, again and again while a node that was without Redis for a moment has nothing to say. Returns the status. */
int lost_get(const struct fixture *fixture, size_t node, const struct fixture_session *session, const char *target,
             struct http_answer *ret_answer);
/* Reads the state of the account (lost_state.c). */
void lost_scene_read(struct lost_scene *scene, const struct fixture *fixture, size_t node);
/* Whether it differs from that of the same row in another account by more than the row permits. ret_why: the lines. */
bool lost_scene_differs(const struct lost_scene *scene, const struct lost_scene *other, bool may_be_delivered,
                        char *ret_why, size_t size);
/* What the row does afterwards. */
void lost_scene_finish(struct lost_scene *scene, struct fixture *fixture, size_t node);
