/* SPDX-License-Identifier: Apache-2.0 */
#include "opencl/compile_process/compile_message.h"

#include <errno.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/types.h>
#include <time.h>

/* Returns the time until the deadline for poll(), at least 0. */
static int milliseconds_left(const struct message_link *link)
{
    struct timespec now;
    if (link->deadline_ns == 0)
        return -1;
    clock_gettime(CLOCK_MONOTONIC, &now);
    uint64_t now_ns =
        (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
    if (now_ns >= link->deadline_ns)
        return 0;
    uint64_t left = (link->deadline_ns - now_ns) / 1000000u + 1u;
    return left < 60000u ? (int)left : 60000;
}

/* Waits until the socket is ready.  Returns false after the deadline, or if the
 * other process has ended and there is nothing to receive.  The socket alone
 * does not show this if a fork of this process holds the other end. */
static bool wait_ready(const struct message_link *link, short events)
{
    for (;;) {
        struct pollfd entries[] = {{.fd = link->socket, .events = events},
                                   {.fd = link->process, .events = POLLIN}};
        int left = milliseconds_left(link), count = poll(entries, 2, left);
        if (count < 0 && errno != EINTR)
            return false;
        if (count > 0)
            return entries[0].revents != 0;
        if (count == 0 && milliseconds_left(link) == 0)
            return false;
    }
}

bool message_send(const struct message_link *link, const void *data,
                  size_t bytes)
{
    const char *at = data;
    while (bytes > 0) {
        /* Without MSG_NOSIGNAL, a process that has ended causes SIGPIPE. */
        ssize_t sent =
            send(link->socket, at, bytes, MSG_NOSIGNAL | MSG_DONTWAIT);
        if (sent > 0) {
            at += sent;
            bytes -= (size_t)sent;
        } else if (sent == 0 || (errno != EINTR && errno != EAGAIN) ||
                   !wait_ready(link, POLLOUT)) {
            return false;
        }
    }
    return true;
}

bool message_receive(const struct message_link *link, void *data, size_t bytes)
{
    char *at = data;
    while (bytes > 0) {
        ssize_t received = recv(link->socket, at, bytes, MSG_DONTWAIT);
        if (received > 0) {
            at += received;
            bytes -= (size_t)received;
        } else if (received == 0 || (errno != EINTR && errno != EAGAIN) ||
                   !wait_ready(link, POLLIN)) {
            return false;
        }
    }
    return true;
}
