/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Profile files: a file that is missing, truncated, invalid, malicious or
 * untrusted leads to a warning and default costs. If a file cannot be written,
 * the old one remains complete.
 */
#include <config.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "support/failing_writes.h"
#include "support.h"

#define STRANGER 12345
/* The size limit of profile files. */
#define MAX_FILE_BYTES (1 << 20)

/* ---- invalid files ---- */

static const char *const invalid_files[] = {
    "",
    "{",
    "not JSON at all",
    "[]",
    "null",
    "3",
    "{}",
    "\xff\xfe{\"format\": 2}",
    "{\"format\": 1}",
    "{\"format\": \"1\"}",
    "{\"format\": 2, \"curves\": 5}",
    "{\"format\": 2} trailing",
    "{\"format\": 2, \"device\": []}",
};

/* Invalid parts in an otherwise valid file. */
static const char *const invalid_parts[] = {
    "\"curves\": {\"transcendental\": [[1, -5], [2, -6]]}",
    "\"curves\": {\"transcendental\": [[-1, 5], [2, 6]]}",
    "\"curves\": {\"transcendental\": [[1e999, 5]]}",
    "\"curves\": {\"transcendental\": [[1, 1e200], [2, 1e201]]}",
    "\"curves\": {\"transcendental\": [[1]]}",
    "\"curves\": {\"transcendental\": [[1, 2, 3]]}",
    "\"curves\": {\"transcendental\": [1, 2]}",
    "\"curves\": {\"transcendental\": {\"1\": 2}}",
    "\"curves\": {\"transcendental\": [[\"1\", \"2\"]]}",
    "\"curves\": {\"transcendental\": \"fast\"}",
    "\"curves\": []",
    "\"scalars\": {\"launch\": -1}",
    "\"scalars\": {\"launch\": \"soon\"}",
    "\"scalars\": {\"launch\": 1e300}",
    "\"scalars\": {\"launch\": NaN}",
    "\"scalars\": {\"launch\": Infinity}",
    "\"scalars\": {\"launch\": -Infinity}",
    "\"scalars\": {\"launch\": nan}",
    "\"scalars\": {\"launch\": -1e-300}",
    "\"scalars\": {\"launch\": 99999999999999999999999999}",
    "\"scalars\": {\"launch\": true}",
    "\"scalars\": {\"launch\": [5]}",
    "\"scalars\": {\"launch\": 5, \"launch\": 6}",
    "\"scalars\": null",
    "\"curves\": {\"transcendental\": []}",
    "\"curves\": {\"transcendental\": [[1, 4]], \"transcendental\": [[1, 5]]}",
    "\"tuning\": {\"a\": 1}",
    "\"tuning\": [\"a\"]",
    "\"tuning\": \"a\"",
    "\"notes\": {\"a\": 1}",
    "\"notes\": [\"a\"]",
    "\"scalars\": [1]",
    "\"gemm\": [[1, 1, 1, -1]]",
    "\"gemm\": [[0, 1, 1, 1]]",
    "\"gemm\": [[1, 1, 1]]",
    "\"gemm\": [[1, 1, 1, 5, 5]]",
    "\"gemm\": [[1, 1, 1, 5], [2, 2, 2, 5, \"a\"]]",
    "\"gemm\": {\"m\": 1}",
    "\"gemm\": [[9e18, 9e18, 9e18, 1]]",
    /* Bytes that are no text, and a NUL. */
    "\"curves\": {\"transcendental\": [[1, 4]]}, \"x\": \"\xff\"",
    "\"curves\": {\"transcendental\": [[1, 4]]}, \"x\": \"\xed\xa0\x80\"",
    "\"curves\": {\"transcendental\": [[1, 4]]}, \"\xc0\x80\": 1",
    "\"curves\": {\"transcendental\": [[1, 4]]}, \"x\": \"\\u0000\"",
    "\"curves\": {\"transcendental\": [[1, 4]]}, \"x\": \"\\ud800\"",
    "\"curves\": {\"transcendental\": [[1, 4]]}, \"exp\\u0000\": 1",
};

static double default_exp, default_upload;

static void defaults_read(void)
{
    struct tandem_context *context = context_new(NULL);
    const uint32_t simulated = device_named(context, "simulated");

    default_exp = cost(context, simulated, "transcendental", 1e6);
    default_upload = cost(context, simulated, "upload", 1e6);
    tandem_context_destroy(context);
}

