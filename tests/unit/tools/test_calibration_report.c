/* SPDX-License-Identifier: Apache-2.0 */
/* The tables that cl-probe --calibrate prints at its end. */
#include <config.h>

#include "../../../tools/cl-probe/calibration_report.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../../support/scratch_directory.h"
#include "../../support/test_list.h"

static char text[8192]; /* what the last report printed */

/* Prints the report of the results, JSON in which ' stands for ", to `text`. */
static void report(const char *results)
{
    char copy[4096];
    json_error_t error;
    json_t *value;
    const int before = dup(STDOUT_FILENO);
    int file;
    ssize_t bytes;

    snprintf(copy, sizeof copy, "%s", results);
    for (char *c = copy; *c != '\0'; c++)
        *c = *c == '\'' ? '"' : *c;
    value = json_loads(copy, 0, &error);
    ck_assert_msg(value != NULL, "%s: %s", error.text, copy);
    fflush(stdout);
    file = open(scratch_path("out"), O_RDWR | O_CREAT | O_TRUNC, 0600);
    ck_assert_int_ge(dup2(file, STDOUT_FILENO), 0);
    summary_print(value);
    fflush(stdout);
    dup2(before, STDOUT_FILENO);
    bytes = pread(file, text, sizeof text - 1, 0);
    ck_assert_int_ge(bytes, 0);
    text[bytes] = '\0';
    close(file);
    close(before);
    json_decref(value);
}

static void setup(void)
{
    scratch_create();
    setenv("COLUMNS", "1000", 1);
}

/* Checks the cells of the device's row in the last table that has it. */
static void expect_row(const char *cells)
{
    const char *row = strstr(text, "faster than cpu");
    char words[200] = "";

    ck_assert_ptr_nonnull(row);
    row = strstr(row, "\n  opencl ");
    ck_assert_msg(row != NULL, "%s", text);
    /* Separates the cells by single spaces. */
    for (row += strlen("\n  "); *row != '\n'; row++)
        if (*row != ' ' || row[-1] != ' ')
            strncat(words, row, 1);
    ck_assert_str_eq(words, cells);
}

#define RESULTS(cpu, opencl)                                                   \
    "[{'device': 'cpu', 'seconds': 1, 'profile': 'p', 'written': true, " cpu   \
    "}, {'device': 'opencl', 'seconds': 1, 'profile': 'q', 'written':"         \
    " true, " opencl "}]"

TEST(sizes_from_which_a_device_is_faster)
{
    report(RESULTS("'curves': {'elementwise': [[1200, 100], [120000, 10000]]},"
                   "'gemm': [[64, 64, 64, 100], [2048, 2048, 2048, 9000]]",
                   "'curves': {'elementwise': [[1200, 10], [12000, 20]],"
                   " 'upload': [[800, 5000], [8000, 5000]],"
                   " 'download': [[400, 5000], [4000, 5000]]},"
                   "'gemm': [[64, 64, 64, 900], [1024, 1024, 1024, 9000]]"));
    /* Up to the smaller one of the largest measured sizes. */
    expect_row("opencl from 100 not up to 1000 not up to 1024");
    report(RESULTS("'curves': {'elementwise': [[1200, 100]]}",
                   "'curves': {'elementwise': [[1.2e7, 200], [2.4e7, 9e9]]}"));
    expect_row("opencl not up to 100 not up to 100 -");
    report(RESULTS("'curves': {'elementwise': [[1200, 100], [2.4e7, 2e6]]}",
                   "'curves': {'elementwise': [[1200, 200], [2.4e7, 2e9]]}"));
    expect_row("opencl not up to 2e+06 not up to 2e+06 -");
}

TEST(selected_kernels)
{
    report(RESULTS("'tuning': {}",
                   "'tuning': {'gemm.selected.f32': '256 clblast'}"));
    ck_assert_ptr_nonnull(strstr(text, "  products of f32: 256 clblast\n"));
}

TEST_MAIN(tests_run_with("calibration-report", setup, scratch_remove))
