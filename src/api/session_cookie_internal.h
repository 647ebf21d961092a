/* The session cookie in answers. */
#pragma once
#include "call_internal.h"

/* A session cookie without Max-Age: the store knows when the session ends. */
void session_cookie_set(struct call *call, const struct token *token);
void session_cookie_clear(struct call *call);
