#include "app/notifier.h"

#include "base/check.h"
#include "base/mem.h"

#include <inttypes.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

/* A stopping node may take as long as --drain-ms says, so it asks for more time while its loop turns. */
enum { LOOK_MS = 1000, STOP_EXTENSION_MS = 15000, MESSAGE_MAX_BYTES = 1024, LOOKS_PER_WATCHDOG = 3 };

struct notifier {
    uv_timer_t timer;
    int fd; /* -1: nobody listens */
    struct sockaddr_un address;
    socklen_t address_bytes;
    bool is_watched;
    uint64_t patient_until; /* in the loop's time */
    void (*look)(void *arg, struct notifier_view *ret_view);
    void *arg;
    /* What has been told. A message that could not be sent is repeated by the next look. */
    bool has_told_ready, has_told_stopping;
    bool owes_ready; /* after a reload, whatever the node's state */
    char told_status[NOTIFIER_STATUS_BYTES];
    void (*closed)(void *arg);
    void *closed_arg;
};

/* A path, or '@' and the name of an abstract socket. Other forms are for machines, not for services. */
static bool read_address(struct notifier *n)
{
    const char *name = getenv("NOTIFY_SOCKET");
    size_t length = name ? strlen(name) : 0;

    if (length < 2 || length >= sizeof n->address.sun_path || (name[0] != '/' && name[0] != '@'))
        return false;
    n->address.sun_family = AF_UNIX;
    memcpy(n->address.sun_path, name, length);
    if (name[0] == '@')
        n->address.sun_path[0] = '\0';
    n->address_bytes = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + length);
    return true;
}

/* The period of WATCHDOG_USEC; 0: no watchdog, or one of another process. */
static uint64_t read_watchdog_ms(void)
{
    const char *usec = getenv("WATCHDOG_USEC"), *pid = getenv("WATCHDOG_PID");
    uint64_t value, watched;

    if (pid && (!text_to_u64(text_of(pid), INT32_MAX, &watched) || (pid_t)watched != getpid()))
        return 0;
    return usec && text_to_u64(text_of(usec), INT64_MAX, &value) ? value / 1000 : 0;
}

static bool is_sent(struct notifier *n, struct text message)
{
    return sendto(n->fd, message.ptr, message.len, MSG_NOSIGNAL | MSG_DONTWAIT, (const struct sockaddr *)&n->address,
                  n->address_bytes) == (ssize_t)message.len;
}

static void put_news(const struct notifier *n, const struct notifier_view *view, bool is_ready, struct buf *out)
{
    if (is_ready && !n->has_told_ready)
        buf_append_str(out, "READY=1\n");
    if (view->is_stopping && !n->has_told_stopping)
        buf_append_str(out, "STOPPING=1\n");
    if (view->is_stopping)
        buf_printf(out, "EXTEND_TIMEOUT_USEC=%d\n", STOP_EXTENSION_MS * 1000);
    if (strcmp(view->status, n->told_status) != 0)
        buf_printf(out, "STATUS=%s\n", view->status);
    if (n->is_watched)
        buf_append_str(out, "WATCHDOG=1\n");
}

void notifier_look(struct notifier *n)
{
    struct notifier_view view = {0};
    struct buf out = BUF_FIXED(MESSAGE_MAX_BYTES);

    if (n->fd < 0)
        return;
    n->look(n->arg, &view);
    bool is_ready = !view.is_stopping && (view.is_ready || n->owes_ready || uv_now(n->timer.loop) >= n->patient_until);
    put_news(n, &view, is_ready, &out);
    CHECK(!out.failed);
    if (out.len == 0 || !is_sent(n, buf_text(&out)))
        return;
    n->has_told_ready |= is_ready;
    n->owes_ready &= !is_ready;
    n->has_told_stopping |= view.is_stopping;
    memcpy(n->told_status, view.status, sizeof n->told_status);
}

static void timer_fired(uv_timer_t *timer)
{
    notifier_look(timer->data);
}

struct notifier *notifier_open(uv_loop_t *loop, uint64_t patience_ms,
                               void (*look)(void *arg, struct notifier_view *ret_view), void *arg)
{
    struct notifier *n = mem_alloc(sizeof *n);
    uint64_t watchdog_ms = read_watchdog_ms(), pause_ms = LOOK_MS;

    n->look = look;
    n->arg = arg;
    n->is_watched = watchdog_ms > 0;
    if (n->is_watched && watchdog_ms / LOOKS_PER_WATCHDOG < pause_ms)
        pause_ms = watchdog_ms / LOOKS_PER_WATCHDOG + 1;
    n->patient_until = uv_now(loop) + patience_ms;
    n->fd = read_address(n) ? socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0) : -1;
    CHECK(uv_timer_init(loop, &n->timer) == 0);
    n->timer.data = n;
    if (n->fd >= 0)
        CHECK(uv_timer_start(&n->timer, timer_fired, 0, pause_ms) == 0);
    return n;
}

void notifier_reload_begins(struct notifier *n)
{
    struct timespec now;
    struct buf out = BUF_FIXED(MESSAGE_MAX_BYTES);

    if (n->fd < 0 || !n->has_told_ready)
        return;
    CHECK(clock_gettime(CLOCK_MONOTONIC, &now) == 0);
    buf_printf(&out, "RELOADING=1\nMONOTONIC_USEC=%" PRIu64 "\n",
               (uint64_t)now.tv_sec * 1000000 + (uint64_t)now.tv_nsec / 1000);
    if (!is_sent(n, buf_text(&out)))
        return;
    n->has_told_ready = false;
    n->owes_ready = true;
}

void notifier_reload_ended(struct notifier *n)
{
    if (n->owes_ready)
        notifier_look(n);
}

static void timer_closed(uv_handle_t *handle)
{
    struct notifier *n = handle->data;
    void (*closed)(void *arg) = n->closed;
    void *arg = n->closed_arg;

    free(n);
    closed(arg);
}

void notifier_close(struct notifier *n, void (*closed)(void *arg), void *arg)
{
    n->closed = closed;
    n->closed_arg = arg;
    if (n->fd >= 0)
        close(n->fd);
    n->fd = -1;
    uv_close((uv_handle_t *)&n->timer, timer_closed);
}
