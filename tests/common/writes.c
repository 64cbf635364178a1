/* SPDX-License-Identifier: Apache-2.0 */
/* Writes that fail; see writes.h. */
#include <config.h>

#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "common/writes.h"

static bool kills;

__attribute__((visibility("default"))) ssize_t write(int file,
                                                     const void *bytes,
                                                     size_t count)
{
    if (!kills)
        return syscall(SYS_write, file, bytes, count);
    syscall(SYS_write, file, bytes, count / 2);
    kill(getpid(), SIGKILL);
    return -1;
}

void writes_kill(void)
{
    kills = true;
}

void writes_limit(size_t bytes)
{
    struct rlimit limit;

    if (getrlimit(RLIMIT_FSIZE, &limit) != 0)
        abort();
    limit.rlim_cur = bytes != 0 ? bytes : limit.rlim_max;
    if (setrlimit(RLIMIT_FSIZE, &limit) != 0)
        abort();
}
