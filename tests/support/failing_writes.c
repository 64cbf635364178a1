/* SPDX-License-Identifier: Apache-2.0 */
/* Simulates failing writes; see failing_writes.h. */
#include <config.h>

#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <stdio.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "support/failing_writes.h"

static bool kills;
static struct writes_seen seen;
/* The file of the last fsync, if it was not written since. */
static ino_t synced;

static struct stat status_of(int file)
{
    struct stat status = {0};

    fstat(file, &status);
    return status;
}

struct writes_seen writes_seen(void)
{
    return seen;
}

__attribute__((visibility("default"))) int fsync(int file)
{
    const struct stat status = status_of(file);

    if (S_ISDIR(status.st_mode))
        seen.directories++;
    else
        synced = status.st_ino;
    return (int)syscall(SYS_fsync, file);
}

__attribute__((visibility("default"))) int
renameat(int from, const char *old_name, int to, const char *new_name)
{
    struct stat status = {0};

    fstatat(from, old_name, &status, AT_SYMLINK_NOFOLLOW);
    seen.files++;
    seen.unsynced += status.st_ino != synced;
    return (int)syscall(SYS_renameat2, from, old_name, to, new_name, 0);
}

__attribute__((visibility("default"))) ssize_t write(int file,
                                                     const void *bytes,
                                                     size_t count)
{
    if (status_of(file).st_ino == synced)
        synced = 0;
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
