/* SPDX-License-Identifier: Apache-2.0 */
/* Tables and sentences that fit in the terminal. */
#include <config.h>

#include "../../../tools/common/progress_bar.h"
#include "../../../tools/common/text_table.h"
#include "../../../tools/common/text_wrap.h"

#include <stdlib.h>
#include <unistd.h>

#include "../../support/test_list.h"

static char *written;

static void setup(void)
{
    unsetenv("COLUMNS");
}

static void teardown(void)
{
    free(written);
    written = NULL;
}

/* Prints the table into written and destroys the table. */
static void print(struct table *table)
{
    size_t bytes;
    FILE *out = open_memstream(&written, &bytes);

    ck_assert_ptr_nonnull(out);
    table_print(table, out);
    fclose(out);
    table_destroy(table);
}

static void row(struct table *table, const char *const *cells, size_t count)
{
    table_row(table);
    for (size_t i = 0; i < count; i++)
        table_cell(table, "%s", cells[i]);
}
#define ROW(table, ...)                                                        \
    row(table, (const char *const[]){__VA_ARGS__},                             \
        sizeof((const char *const[]){__VA_ARGS__}) / sizeof(char *))

static void wrap(const char *text, size_t start, size_t indent, size_t columns)
{
    size_t bytes;
    FILE *out = open_memstream(&written, &bytes);

    text_wrap(out, text, start, indent, columns);
    fclose(out);
}

TEST(test_short_rows_are_one_line)
{
    struct table table = {0};

    ROW(&table, "device", "up", "down");
    ROW(&table, "cpu", "1.5 GB/s", "2 GB/s");
    ROW(&table, "opencl", "-", "1 B/s");
    print(&table);
    ck_assert_str_eq(written, "  device        up    down\n"
                              "  cpu     1.5 GB/s  2 GB/s\n"
                              "  opencl         -   1 B/s\n");
}

TEST(test_wide_rows_are_names_and_values)
{
    struct table table = {0};

    setenv("COLUMNS", "25", 1);
    ROW(&table, "device", "up", "against", "down");
    ROW(&table, "cpu", "1.5 GB/s", "", "2 GB/s");
    ROW(&table, "opencl", "-");
    table_row(&table);
    table_cell(&table, "opencl:1");
    table_text(&table, "blocked: it failed");
    print(&table);
    ck_assert_str_eq(written, "  cpu\n"
                              "      up       1.5 GB/s\n"
                              "      down     2 GB/s\n"
                              "  opencl\n"
                              "      up       -\n"
                              "  opencl:1\n"
                              "      blocked: it failed\n");
}

TEST(test_characters_are_not_bytes)
{
    struct table table = {0};

    ROW(&table, "a", "1");
    ROW(&table, "\303\244\342\202\254", "\303\274");
    print(&table);
    ck_assert_str_eq(written, "  a   1\n"
                              "  \303\244\342\202\254  \303\274\n");
    teardown();
    wrap("\303\244\303\244 \303\274\303\274 x", 0, 1, 5);
    ck_assert_str_eq(written, "\303\244\303\244 \303\274\303\274\n x\n");
}

TEST(test_sentences)
{
    struct table table = {0};

    setenv("COLUMNS", "50", 1);
    ROW(&table, "cpu", "1 us");
    table_row(&table);
    table_cell(&table, "opencl");
    table_text(&table, "%s",
               "wrong, and told in more words than there is room");
    table_row(&table);
    table_cell(&table, "short");
    table_text(&table, "ok");
    print(&table);
    ck_assert_str_eq(written,
                     "  cpu     1 us\n"
                     "  opencl  wrong, and told in more words than there\n"
                     "          is room\n"
                     "  short   ok\n");
    teardown();
    /* Too little room is left next to the path. */
    table_row(&table);
    table_cell(&table, "/etc/OpenCL/vendors/a.icd");
    table_text(&table, "/usr/lib/x86_64-linux-gnu/libdriver.so: 1 device");
    print(&table);
    ck_assert_str_eq(written,
                     "  /etc/OpenCL/vendors/a.icd\n"
                     "      /usr/lib/x86_64-linux-gnu/libdriver.so: 1\n"
                     "      device\n");
}

TEST(test_wrapping)
{
    wrap("", 4, 4, 20);
    ck_assert_str_eq(written, "\n");
    teardown();
    wrap("one two three", 4, 2, 11);
    ck_assert_str_eq(written, "one two\n  three\n");
    teardown();
    wrap("  12345678901234567890  x  ", 0, 2, 10);
    ck_assert_str_eq(written, "12345678901234567890\n  x\n");
}

TEST(test_columns)
{
    static const char *const none[] = {
        "", "0", "19", "-5", "80x", "1e3", "99999999999999999999"};
    FILE *out = fopen("/dev/null", "w");

    ck_assert_ptr_nonnull(out);
    ck_assert_uint_eq(output_columns(out), 80);
    for (size_t i = 0; i < sizeof none / sizeof none[0]; i++) {
        setenv("COLUMNS", none[i], 1);
        ck_assert_uint_eq(output_columns(out), 80);
    }
    setenv("COLUMNS", "132", 1);
    ck_assert_uint_eq(output_columns(out), 132);
    fclose(out);
}

static const char *bar(size_t columns, double fraction, double left_s,
                       const char *step)
{
    static char text[128];

    progress_text(text, sizeof text, columns, "opencl", fraction, left_s, step);
    return text;
}

TEST(test_progress_bar_fits_the_terminal)
{
    ck_assert_str_eq(
        bar(80, 0.5, 12.4, "gemm"),
        "opencl     [###############...............]  50% gemm, 12 "
        "s left");
    ck_assert_str_eq(bar(80, 0.1, -1, "gemm"),
                     "opencl     [###...........................]  10% gemm");
    ck_assert_str_eq(bar(50, 0.1, 300, "gemm"),
                     "opencl     [#.............]  10% gemm, 5 min left");
    for (size_t columns = 20; columns < 100; columns++) {
        const char *text = bar(columns, 0.99, 1e5, "a step with a long name");

        ck_assert_uint_lt(strlen(text), columns);
        ck_assert_ptr_nonnull(strchr(text, ']'));
    }
}

/* Calls progress_tick, and copies what it prints to standard error to
 * `written`. */
static void tick(struct progress *progress)
{
    const int error = dup(STDERR_FILENO);
    FILE *file = tmpfile();

    ck_assert_ptr_nonnull(file);
    dup2(fileno(file), STDERR_FILENO);
    progress_tick(progress);
    dup2(error, STDERR_FILENO);
    close(error);
    rewind(file);
    written = calloc(1, 256);
    ck_assert_uint_gt(fread(written, 1, 255, file), 0);
    fclose(file);
}

TEST(test_progress_stays_below_100_percent)
{
    struct progress progress;

    progress_begin(&progress, "cpu", false);
    progress.terminal = true;
    progress.fraction = 1.5;
    memcpy(progress.step, "writing", sizeof "writing");
    tick(&progress);
    ck_assert_ptr_nonnull(strstr(written, " 99% writing"));
    teardown();
    /* The expected time is over. */
    progress.expected_ns = 1;
    tick(&progress);
    ck_assert_ptr_nonnull(strstr(written, " 99% finishing\033[K"));
    teardown();
    progress.expected_ns = UINT64_C(3600) * 1000000000;
    tick(&progress);
    ck_assert_ptr_nonnull(strstr(written, "  0% writing, 60 min left\033[K"));
}

TEST_MAIN(tests_run_with("table", setup, teardown))
