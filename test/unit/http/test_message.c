/* Whole messages, in pieces of every size. */
#include "http/message.h"

#include "leak_guard.h"

#include <criterion/criterion.h>

TestSuite(http_message, .fini = leak_guard);

enum { MAX_BYTES = 64 };

#define OK_HEAD "HTTP/1.1 200 OK\r\n"
#define CHUNKED "Transfer-Encoding: chunked\r\n"
#define A16 "aaaaaaaaaaaaaaaa"

static const struct message_case {
    enum http_message_kind kind;
    const char *bytes;
    bool ends; /* the peer sends no more */
    enum http_message_state state;
    unsigned status;
    bool asked_for_body;
    const char *target, *fields, *trailers, *body;
} CASES[] = {
    {HTTP_MESSAGE_RESPONSE, OK_HEAD "Content-Length: 2\r\nA:  b \r\n\r\nhi", false, HTTP_MESSAGE_DONE, 200, false, "",
     "Content-Length: 2\nA: b \n", "", "hi"},
    {HTTP_MESSAGE_RESPONSE, OK_HEAD "Content-Length: 2\r\n\r\nh", false, HTTP_MESSAGE_MORE, 200, false, "",
     "Content-Length: 2\n", "", "h"},
    {HTTP_MESSAGE_RESPONSE, OK_HEAD "Content-Length: 2\r\n\r\nh", true, HTTP_MESSAGE_BAD, 200, false, "",
     "Content-Length: 2\n", "", "h"},
    {HTTP_MESSAGE_RESPONSE, OK_HEAD "A: b\r\n\r\nhi", false, HTTP_MESSAGE_MORE, 200, false, "", "A: b\n", "", "hi"},
    {HTTP_MESSAGE_RESPONSE, OK_HEAD "A: b\r\n\r\nhi", true, HTTP_MESSAGE_DONE, 200, false, "", "A: b\n", "", "hi"},
    {HTTP_MESSAGE_RESPONSE, OK_HEAD CHUNKED "\r\n2\r\nhi\r\n0\r\nX: y\r\n\r\n", false, HTTP_MESSAGE_DONE, 200, false,
     "", "Transfer-Encoding: chunked\n", "X: y\n", "hi"},
    {HTTP_MESSAGE_RESPONSE, "HTTP/1.1 100 Continue\r\nA: b\r\n\r\nHTTP/1.1 401 No\r\nContent-Length: 0\r\n\r\n", false,
     HTTP_MESSAGE_DONE, 401, true, "", "Content-Length: 0\n", "", ""},
    {HTTP_MESSAGE_RESPONSE, "HTTP/1.1 103 Early\r\n\r\nHTTP/1.1 204 No\r\n\r\n", false, HTTP_MESSAGE_DONE, 204, false,
     "", "", "", ""},
    {HTTP_MESSAGE_RESPONSE, "HTTP/1.1 100 Continue\r\n\r\n", true, HTTP_MESSAGE_BAD, 0, true, "", "", "", ""},
    {HTTP_MESSAGE_RESPONSE, "HTTP/1.1 101 Switching\r\nUpgrade: h2c\r\nConnection: Upgrade\r\n\r\nwhatever", false,
     HTTP_MESSAGE_DONE, 101, false, "", "Upgrade: h2c\nConnection: Upgrade\n", "", ""},
    {HTTP_MESSAGE_RESPONSE, "", true, HTTP_MESSAGE_BAD, 0, false, "", "", "", ""},
    {HTTP_MESSAGE_RESPONSE, "SSH-2.0-server\r\n", false, HTTP_MESSAGE_BAD, 0, false, "", "", "", ""},
    {HTTP_MESSAGE_RESPONSE, OK_HEAD "A: " A16 A16 A16 A16 "\r\n\r\n", false, HTTP_MESSAGE_BAD, 0, false, "", NULL, "",
     ""},
    {HTTP_MESSAGE_RESPONSE, OK_HEAD "Content-Length: 65\r\n\r\n" A16 A16 A16 A16 "a", false, HTTP_MESSAGE_BAD, 200,
     false, "", "Content-Length: 65\n", "", NULL},
    {HTTP_MESSAGE_REQUEST, "GET /a%20b?c HTTP/1.1\r\nA: b\r\nEmpty:\r\n\r\n", false, HTTP_MESSAGE_DONE, 0, false,
     "/a%20b?c", "A: b\nEmpty: \n", "", ""},
    {HTTP_MESSAGE_REQUEST, "GET / HTTP/1.1\r\nUpgrade: h2c\r\nConnection: Upgrade\r\n\r\n", false, HTTP_MESSAGE_DONE, 0,
     false, "/", "Upgrade: h2c\nConnection: Upgrade\n", "", ""},
    {HTTP_MESSAGE_REQUEST, "POST / HTTP/1.1\r\n" CHUNKED "\r\n1\r\nx\r\n0\r\nX-Auth: a\r\nB: c\r\n\r\n", false,
     HTTP_MESSAGE_DONE, 0, false, "/", "Transfer-Encoding: chunked\n", "X-Auth: a\nB: c\n", "x"},
    {HTTP_MESSAGE_REQUEST, "POST / HTTP/1.1\r\nContent-Length: 3\r\n\r\nab", false, HTTP_MESSAGE_MORE, 0, false, "/",
     "Content-Length: 3\n", "", "ab"},
};

