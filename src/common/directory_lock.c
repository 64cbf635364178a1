/* SPDX-License-Identifier: Apache-2.0 */
/* Locks directories with flock; see directory_lock.h. */
#include "common/directory_lock.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/file.h>
#include <time.h>
#include <unistd.h>

#define PAUSE_MS 10u

int lock_take(int directory, uint32_t most_ms)
{
    const struct timespec pause = {0, (long)PAUSE_MS * 1000000};
    int lock = openat(directory, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

    for (uint32_t waited = 0; lock >= 0; waited += PAUSE_MS) {
        if (flock(lock, LOCK_EX | LOCK_NB) == 0)
            return lock;
        if ((errno != EWOULDBLOCK && errno != EINTR) || waited >= most_ms)
            break;
        nanosleep(&pause, NULL);
    }
    if (lock >= 0)
        close(lock);
    return -1;
}

/* Unlocks the directory before closing the descriptor: close does not unlock it
 * while a forked child has a copy of the descriptor. */
void lock_release(int lock)
{
    if (lock < 0)
        return;
    flock(lock, LOCK_UN);
    close(lock);
}
