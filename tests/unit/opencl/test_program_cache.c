/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The OpenCL plugin's cache of compiled programs: the next process uses it,
 * and if its files are damaged, results are correct and the files are written
 * again. Runs on the first device, in the build directory.
 */
#include <config.h>

#include <dirent.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "support/test_list.h"
#include "opencl/program/program_cache_entry.h"
#include "support.h"

#define ELEMENTS 64
#define STRANGER 12345

static char directory[4096];
static int warnings;
static char last_warning[1024];

static void count_warning(void *user, enum tandem_log_level level,
                          const char *message)
{
    (void)user;
    if (level > TANDEM_LOG_WARNING)
        return;
    warnings++;
    snprintf(last_warning, sizeof(last_warning), "%s", message);
}

/*
 * Runs one operator over ELEMENTS zeros on a new device with these open keys
 * and values, and checks that the result is value.
 */
static void compute_with(const char *const *pairs, uint32_t id, float value)
{
    float values[ELEMENTS] = {0};
    device_open(pairs, count_warning);
    struct tandem_buffer *buffer = buffer_new(sizeof(values));
    buffer_write(buffer, values, sizeof(values));
    struct tandem_tensor_desc tensor = {buffer, 0,          TANDEM_F32,
                                        1,      {ELEMENTS}, {1}};
    const struct tandem_tensor_desc *operand = &tensor;
    struct tandem_op op = {.struct_size = sizeof(op), .id = id};
    OK(tensors_launch(backend, device, stream, &op, &operand, 1, &operand, 1,
                      64));
    buffer_read(buffer, values, sizeof(values));
    for (int i = 0; i < ELEMENTS; i++)
        ck_assert(values[i] == value);
    device_close();
}

/* Uses a cache that is enabled for all drivers. */
static void compute_op(const char *cache, const char *cap, uint32_t id,
                       float value)
{
    const char *const pairs[] = {"cache_dir",
                                 cache,
                                 "test.force_program_cache",
                                 "1",
                                 "cache_limit_bytes",
                                 cap != NULL ? cap : "1000000000",
                                 NULL};
    compute_with(pairs, id, value);
}

static void compute(const char *cache)
{
    compute_op(cache, NULL, TANDEM_OP_EXP, 1.0f);
}

/* ---- files ---- */

/* Calls visit for each entry of the cache and returns the number of entries. */
static int visit_files(const char *cache, void (*visit)(const char *path))
{
    int count = 0;
    DIR *open = opendir(cache);
    struct dirent *entry;
    while (open != NULL && (entry = readdir(open)) != NULL) {
        char path[8192];
        if (entry->d_name[0] == '.')
            continue;
        snprintf(path, sizeof(path), "%s/%s", cache, entry->d_name);
        if (visit != NULL)
            visit(path);
        count++;
    }
    if (open != NULL)
        closedir(open);
    return count;
}

static void entry_remove(const char *path)
{
    remove(path);
}

static char one_path[8192];
/*
 * The number of programs that compute() builds: one, and another one if the
 * first build required smaller work-groups.
 */
static int program_count;

static void one_note(const char *path)
{
    snprintf(one_path, sizeof(one_path), "%s", path);
}

/* Returns one file of a cache that contains only the programs of compute(). */
static const char *single_file(void)
{
    ck_assert_int_eq(visit_files(directory, one_note), program_count);
    return one_path;
}

static void cache_new(void)
{
    mkdir(directory, 0700);
    ck_assert(chown(directory, geteuid(), getegid()) == 0);
    chmod(directory, 0700);
    visit_files(directory, entry_remove);
    warnings = 0;
}

static unsigned char *bytes_read(const char *path, size_t *out_bytes)
{
    FILE *file = fopen(path, "r");
    struct stat status;
    ck_assert(file != NULL && fstat(fileno(file), &status) == 0);
    unsigned char *data = malloc((size_t)status.st_size);
    ck_assert(data != NULL);
    *out_bytes = fread(data, 1, (size_t)status.st_size, file);
    fclose(file);
    return data;
}

static void bytes_write(const char *path, const void *data, size_t bytes)
{
    FILE *file = fopen(path, "w");
    ck_assert(file != NULL && fwrite(data, 1, bytes, file) == bytes);
    ck_assert(fclose(file) == 0);
}

/* ---- content of a file ---- */

