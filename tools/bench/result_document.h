/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The result of a run as JSON.  Single-threaded.  report.py prints it as tables
 * and plots.  Members of the document:
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
 *   placement_points  [{op, shape, data, chosen, devices: [{device,
 *                 predicted_ns, ns}]}] of the suite placement: `data` is "host"
 *                 or the device that holds the inputs; ns excludes the wait
 *   pytorch       {version, device, tf32, cudnn_search}, added by
 *                 pytorch_baseline.py
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
 *                 pytorch_baseline.py adds "PyTorch CUDA" (eager), "PyTorch
 *                 CUDA graph" and "PyTorch CPU".
 *   upper_bound   name of the implementation at the hardware limit
 *   error         {NAME: {componentwise, max_relative}} of implementations
 */
#ifndef TANDEM_BENCH_RESULT_DOCUMENT_H
#define TANDEM_BENCH_RESULT_DOCUMENT_H

#include "bench.h"

/* Returns a document with this machine and the current time, without devices
 * and rows. */
json_t *document_create(const struct bench *bench);
/* Writes one row per line, so that line-based tools can compare documents. */
void document_write(const json_t *document, FILE *out);

#endif
