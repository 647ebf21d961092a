#include "base/loss.h"

#include "base/clock.h"
#include "leak_guard.h"

#include <criterion/criterion.h>

#include <fcntl.h>
#include <string.h>
#include <unistd.h>

TestSuite(loss, .fini = leak_guard);

#define NOW_S INT64_C(1769860800)

static int64_t now_ms(void)
{
    return NOW_S * 1000;
}

static void expect_told(enum loss loss, int64_t value, bool is_told)
{
    metric_set(LOSSES[loss].metric, value);
    cr_expect_eq(loss_is_told(loss), is_told, "%s at %lld", LOSSES[loss].name, (long long)value);
    metric_set(LOSSES[loss].metric, 0);
}

Test(loss, each_is_told_by_its_own_metric_and_no_other)
{
    clock_replace_wall_for_test(now_ms);
    for (enum loss i = 0; i < LOSS_COUNT; i++) {
        metric_set(LOSSES[i].metric, LOSSES[i].told == LOSS_IF_IT_ENDS ? NOW_S : LOSSES[i].limit + 1);
        for (enum loss other = 0; other < LOSS_COUNT; other++)
            cr_expect_eq(loss_is_told(other), other == i, "%s by %s", LOSSES[other].name, LOSSES[i].name);
        metric_set(LOSSES[i].metric, 0);
        cr_expect(LOSSES[i].name && LOSSES[i].alert && LOSSES[i].message && LOSSES[i].sentence && LOSSES[i].remedy);
    }
}

Test(loss, is_told_from_its_limit_on)
{
    clock_replace_wall_for_test(now_ms);
    expect_told(LOSS_SOCKET, 0, false);
    expect_told(LOSS_SOCKET, 1, true);
    expect_told(LOSS_AUDIT_WAITS, 300, false);
    expect_told(LOSS_AUDIT_WAITS, 301, true);
    expect_told(LOSS_PUBLIC_CERTIFICATE, 0, false);
    expect_told(LOSS_PUBLIC_CERTIFICATE, NOW_S + LOSS_CERTIFICATE_S, false);
    expect_told(LOSS_PUBLIC_CERTIFICATE, NOW_S + LOSS_CERTIFICATE_S - 1, true);
    expect_told(LOSS_PUBLIC_CERTIFICATE, NOW_S - 1, true);
}

/* How often its message was logged since the last call. */
static size_t count_logged(int reader, enum loss loss)
{
    char text[4096];
    ssize_t length = read(reader, text, sizeof text - 1);
    size_t count = 0;

    text[length > 0 ? length : 0] = '\0';
    for (const char *at = text; (at = strstr(at, LOSSES[loss].message)); at++)
        count++;
    return count;
}

Test(loss, a_look_logs_each_once)
{
    int ends[2];

    cr_assert_eq(pipe2(ends, O_CLOEXEC | O_NONBLOCK), 0);
    cr_assert_eq(dup2(ends[1], STDERR_FILENO), STDERR_FILENO);
    for (int times = 0; times < 2; times++) {
        metric_set(METRIC_AUDIT_UNLOGGED_AGE, 301);
        metric_set(METRIC_SOCKETS_LOST, 1);
        losses_look();
        losses_look();
        cr_expect_eq(count_logged(ends[0], LOSS_AUDIT_WAITS), 1, "once, and again after it was gone");
        losses_look();
        cr_expect_eq(count_logged(ends[0], LOSS_SOCKET), 0, "whoever finds it logs it");
        metric_set(METRIC_AUDIT_UNLOGGED_AGE, 0);
        losses_look();
    }
    close(ends[0]);
    close(ends[1]);
}