#define KEY "the key of a program"
#define BODY_BYTES 1000

static size_t file_fill(unsigned char *out)
{
    unsigned char body[BODY_BYTES];
    struct cache_header header;
    for (size_t i = 0; i < sizeof(body); i++)
        body[i] = (unsigned char)(i * 37 + i / 256);
    cache_header_make(&header, KEY, body, sizeof(body));
    memcpy(out, &header, sizeof(header));
    memcpy(out + sizeof(header), KEY, strlen(KEY));
    memcpy(out + sizeof(header) + strlen(KEY), body, sizeof(body));
    return sizeof(header) + strlen(KEY) + sizeof(body);
}

TEST(flipped_bits_are_detected)
{
    unsigned char file[2048];
    size_t bytes = file_fill(file), found;
    ck_assert(cache_binary_find(file, bytes, KEY, &found) != NULL);
    ck_assert_uint_eq(found, BODY_BYTES);
    for (size_t i = 0; i < bytes; i++)
        for (int bit = 0; bit < 8; bit++) {
            file[i] ^= (unsigned char)(1 << bit);
            ck_assert_msg(cache_binary_find(file, bytes, KEY, &found) == NULL,
                          "bit %d of byte %zu", bit, i);
            ck_assert_uint_eq(found, 0);
            file[i] ^= (unsigned char)(1 << bit);
        }
    ck_assert(cache_binary_find(file, bytes, KEY, &found) != NULL);
}

TEST(truncation_is_detected)
{
    unsigned char file[2048] = {0};
    size_t bytes = file_fill(file), found;
    for (size_t i = 0; i < bytes; i++) {
        /* An exact allocation, so that sanitizers detect reads past its end. */
        unsigned char *part = malloc(i > 0 ? i : 1);
        ck_assert(part != NULL);
        memcpy(part, file, i);
        ck_assert(cache_binary_find(part, i, KEY, &found) == NULL);
        free(part);
    }
    ck_assert(cache_binary_find(file, bytes + 1, KEY, &found) == NULL);
    ck_assert(cache_binary_find(file, bytes, KEY "!", &found) == NULL);
    ck_assert(cache_binary_find(file, bytes, "", &found) == NULL);
}

TEST(names_are_told)
{
    char name[CACHE_NAME_BYTES], other[CACHE_NAME_BYTES];
    cache_name_make(name, KEY);
    cache_name_make(other, KEY "!");
    ck_assert(strcmp(name, other) != 0);
    ck_assert(cache_name_is_valid(name));
    strcpy(other, name);
    other[0] = 'x';
    ck_assert(!cache_name_is_valid(other));
    ck_assert(!cache_name_is_valid(""));
    ck_assert(!cache_name_is_valid("cpu-x-0123456789abcdef.json"));
}

/* ---- the cache of a device ---- */

TEST(cache_is_kept)
{
    struct stat status;
    compute(directory);
    program_count = visit_files(directory, NULL);
    ck_assert_int_ge(program_count, 1);
    ck_assert(stat(directory, &status) == 0);
    ck_assert_int_eq(status.st_mode & 0777, 0700);
    ck_assert(stat(single_file(), &status) == 0);
    ck_assert_int_eq(status.st_mode & 0777, 0600);
    compute(directory);
    single_file();
    ck_assert_int_eq(warnings, 0);
}

/*
 * Checks that a damaged file causes a warning and is replaced by a valid one.
 */
static void expect_repaired(const char *harm)
{
    warnings = 0;
    compute(directory);
    ck_assert_msg(warnings >= 1, "%s: no warning", harm);
    warnings = 0;
    compute(directory);
    ck_assert_msg(warnings == 0, "%s, later: %s", harm, last_warning);
    single_file();
}

/* Returns true if the name of the device's platform contains text. */
static bool platform_is(const char *text)
{
    struct tandem_device_info info = {.struct_size = sizeof(info)};
    OK(backend->device_describe(0, &info));
    return strstr(info.platform, text) != NULL;
}

/* PoCL and rusticl cache compiled programs themselves. */
TEST(drivers_with_their_own_cache_get_no_cache)
{
    if (!platform_is("Portable") && !platform_is("rusticl"))
        return;
    rmdir(directory);
    device_open_with("cache_dir", directory);
    ck_assert(access(directory, F_OK) != 0);
    device_close();
}

