/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs the cases of a suite in several processes. Each worker process opens the
 * plugin, goes through all cases in the same order and runs those that it
 * claims. The parent process never loads the plugin. It prints what the workers
 * report in the order of the cases, as a single process would. Each process
 * calls these functions from its main thread.
 */
#ifndef TANDEM_CONFORMANCE_WORKERS_H
#define TANDEM_CONFORMANCE_WORKERS_H

#include "options.h"

#include <stdatomic.h>

#define MAX_JOBS 1024u

/* Shared by all processes. */
struct claims {
    _Atomic uint64_t next; /* The first case that is not claimed. */
    _Atomic uint32_t jobs;
};

/* A worker process claims consecutive cases, because these often share kernels,
 * which it then compiles only once. */
struct worker {
    struct claims *claims;
    uint64_t begin, end; /* The cases that this worker claimed last. */
    uint64_t cases;      /* The number of cases that case_begin has selected. */
    bool is_first;       /* Prints the header, and the warnings of open. */
};

/* ---- in a worker ---- */

/* Counts a case that is selected. Returns true if this worker must run it. */
bool worker_claims_case(const struct suite *suite);
/* Tells the parent that the plugin is open. The parent starts other workers
 * until there are `jobs`, unless the command line has another number. */
void worker_report_open(uint32_t jobs);
/* `result` is "passed", "failed" or "skipped". Ends the output of the case. */
void worker_report_case(const struct suite *suite, const char *result);
/* Tells the parent that all cases were considered. */
void worker_report_end(const struct suite *suite);

/* ---- in the parent ---- */

/* Returns the number of cases for which one process is enough. */
uint64_t worker_min_cases(const struct suite_options *options);

/*
 * Calls `work` in each of up to options->jobs workers. If that is 0, the first
 * worker reports the number. Adds the counts to the suite, whose `cases` must
 * be set. Returns true if all workers considered all cases; *out_code is then
 * the first exit status of a worker that is not 0, or 0. If a worker ends
 * early, stops all workers, prints the output that exists and returns false
 * with the exit status. If a worker crashes, ends this process by the same
 * signal.
 */
bool workers_run(struct suite *suite,
                 enum exit_code (*work)(struct suite *suite),
                 enum exit_code *out_code);

#endif
