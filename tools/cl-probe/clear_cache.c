/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Implements cl-probe --clear-cache, which removes compiled programs.  Keeps
 * profiles and the driver blocklist, because they are not recreated
 * automatically.  Parent process only; loads no driver.
 */
#include <config.h>

#include "cl_probe.h"

#include "../common/text_table.h"
#include "common/driver_blocklist.h"
#include "common/environment.h"
#include "common/secure_file.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define PROGRAM_DIGITS 32u
#define PROGRAM_SUFFIX ".clbin"
#define PROFILE_DIGITS 16u

struct clearing {
    int directory;
    json_int_t removed, bytes, kept, failed;
};

/* Returns true if `name` ends with `digits` hexadecimal digits and the suffix.
 */
static bool numbered(const char *name, size_t digits, const char *suffix)
{
    const size_t length = strlen(name), end = digits + strlen(suffix);

    return length >= end &&
           strspn(name + length - end, "0123456789abcdef") == digits &&
           strcmp(name + length - end + digits, suffix) == 0;
}

bool probe_is_program(const char *name)
{
    return strlen(name) == PROGRAM_DIGITS + strlen(PROGRAM_SUFFIX) &&
           numbered(name, PROGRAM_DIGITS, PROGRAM_SUFFIX);
}

/* Returns true for a profile, "BACKEND-DEVICE-NUMBER.json", or the blocklist.
 */
static bool is_measured(const char *name)
{
    return numbered(name, PROFILE_DIGITS, ".json") ||
           strcmp(name, DRIVER_RECORD_NAME) == 0;
}

/* Removes the file if it is a compiled program.  Ignores files of others. */
static void clear_entry(struct clearing *clearing, const char *name)
{
    struct stat status;

    if (fstatat(clearing->directory, name, &status, AT_SYMLINK_NOFOLLOW) != 0 ||
        !S_ISREG(status.st_mode))
        return;
    clearing->kept += is_measured(name);
    if (!probe_is_program(name))
        return;
    if (unlinkat(clearing->directory, name, 0) == 0) {
        clearing->removed++;
        clearing->bytes += (json_int_t)status.st_size;
    } else if (errno != ENOENT) {
        probe_complain("%s: %s", name, strerror(errno));
        clearing->failed++;
    }
}

/* Clears clearing->directory and closes this descriptor. */
static bool clear_directory(struct clearing *clearing)
{
    DIR *entries = fdopendir(clearing->directory);
    struct dirent *entry;

    if (entries == NULL) {
        close(clearing->directory);
        return false;
    }
    while ((entry = readdir(entries)) != NULL)
        clear_entry(clearing, entry->d_name);
    closedir(entries);
    return true;
}

static void print_clearing(const struct clearing *clearing, const char *path)
{
    char text[TEXT_BYTES];

    printf("%s: %lld compiled program%s removed (%s)\n", path,
           (long long)clearing->removed, clearing->removed == 1 ? "" : "s",
           text_bytes(text, (double)clearing->bytes));
    if (clearing->kept > 0)
        printf("kept: %lld file%s there that hold%s what was measured\n",
               (long long)clearing->kept, clearing->kept == 1 ? "" : "s",
               clearing->kept == 1 ? "s" : "");
}

int probe_clear_cache(const struct probe_options *options)
{
    char path[PATH_MAX], why[SECURE_WHY_BYTES];
    struct clearing clearing = {.directory = -1};

    if (!environment_cache(path, sizeof path)) {
        probe_complain("neither XDG_CACHE_HOME nor HOME says where the cache "
                       "is");
        return PROBE_FAILED;
    }
    clearing.directory = secure_directory_open(path, SECURE_READ, why);
    if (clearing.directory < 0 && why[0] != '\0') {
        probe_complain("%s is left alone: %s", path, why);
        return PROBE_FAILED;
    }
    if (clearing.directory >= 0 && !clear_directory(&clearing)) {
        probe_complain("%s: %s", path, strerror(errno));
        return PROBE_FAILED;
    }
    if (options->json)
        probe_print_json(json_pack("{s:s, s:I, s:I, s:I}", "directory", path,
                                   "removed", clearing.removed, "bytes",
                                   clearing.bytes, "measured_files_kept",
                                   clearing.kept));
    else
        print_clearing(&clearing, path);
    return clearing.failed > 0 ? PROBE_FAILED : PROBE_OK;
}
