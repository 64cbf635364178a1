/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Result of a run as JSON, and its output as tables, plot or comparison.
 * Single-threaded.  Members of the document:
 *
 *   schema        "tandem-bench 2"
 *   version       of Tandem
 *   date          start of the run, ISO 8601, UTC
 *   machine       {processor, cpus, system}
 *   devices       [{device, name, platform, driver, scale, skipped_rows,
 *                 seconds, suite_seconds: {SUITE: seconds}}]; skipped_rows is
 *                 the number of rows that are too large for the scale
 *   samples       number of rounds asked for
 *   seed          of the suite placement
 *   open_options  {KEY: VALUE} that devices were opened with
 *   rows          [ROW]
 *   pytorch       {version, device, tf32}, added by pytorch_baseline.py
 *
 * Members of a row; device, suite and name together are unique:
 *
 *   device, suite, name, op, mode, detail, shape
 *   status        "measured", "scalar", "unavailable" or "failed"
 *   unit          of the result; scalars also have value
 *   reason        why the row is unavailable or failed
 *   work_amount   bytes or operations; absent if the result is a time
 *   implementations  [{name, ns, iqr_ratio, samples}], Tandem first: the median
 *                 time, and the distance of the quartiles divided by it.
 *                 pytorch_baseline.py adds "PyTorch CUDA" and "PyTorch CPU".
 *   upper_bound   name of the implementation at the hardware limit
 *   error         {NAME: {componentwise, max_relative}} of implementations
 */
#ifndef TANDEM_BENCH_RESULT_DOCUMENT_H
#define TANDEM_BENCH_RESULT_DOCUMENT_H

#include "open_options.h"

#include <jansson.h>

#include <stdbool.h>
#include <stdio.h>

#define DOCUMENT_SCHEMA "tandem-bench 2"

/* Returns a document with this machine and the current time, without devices
 * and rows. */
json_t *document_create(uint32_t samples, uint64_t seed,
                        const struct open_options *open_options);
/* Reads a document.  If the file is invalid, prints a message and returns NULL.
 */
json_t *document_read(const char *path);
/* Writes one row per line, so that line-based tools can compare documents. */
void document_write(const json_t *document, FILE *out);

enum document_format {
    FORMAT_TEXT,
    FORMAT_JSON,
    FORMAT_MARKDOWN,
    FORMAT_SVG,
    FORMATS
};
extern const char *const format_names[FORMATS];
/* Prints tables as text or as Markdown. */
void tables_print(const json_t *document, bool markdown, FILE *out);
/* Plots the fraction of the upper bound that each row reaches, by device and
 * suite. */
void plot_print(const json_t *document, FILE *out);

/* Prints the rows whose times differ by more than the spread of both results,
 * and the rows that only the earlier result has.  Returns the number of rows
 * that became slower; *out_common is the number of rows that both have. */
size_t document_compare(const json_t *earlier, const json_t *now, FILE *out,
                        size_t *out_common);

/* ---- rows ---- */

/* Return a member of the row, or "" or 0 if it is absent. */
const char *row_text(const json_t *row, const char *key);
double row_number(const json_t *row, const char *key);
/* Returns the implementation `name`, or Tandem's if `name` is NULL.  Returns
 * NULL if the row has no such implementation. */
const json_t *row_implementation(const json_t *row, const char *name);
/* Returns the time of the upper bound divided by Tandem's, or 0 if the row has
 * no upper bound. */
double row_upper_bound_fraction(const json_t *row);
/* Writes the implementation's result in the row's unit to `out`, which has 32
 * bytes. */
char *row_result_text(char *out, const json_t *row,
                      const json_t *implementation);

#endif
