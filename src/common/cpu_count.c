/* SPDX-License-Identifier: Apache-2.0 */
/* Counts the available CPUs; see cpu_count.h. The quota of a Linux control
 * group also limits the groups below it, so every directory from the process's
 * group up to the mount point is read. In a container, the group's path can be
 * the path on the host machine. The directories of this path are then missing,
 * and only the mount point has a quota. */
#include "config.h"

#include "common/cpu_count.h"

#include <sched.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define PATH_BYTES 4096u
#define LINE_BYTES 2048u

/* Mount points of Linux control groups of versions 1 and 2. */
static const char *const mounts[] = {"/sys/fs/cgroup", "/sys/fs/cgroup/unified",
                                     "/sys/fs/cgroup/cpu",
                                     "/sys/fs/cgroup/cpu,cpuacct"};

static bool line_read(const char *directory, const char *name, char *out,
                      int bytes)
{
    char path[PATH_BYTES];
    int length = snprintf(path, sizeof path, "%s/%s", directory, name);
    FILE *file = (size_t)length < sizeof path ? fopen(path, "re") : NULL;
    if (file == NULL)
        return false;
    bool read = fgets(out, bytes, file) != NULL;
    fclose(file);
    return read;
}

/* Returns the CPU quota in a control group's directory, as a number of CPUs
 * rounded up. Returns `limit` if there is no quota or it exceeds `limit`. */
static uint32_t directory_quota(const char *directory, uint32_t limit)
{
    char text[64], length[64];
    long long quota, period;
    if (line_read(directory, "cpu.max", text, sizeof text)) {
        if (sscanf(text, "%lld %lld", &quota, &period) != 2)
            return limit; /* "max" means unlimited */
    } else if (!line_read(directory, "cpu.cfs_quota_us", text, sizeof text) ||
               !line_read(directory, "cpu.cfs_period_us", length,
                          sizeof length) ||
               sscanf(text, "%lld", &quota) != 1 ||
               sscanf(length, "%lld", &period) != 1) {
        return limit;
    }
    if (quota <= 0 || period <= 0)
        return limit;
    long long count = quota / period + (quota % period != 0);
    return count < (long long)limit ? (uint32_t)count : limit;
}

/* Returns the smallest CPU quota of a control group and all groups above it. */
static uint32_t path_quota(const char *root, const char *mount,
                           const char *group, uint32_t limit)
{
    char path[PATH_BYTES];
    int top = snprintf(path, sizeof path, "%s%s", root, mount);
    if ((size_t)top >= sizeof path)
        return limit;
    int length = snprintf(path + top, sizeof path - (size_t)top, "%s", group);
    if ((size_t)length >= sizeof path - (size_t)top)
        path[top] = '\0';
    for (;;) {
        limit = directory_quota(path, limit);
        char *slash = strrchr(path + top, '/');
        if (slash == NULL)
            return limit;
        *slash = '\0';
    }
}

/* Returns the control group's path in a line of /proc/self/cgroup,
 * "number:controllers:path", if the controllers include "cpu" or are empty
 * (version 2). Returns NULL otherwise. Modifies the line. */
static const char *line_group(char *line)
{
    strsep(&line, ":");
    char *names = strsep(&line, ":"), *path = line, *name;
    if (path == NULL)
        return NULL;
    path[strcspn(path, "\n")] = '\0';
    if (names[0] == '\0')
        return path;
    while ((name = strsep(&names, ",")) != NULL)
        if (strcmp(name, "cpu") == 0)
            return path;
    return NULL;
}

uint32_t quota_processors(const char *root, uint32_t limit)
{
    char path[PATH_BYTES], line[LINE_BYTES];
    int length = snprintf(path, sizeof path, "%s/proc/self/cgroup", root);
    FILE *file = (size_t)length < sizeof path ? fopen(path, "re") : NULL;
    while (file != NULL && fgets(line, sizeof line, file) != NULL) {
        const char *group = line_group(line);
        for (size_t i = 0;
             group != NULL && i < sizeof mounts / sizeof mounts[0]; i++)
            limit = path_quota(root, mounts[i], group, limit);
    }
    if (file != NULL)
        fclose(file);
    return limit;
}

uint32_t cpu_count_available(void)
{
    cpu_set_t set;
    uint32_t count = 1;
    if (sched_getaffinity(0, sizeof set, &set) == 0)
        count = (uint32_t)CPU_COUNT(&set);
    else if (sysconf(_SC_NPROCESSORS_ONLN) > 1)
        count = (uint32_t)sysconf(_SC_NPROCESSORS_ONLN);
    count = quota_processors("", count);
    return count < 1 ? 1 : count;
}
