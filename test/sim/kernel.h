/* A kernel for one thread, in its own process: time goes on where nobody has anything to do, and stream sockets reach
 * from the thread to itself. Unmodified libuv runs on it, because it takes the system's functions from the program
 * (clock.c, socket.c and epoll.c here define them for the whole process; other threads, and files, pipes and whatever
 * was open before, get the system's own).
 *
 * - A wait (epoll, poll) ends at once: by what is ready, else by time going on to the end of the wait. So a test
 *   that waits for a lease takes no time, and a busy machine delays nothing. Else time goes on by 10 us with each look
 * at what is ready, and by 100 ns with each look at the clock, so that whoever turns in circles comes to an end.
 * - TCP and Unix sockets (SOCK_STREAM) bind, listen, connect, accept, send, receive, end and reset as Linux' do on the
 *   loopback interface. An address is taken at the system, so that it is free and a socket's file exists; nobody
 * outside reaches it. Bytes arrive at once.
 * - Not there: urgent data, datagrams, duplicates of descriptors (dup). */
#pragma once
#include <stdint.h>

/* From now on, for this thread. Both clocks begin where the system's are. */
void sim_kernel_enter(void);
/* The same, with clocks that begin here. */
void sim_kernel_enter_at(uint64_t monotonic_ns, uint64_t real_ns);
/* Time goes on, as if this thread had been busy. */
void sim_kernel_spend_ns(uint64_t ns);
