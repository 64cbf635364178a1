/* SPDX-License-Identifier: Apache-2.0 */
/* Opens secure files and directories; see secure_file.h.
 *
 * A path is walked part by part from the root, with a descriptor for each
 * directory. This code follows links itself, so that it checks every directory
 * that affects where the path leads. */
#include <config.h>

#include "common/secure_file.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define LINKS_MAX 40u /* maximum number of symbolic links, as in Linux */

/* Writes the error message for errno to why, or "" if errno is ENOENT. */
static void why_system(char *why)
{
    snprintf(why, SECURE_WHY_BYTES, "%s",
             errno == ENOENT ? "" : strerror(errno));
}

/* ---- checks ---- */

static bool owner_trusted(const struct stat *status)
{
    return status->st_uid == 0 || status->st_uid == geteuid();
}

/* Returns true if users other than the owner and root can write the file. If
 * root is the owner, the group counts as trusted. A group whose ID equals the
 * owner's user ID is the owner's private group and also counts as trusted. */
static bool others_write(const struct stat *status)
{
    return (status->st_mode & S_IWOTH) != 0 ||
           ((status->st_mode & S_IWGRP) != 0 && status->st_uid != 0 &&
            status->st_gid != status->st_uid);
}

/* Returns why a file's owner or mode is not secure, or NULL if both are. */
static const char *status_judge(const struct stat *status, bool sticky_serves)
{
    if (!owner_trusted(status))
        return "belongs to another user, neither to root nor to this one";
    if (others_write(status) &&
        !(sticky_serves && (status->st_mode & S_ISVTX) != 0))
        return "can be written by others";
    return NULL;
}

/* ---- walking ---- */

struct walk {
    int directory;       /* descriptor of the directory reached so far */
    unsigned links;      /* number of links followed */
    char rest[PATH_MAX]; /* part of the path that is not walked yet */
    char seen[PATH_MAX]; /* path that was walked so far, for messages */
};

static bool walk_fail(const struct walk *walk, char *why, const char *what)
{
    snprintf(why, SECURE_WHY_BYTES, "%.256s %s",
             walk->seen[0] != '\0' ? walk->seen : "/", what);
    return false;
}

static void walk_move(struct walk *walk, int directory)
{
    if (walk->directory >= 0)
        close(walk->directory);
    walk->directory = directory;
}

/* Fails if the owner or mode of the directory reached is not secure. Names the
 * command that repairs a mode; a sticky directory such as /tmp must stay. */
static bool walk_judge(const struct walk *walk, const struct stat *status,
                       bool sticky_serves, char *why)
{
    const char *problem = status_judge(status, sticky_serves);
    const char *path = walk->seen[0] != '\0' ? walk->seen : "/";

    if (problem == NULL)
        return true;
    if (!owner_trusted(status) || (status->st_mode & S_ISVTX) != 0 ||
        strlen(path) > 200)
        return walk_fail(walk, why, problem);
    snprintf(why, SECURE_WHY_BYTES, "%.200s %s; run \"%schmod go-w %.200s\"",
             path, problem,
             geteuid() == 0 || geteuid() == status->st_uid ? "" : "sudo ",
             path);
    return false;
}

static bool walk_root(struct walk *walk, char *why)
{
    const int root = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
    struct stat status;

    walk->seen[0] = '\0';
    walk_move(walk, root);
    if (root < 0 || fstat(root, &status) != 0)
        return walk_fail(walk, why, strerror(errno));
    return walk_judge(walk, &status, true, why);
}

/* Moves the next component of walk->rest to out_part. Returns false if there is
 * no further component. */
static bool walk_part(struct walk *walk, char *out_part)
{
    const char *start = walk->rest + strspn(walk->rest, "/");
    const size_t length = strcspn(start, "/");

    if (length == 0)
        return false;
    memcpy(out_part, start, length);
    out_part[length] = '\0';
    memmove(walk->rest, start + length, strlen(start + length) + 1);
    return true;
}

/* Inserts the target of the symbolic link `file` before the remaining path. */
static bool walk_link(struct walk *walk, int file, const struct stat *status,
                      char *why)
{
    char target[PATH_MAX];
    const ssize_t length = readlinkat(file, "", target, sizeof(target));
    const size_t rest = strlen(walk->rest);

    if (!owner_trusted(status))
        return walk_fail(walk, why,
                         "is another user's link, neither root's nor this "
                         "one's");
    if (length <= 0 || (size_t)length + rest + 2 > sizeof(walk->rest) ||
        ++walk->links > LINKS_MAX)
        return walk_fail(walk, why, "is a link that leads nowhere");
    memmove(walk->rest + length + 1, walk->rest, rest + 1);
    walk->rest[length] = '/';
    memcpy(walk->rest, target, (size_t)length);
    return target[0] != '/' || walk_root(walk, why);
}

/* Sets a directory's mode regardless of the umask. Does not call fchmodat if
 * the mode is already right, because some file systems do not support it. */
static bool part_mode_set(int directory, const char *part, mode_t mode)
{
    struct stat status;

    return (fstatat(directory, part, &status, AT_SYMLINK_NOFOLLOW) == 0 &&
            (status.st_mode & 0777) == mode) ||
           fchmodat(directory, part, mode, 0) == 0;
}