static bool at_defaults(struct tandem_context *context)
{
    const uint32_t simulated = device_named(context, "simulated");

    return calibrated(context, simulated) == 0 &&
           fabs(cost(context, simulated, "transcendental", 1e6) - default_exp) <
               1e-9 &&
           fabs(cost(context, simulated, "upload", 1e6) - default_upload) <
               1e-9;
}

/*
 * Checks that the predictions are the defaults, that a warning contains
 * reason, and that the context works.
 */
static void expect_defaults(const char *reason)
{
    struct tandem_context *context;

    log_forget();
    context = context_new(NULL);
    ck_assert(at_defaults(context));
    context_works(context);
    ck_assert_msg(log_count(TANDEM_LOG_WARNING, reason) > 0,
                  "no warning says \"%s\"", reason);
    tandem_context_destroy(context);
}

/* A saved value that differs from the default. */
#define SAVED_NS 5
static const char *good_save(void)
{
    struct script script = script_free();

    script_all(&script, SAVED_NS, 0);
    script_save("simulated", &script);
    return script_path("simulated");
}

static void expect_saved_profile(void)
{
    struct tandem_context *context = context_new(NULL);

    ck_assert_double_eq_tol(cost(context, device_named(context, "simulated"),
                                 "transcendental", 1e6),
                            SAVED_NS, 1e-9);
    tandem_context_destroy(context);
}

LOOP_TEST(test_invalid_files, CASES_IN(invalid_files))
{
    file_write(good_save(), invalid_files[_i]);
    expect_defaults("");
}

static void text_write(const char *path, const char *text, size_t bytes)
{
    FILE *file = fopen(path, "w");

    ck_assert_ptr_nonnull(file);
    ck_assert_uint_eq(fwrite(text, 1, bytes, file), bytes);
    ck_assert_int_eq(fclose(file), 0);
}

/* Writes a profile with the device's identity and one section, and returns its
 * path. */
static const char *part_write(const char *replacement)
{
    const char *path = good_save();
    char *text = file_read(path), *device = strstr(text, "\"device\""), *out;

    ck_assert_ptr_nonnull(device);
    ck_assert_int_gt(asprintf(&out, "{\"format\": 2, %.*s}, %s}",
                              (int)strcspn(device, "}"), device, replacement),
                     0);
    file_write(path, out);
    free(out);
    free(text);
    return path;
}

/* A file with one curve, truncated after each of its bytes. */
TEST(test_truncated_files)
{
    const char *path =
        part_write("\"curves\": {\"transcendental\": [[1, 4], [3, 8]]}");
    char *text = file_read(path);

    for (size_t i = 0; i < strlen(text); i++) {
        text_write(path, text, i);
        expect_defaults("profile ignored");
    }
    free(text);
}

LOOP_TEST(test_invalid_parts, CASES_IN(invalid_parts))
{
    part_write(invalid_parts[_i]);
    expect_defaults("profile ignored");
}

/* Checks the method of the tests above: a valid part is accepted. */
TEST(test_a_valid_part_is_accepted)
{
    struct tandem_context *context;

    part_write("\"curves\": {\"transcendental\": [[1, 4], [3, 8]]}");
    context = context_new(NULL);
    ck_assert_double_eq_tol(
        cost(context, device_named(context, "simulated"), "transcendental", 2),
        6, 1e-9);
    ck_assert_uint_eq(calibrated(context, device_named(context, "simulated")),
                      1);
}

/* Deeply nested brackets of both kinds. */
LOOP_TEST(test_deeply_nested_files, 3)
{
    static const char *const openings[] = {"[", "{\"a\":", "[{\"a\":"};
    const char *opening = openings[_i];
    const size_t length = strlen(opening);
    char *text = malloc(MAX_FILE_BYTES / 2);

    ck_assert_ptr_nonnull(text);
    for (size_t i = 0; i < MAX_FILE_BYTES / 2; i++)
        text[i] = opening[i % length];
    text_write(good_save(), text, MAX_FILE_BYTES / 2);
    expect_defaults("profile ignored");
    free(text);
}

/* A NUL byte after complete JSON does not hide the rest of the file. */
TEST(test_an_embedded_zero)
{
    const char *path =
        part_write("\"curves\": {\"transcendental\": [[1, 4], [3, 8]]}");
    char *text = file_read(path);

    text_write(path, text, strlen(text) + 1);
    expect_defaults("profile ignored");
    free(text);
}

