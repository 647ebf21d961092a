/* A function of the owner's to call later, with its argument; zeroed: none. */
#pragma once

struct callback {
    void (*run)(void *arg);
    void *arg;
};

static inline void callback_run(struct callback callback)
{
    if (callback.run)
        callback.run(callback.arg);
}
