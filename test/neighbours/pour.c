#include "pour.h"
#include "process.h"

#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

enum { READ_BYTES = 16384, STACK_BYTES = 256 * 1024 };

struct stream {
    struct http_client client;
    uint16_t port;
    const struct http_call *call;
    struct pour_counts *counts;
    size_t len;
    char bytes[READ_BYTES + 1]; /* those that are not yet dropped, and a NUL */
};

static bool fill(struct stream *stream)
{
    ssize_t got = stream->len < READ_BYTES
                      ? recv(stream->client.fd, stream->bytes + stream->len, READ_BYTES - stream->len, 0)
                      : 0;

    if (got <= 0)
        return false;
    stream->len += (size_t)got;
    stream->bytes[stream->len] = '\0';
    return true;
}

static void drop(struct stream *stream, size_t len)
{
    stream->len -= len;
    memmove(stream->bytes, stream->bytes + len, stream->len + 1);
}

static bool skip_bytes(struct stream *stream, size_t len)
{
    while (stream->len < len) {
        len -= stream->len;
        drop(stream, stream->len);
        if (!fill(stream))
            return false;
    }
    drop(stream, len);
    return true;
}

static bool skip_chunks(struct stream *stream)
{
    size_t len;

    do {
        char *end;

        while (!(end = strstr(stream->bytes, "\r\n")))
            if (!fill(stream))
                return false;
        len = strtoul(stream->bytes, NULL, 16);
        drop(stream, (size_t)(end + 2 - stream->bytes));
        if (!skip_bytes(stream, len + 2))
            return false;
    } while (len > 0);
    return true;
}

/* One answer of whatever length, of which only the head is looked at: http_client_read() keeps the whole, and stops a
 * test whose node ends in the midst of one. False: it did, or has closed. */
static bool read_answer(struct stream *stream, unsigned *ret_status, bool *ret_closes)
{
    const char *end, *length;
    bool is_whole;

    while (!(end = strstr(stream->bytes, "\r\n\r\n")))
        if (!fill(stream))
            return false;
    stream->bytes[end + 2 - stream->bytes] = '\0';
    *ret_status = (unsigned)strtoul(stream->bytes + strlen("HTTP/1.1 "), NULL, 10);
    *ret_closes = strcasestr(stream->bytes, "\r\nconnection: close\r\n") != NULL;
    const bool is_chunked = strcasestr(stream->bytes, "\r\ntransfer-encoding: chunked\r\n") != NULL;
    length = strcasestr(stream->bytes, "\r\ncontent-length: ");
    const size_t len = length ? strtoul(length + strlen("\r\ncontent-length: "), NULL, 10) : 0;
    drop(stream, (size_t)(end + 4 - stream->bytes));
    is_whole = is_chunked ? skip_chunks(stream) : skip_bytes(stream, len);
    return is_whole && *ret_status < POUR_STATUSES;
}

static bool note_closed(struct stream *stream)
{
    atomic_fetch_add(&stream->counts->closed, 1);
    return true;
}

/* Until nothing listens any more. */
static void *run(void *arg)
{
    struct stream *stream = arg;

    while (http_client_try_connect(&stream->client, stream->port)) {
        bool closes = false;

        stream->bytes[stream->len = 0] = '\0';
        while (!closes) {
            unsigned status;

            /* A send that fails may have an answer: a body that is too large is refused before its end. */
            http_client_send_call(&stream->client, stream->call);
            if (read_answer(stream, &status, &closes))
                atomic_fetch_add(&stream->counts->answers[status], 1);
            else
                closes = note_closed(stream);
        }
        http_client_close(&stream->client);
    }
    return NULL;
}

static void use_last_processor(void)
{
    cpu_set_t processors;

    CPU_ZERO(&processors);
    CPU_SET((unsigned)sysconf(_SC_NPROCESSORS_ONLN) - 1, &processors);
    if (sched_setaffinity(0, sizeof processors, &processors) != 0)
        perror("sched_setaffinity");
}

__attribute__((noreturn)) static void become(const struct pour *pour, uint16_t port, const struct http_call *calls)
{
    pthread_t threads[POUR_CONNECTIONS];
    pthread_attr_t attributes;

    prctl(PR_SET_PDEATHSIG, SIGKILL);
    use_last_processor();
    pthread_attr_init(&attributes);
    pthread_attr_setstacksize(&attributes, STACK_BYTES);
    for (size_t i = 0; i < POUR_CONNECTIONS; i++) {
        struct stream *stream = calloc(1, sizeof *stream);

        if (!stream)
            abort();
        stream->port = port;
        stream->call = &calls[i];
        stream->counts = pour->counts;
        if (pthread_create(&threads[i], &attributes, run, stream) != 0)
            abort();
    }
    for (size_t i = 0; i < POUR_CONNECTIONS; i++)
        pthread_join(threads[i], NULL);
    _exit(EXIT_SUCCESS);
}

void pour_start(struct pour *pour, uint16_t port, const struct http_call calls[POUR_CONNECTIONS])
{
    pour->counts = mmap(NULL, sizeof *pour->counts, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (pour->counts == MAP_FAILED)
        test_give_up("no memory for an attack's counts");
    pour->pid = fork();
    if (pour->pid == 0)
        become(pour, port, calls);
    if (pour->pid < 0)
        test_give_up("an attack does not start");
}

unsigned pour_answers(const struct pour *pour)
{
    unsigned sum = 0;

    for (size_t status = 0; status < POUR_STATUSES; status++)
        sum += atomic_load(&pour->counts->answers[status]);
    return sum;
}

void pour_print(const struct pour *pour, char *ret_text, size_t room)
{
    const unsigned closed = atomic_load(&pour->counts->closed);
    size_t len = 0;

    ret_text[0] = '\0';
    for (size_t status = 0; status < POUR_STATUSES && len < room; status++) {
        const unsigned count = atomic_load(&pour->counts->answers[status]);

        if (count > 0)
            len += (size_t)snprintf(ret_text + len, room - len, "%s%zu: %u", len ? ", " : "", status, count);
    }
    if (closed > 0 && len < room)
        snprintf(ret_text + len, room - len, "%sclosed: %u", len ? ", " : "", closed);
}

bool pour_lives(const struct pour *pour)
{
    siginfo_t info = {0};

    return waitid(P_PID, (id_t)pour->pid, &info, WEXITED | WNOHANG | WNOWAIT) == 0 && info.si_pid == 0;
}

void pour_end(struct pour *pour)
{
    kill(pour->pid, SIGKILL);
    if (waitpid(pour->pid, NULL, 0) != pour->pid)
        test_give_up("an attack does not end");
    pour->pid = 0;
}

void pour_free(struct pour *pour)
{
    munmap(pour->counts, sizeof *pour->counts);
}
