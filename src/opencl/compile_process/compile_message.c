/* SPDX-License-Identifier: Apache-2.0 */
#include "opencl/compile_process/compile_message.h"

#include <errno.h>
#include <poll.h>
#include <sys/socket.h>
#include <time.h>

bool message_send(int socket, const void *data, size_t bytes)
{
    const char *at = data;
    while (bytes > 0) {
        /* Without the flag, a process that has ended causes SIGPIPE. */
        ssize_t sent = send(socket, at, bytes, MSG_NOSIGNAL);
        if (sent < 0 && errno == EINTR)
            continue;
        if (sent <= 0)
            return false;
        at += sent;
        bytes -= (size_t)sent;
    }
    return true;
}

/* Waits until the socket can be read.  Returns false after the deadline. */
static bool wait_readable(int socket, uint64_t deadline_ns)
{
    struct pollfd entry = {.fd = socket, .events = POLLIN};
    for (;;) {
        struct timespec now;
        clock_gettime(CLOCK_MONOTONIC, &now);
        uint64_t now_ns =
            (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
        if (now_ns >= deadline_ns)
            return false;
        uint64_t left_ms = (deadline_ns - now_ns) / 1000000u + 1u;
        int count = poll(&entry, 1, left_ms < 60000u ? (int)left_ms : 60000);
        if (count > 0)
            return true;
        if (count < 0 && errno != EINTR)
            return false;
    }
}

bool message_receive(int socket, void *data, size_t bytes, uint64_t deadline_ns)
{
    char *at = data;
    while (bytes > 0) {
        if (deadline_ns != 0 && !wait_readable(socket, deadline_ns))
            return false;
        ssize_t received = recv(socket, at, bytes, 0);
        if (received < 0 && errno == EINTR)
            continue;
        if (received <= 0)
            return false;
        at += received;
        bytes -= (size_t)received;
    }
    return true;
}
