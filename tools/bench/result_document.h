/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The result of a run as JSON, and what is made of one: tables, a plot, a
 * comparison.  Single-threaded.
 *
 *   {"schema": "tandem-bench 2",
 *    "version": of Tandem, "date": of the start, UTC, ISO 8601,
 *    "machine": {"processor", "cpus", "system"},
 *    "devices": [{"device": "opencl", "name", "platform", "driver", "scale",
 *                 "skipped_rows": rows too large for the scale, "seconds" in
 * all, "suite_seconds": {suite: seconds}}], "samples": asked for, "seed": of
 * the suite placement, "open_options": {key: value that devices were opened
 * with}, "rows": [ROW]}
 *
 * A ROW has "device", "suite", "name" (together one of a kind), "op", "mode",
 * "detail", "shape", and "status":
 *   "measured"  "unit", "work_amount" (bytes or operations; absent: the figure
 * is the time), "implementations": [{"name", "ns" (median), "iqr_ratio"
 *               (between the quartiles, over the median), "samples"}], the
 *               first Tandem's; "upper_bound": the name of the side that stands
 * for what can be had; "error": {side: {"componentwise", "max_relative"}}
 *   "scalar"    "unit", "value"
 *   "unavailable" "reason": why there is nothing to measure
 *   "failed"    "reason"
 * pytorch_baseline.py adds sides ("PyTorch CUDA", "PyTorch CPU") and errors,
 * and "pytorch": {"version", "device", "tf32"} beside the rows.
 */
#ifndef TANDEM_BENCH_RESULT_DOCUMENT_H
#define TANDEM_BENCH_RESULT_DOCUMENT_H

#include "open_options.h"

#include <jansson.h>

#include <stdbool.h>
#include <stdio.h>

#define DOCUMENT_SCHEMA "tandem-bench 2"

/* Of this machine and moment, without devices and rows. */
json_t *document_create(uint32_t samples, uint64_t seed,
                        const struct open_options *open_options);
/* NULL, having complained, where it is no such document. */
json_t *document_read(const char *path);
/* One row a line, so that versions of it can be compared. */
void document_write(const json_t *document, FILE *out);

enum document_format {
    FORMAT_TEXT,
    FORMAT_JSON,
    FORMAT_MARKDOWN,
    FORMAT_SVG,
    FORMATS
};
extern const char *const format_names[FORMATS];
/* Tables, as text or as Markdown. */
void tables_print(const json_t *document, bool markdown, FILE *out);
/* The fraction of the limit of each row, by device and suite. */
void plot_print(const json_t *document, FILE *out);

/* Prints the rows whose times differ by more than the spread of both results,
 * and the rows that only the earlier result has.  Returns the number of rows
 * that became slower; *out_common is the number of rows that both have. */
size_t document_compare(const json_t *earlier, const json_t *now, FILE *out,
                        size_t *out_common);

/* ---- rows ---- */

/* "" or 0 where there is none. */
const char *row_text(const json_t *row, const char *key);
double row_number(const json_t *row, const char *key);
/* NULL where there is no side of the name; NULL as name: Tandem's. */
const json_t *row_implementation(const json_t *row, const char *name);
/* The limit's time over ours; 0 where the row has none. */
double row_upper_bound_fraction(const json_t *row);
/* The side's time in the row's unit, into room for 32 bytes. */
char *row_result_text(char *out, const json_t *row,
                      const json_t *implementation);

#endif