/*
 * Files that one process published for all users are used by others, which
 * then write no files of their own. Files that other users could have changed
 * are ignored.
 */
TEST(system_cache_is_used)
{
    char system[4096 + 8];
    const char *const fill[] = {"cache_dir",
                                system,
                                "cache_world_readable",
                                "1",
                                "test.force_program_cache",
                                "1",
                                NULL};
    const char *const use[] = {"cache_dir",
                               directory,
                               "system_cache_dir",
                               system,
                               "test.force_program_cache",
                               "1",
                               NULL};
    const mode_t before = umask(077);
    struct stat status;
    snprintf(system, sizeof(system), "%s.all", directory);
    visit_files(system, entry_remove);
    rmdir(system);
    compute_with(fill, TANDEM_OP_EXP, 1.0f);
    umask(before);
    ck_assert_int_eq(visit_files(system, one_note), program_count);
    ck_assert(stat(system, &status) == 0);
    ck_assert_int_eq(status.st_mode & 0777, 0755);
    ck_assert(stat(one_path, &status) == 0);
    ck_assert_int_eq(status.st_mode & 0777, 0644);
    compute_with(use, TANDEM_OP_EXP, 1.0f);
    ck_assert_int_eq(visit_files(directory, NULL), 0);
    ck_assert_msg(warnings == 0, "%s", last_warning);
    ck_assert(chmod(system, 0777) == 0);
    compute_with(use, TANDEM_OP_EXP, 1.0f);
    ck_assert_msg(strstr(last_warning, "can be written by others") != NULL,
                  "%s", last_warning);
    ck_assert_int_eq(visit_files(directory, entry_remove), program_count);
    ck_assert(chmod(system, 0755) == 0);
    visit_files(system, one_note);
    ck_assert(chmod(one_path, 0666) == 0);
    compute_with(use, TANDEM_OP_EXP, 1.0f);
    ck_assert_int_ge(visit_files(directory, NULL), 1);
    visit_files(system, entry_remove);
    rmdir(system);
}

/* Binaries of PoCL are published, those of rusticl are not. */
TEST(published_files_depend_on_the_driver)
{
    const char *const pairs[] = {"cache_dir", directory, "cache_world_readable",
                                 "1", NULL};
    compute_with(pairs, TANDEM_OP_EXP, 1.0f);
    if (platform_is("rusticl"))
        ck_assert_int_eq(visit_files(directory, NULL), 0);
    if (platform_is("Portable"))
        ck_assert_int_eq(visit_files(directory, NULL), program_count);
}

TEST(damaged_files_are_rebuilt)
{
    compute(directory);
    const char *path = single_file();
    ck_assert(truncate(path, 0) == 0);
    expect_repaired("empty");
    ck_assert(truncate(path, 100) == 0);
    expect_repaired("cut in the key");
    size_t bytes;
    unsigned char *data = bytes_read(path, &bytes);
    const size_t places[] = {0, offsetof(struct cache_header, binary_bytes),
                             sizeof(struct cache_header) + 50, bytes - 1};
    bytes_write(path, data, bytes - 1);
    expect_repaired("cut by a byte");
    for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++) {
        data[places[i]] ^= 1;
        bytes_write(path, data, bytes);
        expect_repaired("a flipped bit");
        data[places[i]] ^= 1;
    }
    free(data);
}

/*
 * Tests files that another driver would have left under this name, including a
 * driver with the same name and version.
 */
TEST(other_drivers_files_are_rebuilt)
{
    static const char other[] = "not a binary of this driver's at all";
    struct cache_header header;
    size_t bytes;
    compute(directory);
    const char *path = single_file();
    unsigned char *data = bytes_read(path, &bytes);
    memcpy(&header, data, sizeof(header));
    unsigned char *key = data + sizeof(header);
    key[header.key_bytes - 1] ^= 1; /* The version of the platform. */
    bytes_write(path, data, bytes);
    expect_repaired("another driver's key");
    key[header.key_bytes - 1] ^= 1;
    /*
     * rusticl crashes when it loads an unknown binary, so it has no cache
     * unless a test enables one.
     */
    if (platform_is("rusticl")) {
        free(data);
        return;
    }
    char *text = strndup((char *)key, header.key_bytes);
    ck_assert(text != NULL);
    cache_header_make(&header, text, other, sizeof(other));
    memcpy(data, &header, sizeof(header));
    memcpy(key + header.key_bytes, other, sizeof(other));
    bytes_write(path, data, sizeof(header) + header.key_bytes + sizeof(other));
    expect_repaired("another driver's binary");
    free(text);
    free(data);
}