static int part_open(int directory, const char *part, enum secure_use use)
{
    const int flags = O_PATH | O_NOFOLLOW | O_CLOEXEC;
    const int file = openat(directory, part, flags);

    if (file >= 0 || errno != ENOENT || use == SECURE_READ)
        return file;
    if (mkdirat(directory, part, 0700) == 0) {
        if (!part_mode_set(directory, part,
                           use == SECURE_PUBLISH ? 0755 : 0700))
            return -1;
    } else if (errno != EEXIST) {
        return -1;
    }
    return openat(directory, part, flags);
}

/* Walks one component of the path: enters the directory or follows the link. */
static bool walk_step(struct walk *walk, const char *part, enum secure_use use,
                      char *why)
{
    const size_t seen = strlen(walk->seen);
    const int file = part_open(walk->directory, part, use);
    struct stat status;
    bool last;

    if (file < 0 || fstat(file, &status) != 0) {
        why_system(why);
        if (file >= 0)
            close(file);
        return false;
    }
    if (seen + strlen(part) + 2 <= sizeof(walk->seen)) {
        walk->seen[seen] = '/';
        memcpy(walk->seen + seen + 1, part, strlen(part) + 1);
    }
    if (S_ISLNK(status.st_mode)) {
        const bool good = walk_link(walk, file, &status, why);

        close(file);
        if (good && walk->seen[0] != '\0')
            walk->seen[seen] = '\0';
        return good;
    }
    walk_move(walk, file);
    if (!S_ISDIR(status.st_mode))
        return walk_fail(walk, why, "is no directory");
    last = walk->rest[strspn(walk->rest, "/")] == '\0';
    return walk_judge(walk, &status, use == SECURE_READ || !last, why);
}

int secure_directory_open(const char *path, enum secure_use use, char *out_why)
{
    struct walk walk = {.directory = -1};
    char part[PATH_MAX];
    bool good;
    int directory = -1;

    out_why[0] = '\0';
    if (path[0] != '/' || strlen(path) >= sizeof(walk.rest)) {
        snprintf(out_why, SECURE_WHY_BYTES, "it is %s",
                 path[0] != '/' ? "relative" : "too long");
        return -1;
    }
    memcpy(walk.rest, path, strlen(path) + 1);
    good = walk_root(&walk, out_why);
    while (good && walk_part(&walk, part))
        good = strcmp(part, ".") == 0 || walk_step(&walk, part, use, out_why);
    if (good && (directory = openat(walk.directory, ".",
                                    O_RDONLY | O_DIRECTORY | O_CLOEXEC)) < 0)
        why_system(out_why);
    walk_move(&walk, -1);
    return directory;
}

/* ---- reading ---- */

/* Opens a file and checks it. O_NONBLOCK keeps the open from blocking if the
 * name is a pipe, for example. */
static int file_open(int directory, const char *name, struct stat *out_status,
                     char *why)
{
    const int file =
        openat(directory, name,
               O_RDONLY | O_NOFOLLOW | O_NOCTTY | O_NONBLOCK | O_CLOEXEC);
    const char *problem = NULL;

    why[0] = '\0';
    if (file < 0) {
        if (errno == ELOOP)
            snprintf(why, SECURE_WHY_BYTES, "it is a link");
        else
            why_system(why);
        return -1;
    }
    if (fstat(file, out_status) != 0)
        problem = strerror(errno);
    else if (!S_ISREG(out_status->st_mode))
        problem = "is no regular file";
    else
        problem = status_judge(out_status, false);
    if (problem == NULL)
        return file;
    snprintf(why, SECURE_WHY_BYTES, "it %s", problem);
    close(file);
    return -1;
}

int secure_file_open(int directory, const char *name, char *out_why)
{
    struct stat status;

    return file_open(directory, name, &status, out_why);
}

static bool bytes_read(int file, char *data, size_t bytes)
{
    size_t done = 0;

    while (done < bytes) {
        const ssize_t got = read(file, data + done, bytes - done);

        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0)
            return false;
        done += (size_t)got;
    }
    return true;
}

char *secure_file_read(int directory, const char *name, size_t most,
                       size_t *out_bytes, char *out_why)
{
    struct stat status;
    char *data = NULL;
    const int file = file_open(directory, name, &status, out_why);

    *out_bytes = 0;
    if (file < 0)
        return NULL;
    const size_t bytes = (size_t)status.st_size;
    if (bytes > most) {
        snprintf(out_why, SECURE_WHY_BYTES, "it is larger than %zu bytes",
                 most);
    } else if ((data = malloc(bytes + 1)) == NULL) {
        snprintf(out_why, SECURE_WHY_BYTES, "no memory to read it");
    } else if (!bytes_read(file, data, bytes)) {
        snprintf(out_why, SECURE_WHY_BYTES, "it cannot be read whole");
        free(data);
        data = NULL;
    } else {
        data[bytes] = '\0';
        *out_bytes = bytes;
    }
    close(file);
    return data;
}
