/* Questions about keys that come in the body of a request: is this key good, and for that? Each goes through the guard
 * as a request would that a gateway asks about (check.c), and ends in a verdict. */
#pragma once
#include "core/address.h"
#include "exchange_internal.h"

struct key_question {
    struct exchange exchange; /* first: question_of() casts it. It stands for the request that is asked about */
    struct text key;
    struct text method, path; /* the path as sent, perhaps with a query; empty: the key alone is asked about */
    scope_set scopes;         /* that the key needs besides */
    struct address network;   /* of the client */
    bool has_network;         /* if not, the client is the one of the asking request */
    bool is_repeated;         /* the use was counted when it was first asked */
    struct problem refusal;   /* the verdict; PROBLEM_NONE: exchange.key is good, and one use was counted */
    void (*judged)(struct key_question *question);
    void *arg;
};

/* Reads the body of the asking exchange, or the part of it that exchange->body is. False if it has been refused. */
MUST_CHECK bool question_read(struct exchange *asking, struct key_question *question);
/* judged runs exactly once, perhaps within the call. The asking request is held until the last judged has returned. */
void question_ask(struct exchange *asking, struct key_question *question, void (*judged)(struct key_question *question),
                  void *arg);
/* Whether a key that was found good still is, by memory. False: it is not, or only asking again can tell. */
bool question_holds(struct key_question *question);
/* A failure of ours is no verdict: whether the key is good is unknown. */
bool question_is_decided(const struct key_question *question);
/* The verdict, an object. */
void question_put(struct json_writer *w, const struct key_question *question);