TEST(untrusted_files_are_rebuilt)
{
    char elsewhere[8192];
    compute(directory);
    const char *path = single_file();
    ck_assert(chmod(path, 0666) == 0);
    expect_repaired("a file that others can write");
    snprintf(elsewhere, sizeof(elsewhere), "%s-elsewhere", directory);
    ck_assert(rename(path, elsewhere) == 0 && symlink(elsewhere, path) == 0);
    expect_repaired("a link");
    ck_assert(unlink(elsewhere) == 0);
    ck_assert(unlink(path) == 0 && mkfifo(path, 0600) == 0);
    expect_repaired("a pipe");
    if (geteuid() == 0) {
        ck_assert(chown(path, STRANGER, STRANGER) == 0);
        expect_repaired("another user's file");
    }
    /* A directory cannot be replaced by a file, and nothing is lost. */
    ck_assert(unlink(path) == 0 && mkdir(path, 0700) == 0);
    compute(directory);
    ck_assert_int_eq(warnings, 2);
    ck_assert_ptr_nonnull(strstr(last_warning, "is not cached"));
}

TEST(untrusted_directories_are_not_used)
{
    char below[8192];
    ck_assert(chmod(directory, 0777) == 0);
    compute(directory);
    ck_assert_int_eq(visit_files(directory, NULL), 0);
    ck_assert_int_eq(warnings, 1);
    snprintf(below, sizeof(below), "%s/below", directory);
    compute(below);
    ck_assert(access(below, F_OK) != 0);
    ck_assert_int_eq(warnings, 2);
    /* A sticky bit is enough for parent directories only. */
    ck_assert(chmod(directory, 01777) == 0);
    compute(directory);
    ck_assert_int_eq(warnings, 3);
    compute("relative");
    ck_assert_int_eq(warnings, 4);
    ck_assert(access("relative", F_OK) != 0);
    if (geteuid() == 0) {
        cache_new();
        ck_assert(chown(directory, STRANGER, STRANGER) == 0);
        compute(directory);
        ck_assert_int_eq(warnings, 1);
        ck_assert_int_eq(visit_files(directory, NULL), 0);
    }
}

/* The total size of the files that visit has seen. */
static uint64_t visited_bytes;

static void bytes_visit(const char *path)
{
    struct stat status;
    if (stat(path, &status) == 0)
        visited_bytes += (uint64_t)status.st_size;
}

static uint64_t cache_bytes(void)
{
    visited_bytes = 0;
    visit_files(directory, bytes_visit);
    return visited_bytes;
}

static void age_set(const char *path, time_t seconds)
{
    struct timespec times[2] = {{.tv_sec = time(NULL) - seconds},
                                {.tv_sec = time(NULL) - seconds}};
    ck_assert(utimensat(AT_FDCWD, path, times, AT_SYMLINK_NOFOLLOW) == 0);
}

static void age_by_a_day(const char *path)
{
    age_set(path, 86400);
}

#define OLD_FILES 40
#define OLD_FILE_BYTES (1 << 20)

/*
 * Returns the name of a file from an earlier program. The larger age is older.
 */
static const char *old_file_path(int age)
{
    static char path[8192];
    snprintf(path, sizeof(path), "%s/%032x.clbin", directory, age * 7919);
    return path;
}

static void old_file_write(int age)
{
    bytes_write(old_file_path(age), "old", 3);
    ck_assert(truncate(old_file_path(age), OLD_FILE_BYTES) ==
              0); /* A sparse file. */
    age_set(old_file_path(age), 7200 + 60 * age);
}

/*
 * Recently used files remain, and so do files that do not belong to the cache.
 */