/* A file of the maximum size, padded with spaces, and one byte more. */
TEST(test_the_largest_file)
{
    const char *path;
    char *text, *padded = malloc(MAX_FILE_BYTES + 1);

    ck_assert_ptr_nonnull(padded);
    path = good_save();
    text = file_read(path);
    memset(padded, ' ', MAX_FILE_BYTES + 1);
    memcpy(padded, text, strlen(text));
    text_write(path, padded, MAX_FILE_BYTES);
    expect_saved_profile();
    text_write(path, padded, MAX_FILE_BYTES + 1);
    expect_defaults("larger than 1048576 bytes");
    ck_assert_int_eq(truncate(path, 1L << 40), 0); /* A sparse file. */
    expect_defaults("larger than 1048576 bytes");
    free(text);
    free(padded);
}

/* test-secure-file has further cases. */
TEST(test_files_that_are_not_trusted)
{
    const char *path = good_save();

    ck_assert_int_eq(chmod(path, 0666), 0);
    expect_defaults("can be written by others");
    ck_assert_int_eq(chmod(path, 0600), 0);
    ck_assert_int_eq(chmod(scratch_path("profiles"), 0777), 0);
    expect_defaults("/profiles can be written by others");
    ck_assert_int_eq(chmod(scratch_path("profiles"), 01777), 0);
    expect_saved_profile();
    if (geteuid() == 0) {
        ck_assert_int_eq(chown(path, STRANGER, STRANGER), 0);
        expect_defaults("belongs to another user");
        ck_assert_int_eq(chown(path, 0, 0), 0);
    }
    ck_assert_int_eq(rename(path, scratch_path("moved")), 0);
    ck_assert_int_eq(symlink(scratch_path("moved"), path), 0);
    expect_defaults("it is a link");
    ck_assert_int_eq(unlink(path), 0);
    ck_assert_int_eq(mkfifo(path, 0600), 0);
    expect_defaults("no regular file");
}

TEST(test_relative_directories)
{
    struct tandem_context_options options = {.struct_size = sizeof options};
    struct tandem_context *context;
    char path[4096];

    ck_assert_int_eq(chdir(scratch_path(".")), 0);
    setenv("TANDEM_PLUGIN_PATH", scratch_path("plugins"), 1);
    setenv("TANDEM_PROFILE_DIR", "profiles", 1); /* test-context: warnings */
    setenv("XDG_CACHE_HOME", "cache", 1);
    OK(tandem_context_create(&options, &context));
    /* HOME contains an absolute path. */
    OK(tandem_profile_save(profile_new(context, "simulated"), NULL, path,
                           sizeof path));
    ck_assert_ptr_nonnull(
        strstr(path, scratch_path(".cache/tandem/simulated")));
    ck_assert_int_eq(unlink(path), 0);
    tandem_context_destroy(context);
}

/* The file has this device's name but describes another device. */
TEST(test_another_devices_file)
{
    static const char *const keys[] = {
        "\"uuid\"", "\"pci\"",     "\"plugin_version\"", "\"host_cpu\"",
        "\"name\"", "\"backend\"", "\"driver\""};
    const char *path;
    char *text;

    path = good_save();
    text = file_read(path);
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
        char *value = strstr(strstr(text, "\"device\""), keys[i]), *other;

        ck_assert_ptr_nonnull(value);
        value = strchr(strchr(value, ':'), '"') + 1;
        other = malloc(strlen(text) + 2);
        ck_assert_ptr_nonnull(other);
        sprintf(other, "%.*s~%s", (int)(value - text), text, value);
        file_write(path, other);
        expect_defaults("was measured on another device");
        free(other);
    }
    free(text);
}

/* ---- files that cannot be written ---- */

/* A power failure must not leave a file name without content. */
TEST(test_a_profile_is_on_the_disk_before_its_name)
{
    const struct writes_seen before = writes_seen();
    struct writes_seen after;

    good_save();
    after = writes_seen();
    ck_assert_uint_ge(after.files, before.files + 1);
    ck_assert_uint_eq(after.unsynced, before.unsynced);
    ck_assert_uint_ge(after.directories, before.directories + 1);
}

