/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The result of a run as JSON, and what is made of one: tables, a plot, a
 * comparison.  Single-threaded.
 *
 *   {"schema": "tandem-bench 1",
 *    "version": of Tandem, "date": of the start, UTC, ISO 8601,
 *    "machine": {"processor", "cpus", "system"},
 *    "devices": [{"device": "opencl", "name", "platform", "driver", "scale",
 *                 "left_out": rows too large for the scale, "seconds" in all,
 *                 "suite_seconds": {suite: seconds}}],
 *    "samples": asked for, "seed": of the suite choice,
 *    "options": {key: value that devices were opened with},
 *    "rows": [ROW]}
 *
 * A ROW has "device", "suite", "name" (together one of a kind), "op", "mode",
 * "detail", "shape", and "status":
 *   "measured"  "unit", "work" (bytes or operations; absent: the figure is
 *               the time), "sides": [{"name", "ns" (median), "spread"
 *               (between the quartiles, over the median), "samples"}], the
 *               first Tandem's; "limit": the name of the side that stands for
 *               what can be had; "error": {side: {"entrywise", "of_largest"}}
 *   "figure"    "unit", "value"
 *   "absent"    "reason": why there is nothing to measure
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

#define DOCUMENT_SCHEMA "tandem-bench 1"

/* Of this machine and moment, without devices and rows. */
json_t *document_create(uint32_t samples, uint64_t seed,
                        const struct opening *opening);
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
void document_print(const json_t *document, enum document_format format,
                    FILE *out);
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
const json_t *row_side(const json_t *row, const char *name);
/* The limit's time over ours; 0 where the row has none. */
double row_fraction(const json_t *row);
/* The side's time in the row's unit, into room for 32 bytes. */
char *row_figure(char *out, const json_t *row, const json_t *side);

#endif