static void expect_text(size_t number, size_t piece, const struct buf *got, const char *wanted)
{
    if (wanted)
        cr_expect(text_equal(buf_text(got), text_of(wanted)), "case %zu in pieces of %zu: \"%.*s\", not \"%s\"", number,
                  piece, TEXT_ARG(buf_text(got)), wanted);
}

static void try_case(size_t number, size_t piece)
{
    const struct message_case *at = &CASES[number];
    struct text rest = text_of(at->bytes);
    struct http_message message;

    http_message_init(&message, at->kind, MAX_BYTES);
    for (; rest.len > 0; rest = text_skip(rest, piece))
        (void)http_message_feed(&message, (struct text){rest.ptr, rest.len < piece ? rest.len : piece});
    if (at->ends)
        (void)http_message_end(&message);
    cr_expect_eq(message.state, at->state, "case %zu in pieces of %zu: %d", number, piece, (int)message.state);
    cr_expect_eq(message.status, at->status, "case %zu in pieces of %zu: %u", number, piece, message.status);
    cr_expect_eq(message.asked_for_body, at->asked_for_body, "case %zu", number);
    expect_text(number, piece, &message.target, at->target);
    expect_text(number, piece, &message.fields, at->fields);
    expect_text(number, piece, &message.trailers, at->trailers);
    expect_text(number, piece, &message.body, at->body);
    http_message_finish(&message);
}

Test(http_message, is_read_in_pieces_of_any_size)
{
    for (size_t i = 0; i < sizeof CASES / sizeof CASES[0]; i++)
        for (size_t piece = 1; piece <= strlen(CASES[i].bytes) + 1; piece++)
            try_case(i, piece);
}

Test(http_message, fields_are_found_by_their_names)
{
    static const char LINES[] = "X-Auth: a\nx-auth: b\nEmpty: \nX-Auth-More: c\n";
    struct buf fields;
    size_t count;

    buf_init(&fields, MAX_BYTES);
    buf_append_str(&fields, LINES);
    cr_expect(text_equal(http_message_field(&fields, TEXT("X-AUTH"), &count), TEXT("a")));
    cr_expect_eq(count, 2);
    cr_expect_eq(http_message_field(&fields, TEXT("Empty"), &count).len, 0);
    cr_expect_eq(count, 1);
    cr_expect_eq(http_message_field(&fields, TEXT("X"), &count).len, 0);
    cr_expect_eq(count, 0);
    cr_expect(text_equal(http_message_field(&fields, TEXT("X-Auth-More"), NULL), TEXT("c")));
    buf_finish(&fields);
}
