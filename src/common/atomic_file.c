/* SPDX-License-Identifier: Apache-2.0 */
/* Replaces files atomically and locks directories; see secure_file.h.
 *
 * A writer creates a temporary file in the same directory and renames it over
 * the target. If a writer is killed, a later writer removes its temporary
 * file. */
#include <config.h>

#include "common/secure_file.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define UNFINISHED_SUFFIX ".part"
/* Seconds without a change after which a temporary file counts as abandoned. */
#define UNFINISHED_SECONDS 3600

static bool unfinished(const char *name)
{
    const size_t suffix = sizeof(UNFINISHED_SUFFIX) - 1;
    const size_t length = strlen(name);

    return length > suffix &&
           strcmp(name + length - suffix, UNFINISHED_SUFFIX) == 0;
}

/* Removes the temporary files of writers that were killed. */
static void unfinished_sweep(int directory)
{
    const int own = openat(directory, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *stream = own >= 0 ? fdopendir(own) : NULL;
    const struct dirent *entry;
    struct stat status;

    while (stream != NULL && (entry = readdir(stream)) != NULL) {
        if (unfinished(entry->d_name) &&
            fstatat(directory, entry->d_name, &status, AT_SYMLINK_NOFOLLOW) ==
                0 &&
            S_ISREG(status.st_mode) && status.st_uid == geteuid() &&
            status.st_mtime < time(NULL) - UNFINISHED_SECONDS)
            unlinkat(directory, entry->d_name, 0);
    }
    if (stream != NULL)
        closedir(stream);
    else if (own >= 0)
        close(own);
}

/* Creates a temporary file with a unique name that starts with `name`. Returns
 * the file's descriptor, or -1 with errno set. */
static int unfinished_make(int directory, const char *name, char *out_name,
                           size_t name_bytes)
{
    static unsigned serial;
    int file = -1;

    for (int i = 0; i < 100 && file < 0 && (i == 0 || errno == EEXIST); i++) {
        const int length =
            snprintf(out_name, name_bytes, "%s.%lx-%x" UNFINISHED_SUFFIX, name,
                     (unsigned long)getpid(),
                     __atomic_add_fetch(&serial, 1, __ATOMIC_RELAXED));

        if (length < 0 || (size_t)length >= name_bytes) {
            errno = ENAMETOOLONG;
            return -1;
        }
        file =
            openat(directory, out_name,
                   O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    }
    return file;
}

static bool bytes_write(int file, const struct file_part *part)
{
    const char *at = part->data;
    size_t left = part->bytes;

    while (left > 0) {
        const ssize_t put = write(file, at, left);

        if (put < 0 && errno == EINTR)
            continue;
        if (put <= 0)
            return false;
        at += put;
        left -= (size_t)put;
    }
    return true;
}

/* Writes all parts to the file. Exceeding RLIMIT_FSIZE raises SIGXFSZ, which
 * kills a process that does not handle it. The signal is therefore blocked in
 * this thread during the writes, and consumed if the writes raised it. The
 * write then fails with EFBIG. */
static bool parts_write(int file, const struct file_part *parts, size_t count)
{
    const struct timespec now = {0};
    sigset_t limit, host, pending;
    bool good = true, was_pending;
    int error;

    sigemptyset(&limit);
    sigaddset(&limit, SIGXFSZ);
    pthread_sigmask(SIG_BLOCK, &limit, &host);
    was_pending =
        sigpending(&pending) == 0 && sigismember(&pending, SIGXFSZ) == 1;
    for (size_t i = 0; i < count && good; i++)
        good = bytes_write(file, &parts[i]);
    error = errno;
    while (!good && error == EFBIG && !was_pending &&
           sigtimedwait(&limit, NULL, &now) < 0 && errno == EINTR)
        ;
    pthread_sigmask(SIG_SETMASK, &host, NULL);
    errno = error;
    return good;
}

/* Sets the file's mode regardless of the umask. Does not call fchmod if the
 * mode is already right, because some file systems do not support it. */
static bool mode_set(int file, mode_t mode)
{
    struct stat status;

    return (fstat(file, &status) == 0 && (status.st_mode & 0777) == mode) ||
           fchmod(file, mode) == 0;
}

bool file_replace_atomically(int directory, const char *name,
                             const struct file_part *parts, size_t count,
                             unsigned how, char *out_why)
{
    const mode_t mode = (how & REPLACE_PUBLIC) != 0 ? 0644 : 0600;
    char temporary[NAME_MAX + 1];
    bool good, closed;
    int error, file;

    unfinished_sweep(directory);
    file = unfinished_make(directory, name, temporary, sizeof(temporary));
    out_why[0] = '\0';
    if (file < 0) {
        snprintf(out_why, SECURE_WHY_BYTES, "it cannot be made: %s",
                 strerror(errno));
        return false;
    }
    good = parts_write(file, parts, count) && mode_set(file, mode) &&
           ((how & REPLACE_DURABLE) == 0 || fsync(file) == 0);
    error = errno;
    closed = close(file) == 0;
    if (good) {
        good = closed && renameat(directory, temporary, directory, name) == 0;
        error = errno;
    }
    if (!good) {
        unlinkat(directory, temporary, 0);
        snprintf(out_why, SECURE_WHY_BYTES, "it cannot be written: %s",
                 strerror(error));
        return false;
    }
    /* Sync the directory, which holds the new name. Ignore a failed sync. */
    if ((how & REPLACE_DURABLE) != 0)
        (void)fsync(directory);
    return true;
}

/* ---- locks ---- */

#define PAUSE_MS 10u /* interval between attempts to lock a directory */

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