/*
 * Several programs edit the same profile and save one after another. Each
 * change of another part is preserved. A new calibration replaces all earlier
 * costs, but preserves the blocked operators.
 */
TEST(test_writers_keep_what_others_wrote)
{
    struct tandem_context *context;
    struct tandem_profile *costs, *tuning, *blocklist, *fresh;
    char path[4096], *text;
    uint32_t device;

    good_save();
    context = context_new(NULL);
    costs = profile_edit(context, "simulated");
    tuning = profile_edit(context, "simulated");
    blocklist = profile_edit(context, "simulated");
    fresh = profile_new(context, "simulated");
    OK(tandem_profile_set_scalar(costs, "sync", 321));
    OK(tandem_profile_set_tuning(tuning, "one", "1"));
    OK(tandem_profile_set_tuning(blocklist, "two", "2"));
    OK(tandem_profile_set_op_blocked(blocklist, TANDEM_OP_NEG, 1));
    OK(tandem_profile_save(costs, NULL, NULL, 0));
    OK(tandem_profile_save(tuning, NULL, NULL, 0));
    OK(tandem_profile_save(blocklist, NULL, NULL, 0));
    /* Saves again with further changes, and unblocks an operator. */
    OK(tandem_profile_set_tuning(tuning, "one", "11"));
    OK(tandem_profile_set_op_blocked(blocklist, TANDEM_OP_ABS, 1));
    OK(tandem_profile_set_op_blocked(blocklist, TANDEM_OP_NEG, 0));
    OK(tandem_profile_save(blocklist, NULL, NULL, 0));
    OK(tandem_profile_save(tuning, NULL, path, sizeof path));
    context = context_new(NULL);
    device = device_named(context, "simulated");
    text = file_read(path);
    ck_assert_double_eq(cost(context, device, "sync", 0), 321);
    ck_assert_ptr_nonnull(strstr(text, "\"one\": \"11\""));
    ck_assert_ptr_nonnull(strstr(text, "\"two\": \"2\""));
    ck_assert(op_is_blocked(context, device, TANDEM_OP_ABS));
    ck_assert(!op_is_blocked(context, device, TANDEM_OP_NEG));
    free(text);
    OK(tandem_profile_set_scalar(fresh, "launch", 123));
    OK(tandem_profile_save(fresh, NULL, path, sizeof path));
    context = context_new(NULL);
    text = file_read(path);
    ck_assert_double_eq(cost(context, device, "launch", 0), 123);
    ck_assert_ptr_null(strstr(text, "\"sync\""));
    ck_assert(op_is_blocked(context, device, TANDEM_OP_ABS));
    free(text);
}

/* A profile is not saved where it would not be read. */
TEST(test_writable_directories_are_not_used)
{
    struct tandem_context *context = context_new(NULL);
    struct tandem_profile *profile = profile_new(context, "simulated");

    good_save();
    ck_assert_int_eq(chmod(scratch_path("profiles"), 0777), 0);
    FAILS(TANDEM_FAILED, tandem_profile_save(profile, NULL, NULL, 0));
    expect_last_error("can be written by others");
    ck_assert_int_eq(chmod(scratch_path("profiles"), 0700), 0);
    BAD(tandem_profile_save(profile, "relative", NULL, 0));
    if (geteuid() == 0) {
        ck_assert_int_eq(chmod(scratch_path("."), 0755), 0);
        ck_assert_int_eq(chmod(scratch_path("profiles"), 0755), 0);
        ck_assert_int_eq(seteuid(STRANGER), 0);
        FAILS(TANDEM_FAILED, tandem_profile_save(profile, NULL, NULL, 0));
        ck_assert_int_eq(seteuid(0), 0);
    }
    expect_saved_profile();
}

/* Files over the size limit are not written. */
TEST(test_profiles_over_the_size_limit)
{
    struct tandem_context *context = context_new(NULL);
    struct tandem_profile *profile = profile_new(context, "simulated");
    char key[32], value[4001];

    good_save();
    memset(value, 'x', sizeof value - 1);
    value[sizeof value - 1] = '\0';
    for (int i = 0; i < 300; i++) {
        snprintf(key, sizeof key, "key%d", i);
        OK(tandem_profile_set_tuning(profile, key, value));
    }
    BAD(tandem_profile_save(profile, NULL, NULL, 0));
    expect_saved_profile();
}

TEST_MAIN(host_tests_run("profile files", defaults_read, NULL))
