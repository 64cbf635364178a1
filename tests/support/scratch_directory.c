/* SPDX-License-Identifier: Apache-2.0 */
/* A directory for the files of a test program; see scratch_directory.h. */
#include <config.h>

#include <check.h>
#include <dirent.h>
#include <ftw.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "support/scratch_directory.h"

#ifdef __has_feature /* clang */
#if __has_feature(address_sanitizer)
#define __SANITIZE_ADDRESS__
#endif
#endif
#ifdef __SANITIZE_ADDRESS__
#include <sanitizer/lsan_interface.h>
#endif

char scratch[256];

const char *scratch_path(const char *format, ...)
{
    static char paths[8][4096];
    static unsigned next;
    char *path = paths[next++ % 8];
    va_list arguments;
    int length;

    length = snprintf(path, sizeof paths[0], "%s/", scratch);
    va_start(arguments, format);
    vsnprintf(path + length, sizeof paths[0] - (size_t)length, format,
              arguments);
    va_end(arguments);
    return path;
}

void file_write(const char *path, const char *text)
{
    FILE *file = fopen(path, "w");

    ck_assert_msg(file != NULL, "%s cannot be written", path);
    fputs(text, file);
    ck_assert_int_eq(fclose(file), 0);
}

static int entry_remove(const char *path, const struct stat *status, int type,
                        struct FTW *walk)
{
    (void)status;
    (void)type;
    (void)walk;
    return remove(path);
}

void directory_remove(const char *path)
{
    nftw(path, entry_remove, 16, FTW_DEPTH | FTW_PHYS);
}

uint32_t directory_count(const char *path)
{
    DIR *directory = opendir(path);
    uint32_t count = 0;

    ck_assert_ptr_nonnull(directory);
    for (struct dirent *entry; (entry = readdir(directory));)
        count += entry->d_name[0] != '.' || strlen(entry->d_name) > 2;
    closedir(directory);
    return count;
}

void scratch_create(void)
{
    const char *root = getenv("TMPDIR");

    snprintf(scratch, sizeof scratch, "%s/tandem-test-XXXXXX",
             root ? root : "/tmp");
    ck_assert_ptr_nonnull(mkdtemp(scratch));
}

void scratch_remove(void)
{
#ifdef __SANITIZE_ADDRESS__
    /* LeakSanitizer needs the copied plugins to name their functions. It does
     * not look again at the end of the process. */
    __lsan_do_leak_check();
#endif
    directory_remove(scratch);
}

void expect_mode(const char *path, mode_t mode)
{
    struct stat status;

    ck_assert_msg(stat(path, &status) == 0, "%s does not exist", path);
    ck_assert_msg((status.st_mode & 07777) == mode, "%s has mode %o, not %o",
                  path, status.st_mode & 07777, mode);
}