TEST(limit_evicts_the_oldest)
{
    char cap[32], path[8192];
    compute(directory);
    snprintf(path, sizeof(path), "%s/own.json", directory);
    bytes_write(path, "{}", 2);
    visit_files(directory, age_by_a_day);
    for (int i = 0; i < OLD_FILES; i++)
        old_file_write(i * 11 % OLD_FILES); /* Created in random order. */
    compute(directory);                     /* Used now. */
    snprintf(cap, sizeof(cap), "%llu",
             (unsigned long long)cache_bytes() - 10 * OLD_FILE_BYTES);
    compute_op(directory, cap, TANDEM_OP_TANH, 0.0f);
    ck_assert_uint_le(cache_bytes(), strtoull(cap, NULL, 10) + 2);
    for (int i = 0; i < OLD_FILES; i++)
        ck_assert_msg((access(old_file_path(i), F_OK) == 0) ==
                          (i < OLD_FILES - 11),
                      "age %d", i);
    ck_assert(access(path, F_OK) == 0);
    ck_assert_int_eq(visit_files(directory, NULL),
                     OLD_FILES - 11 + 2 * program_count + 1);
    compute_op(directory, "10", TANDEM_OP_COS, 1.0f); /* No file fits. */
    ck_assert_int_eq(visit_files(directory, NULL),
                     OLD_FILES - 11 + 2 * program_count + 1);
    ck_assert_int_eq(warnings, 0);
}

/* Removes a partial file of a killed writer, but not that of a running one. */
TEST(partial_files_are_removed)
{
    char dead[8192], living[8192];
    snprintf(dead, sizeof(dead), "%s/0.clbin.1-1.part", directory);
    snprintf(living, sizeof(living), "%s/0.clbin.1-2.part", directory);
    bytes_write(dead, "dead", 4);
    bytes_write(living, "living", 6);
    age_set(dead, 7200);
    compute(directory);
    ck_assert(access(dead, F_OK) != 0);
    ck_assert(access(living, F_OK) == 0);
    ck_assert_int_eq(visit_files(directory, NULL), program_count + 1);
    ck_assert_int_eq(warnings, 0);
}

/*
 * Tests a full disk and a read-only one if this process may mount. Every
 * system has a directory that accepts no files.
 */
TEST(unwritable_disks)
{
    compute("/sys/kernel");
    ck_assert_int_eq(warnings, program_count);
    if (geteuid() != 0 || unshare(CLONE_NEWNS) != 0 ||
        mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) != 0 ||
        mount("tmpfs", directory, "tmpfs", 0, "mode=700,size=4k") != 0)
        return;
    compute(directory);
    ck_assert_int_eq(warnings, 2 * program_count);
    ck_assert_ptr_nonnull(strstr(last_warning, "is not cached"));
    ck_assert_int_eq(visit_files(directory, NULL), 0);
    ck_assert(mount(NULL, directory, NULL, MS_REMOUNT, "size=64m") == 0);
    compute(directory);
    ck_assert(mount(NULL, directory, NULL, MS_REMOUNT | MS_RDONLY, NULL) == 0);
    compute(directory); /* Reading still works. */
    ck_assert_int_eq(warnings, 2 * program_count);
    compute_op(directory, NULL, TANDEM_OP_SIN, 0.0f);
    ck_assert_int_eq(warnings, 3 * program_count);
    ck_assert_int_eq(visit_files(directory, NULL), program_count);
    ck_assert(umount(directory) == 0);
}

TEST(concurrent_processes_share_the_cache)
{
    pid_t child[4];
    for (int i = 0; i < 4; i++)
        child[i] = process_start("/proc/self/exe", "compute");
    for (int i = 0; i < 4; i++)
        ck_assert_int_eq(process_end(child[i]), 0);
    single_file();
    compute(directory);
    ck_assert_int_eq(warnings, 0);
}

/* Runs in the children of concurrent_processes_share_the_cache. */
START_TEST(compute_once)
{
    compute(directory);
}
END_TEST

int main(int argc, char **argv)
{
    const int status = plugin_start();
    (void)argv;
    if (status != 0)
        return status;
    char *here = getcwd(NULL, 0);
    snprintf(directory, sizeof(directory), "%s/test-cache-opencl",
             here != NULL ? here : "");
    free(here);
    Suite *suite = suite_create("cache");
    TCase *tests = tcase_create("cache");
    suite_add_tcase(suite, tests);
    if (argc > 1) {
        setenv("CK_VERBOSITY", "silent", 1);
        tcase_add_test(tests, compute_once);
        return runner_run(suite, CK_NOFORK);
    }
    tcase_add_checked_fixture(tests, cache_new, NULL);
    tests_add(tests);
    int result = runner_run(suite, CK_NOFORK);
    visit_files(directory, entry_remove);
    rmdir(directory);
    return result;
}
