/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sweeps of faults over something that uses OpenCL: for each call that it
 * makes, and each error that the function may return, one case.  A test says
 * what a case is; here is which there are, what is counted before and after,
 * and the program's arguments:
 *
 * By default a subset that CONFORMANCE_SEED picks; TANDEM_TEST_LONG=1: all,
 * but for failures that last, which have one code for each call.  With an
 * argument, that sweep alone (or "all"); "case FAULT NTH PICK TIMES
 * [FUNCTION]" (FAULT a number of enum layer_fault): that case alone.  One
 * process: OpenCL does not survive a fork.
 */
#ifndef TANDEM_TESTS_LAYER_SWEEP_H
#define TANDEM_TESTS_LAYER_SWEEP_H

#include "plugin_under_layer.h"

struct sweep_subject {
    const char *name;
    /* Under the script, with checks that end in sweep_report. */
    void (*one_case)(const struct layer_script *script);
    /* Without a check, and without another script: once from open to close. */
    void (*pass)(void);
    /* What else is known when a case fails; or NULL. */
    void (*details)(void);
    /* How many cases make check takes: of calls that fail once, for ever, as
     * they run, and of memory that is not there. */
    uint64_t once, ever, later, lazy;
};

extern struct plug plug;
/* A cache directory for the subject, empty at first. */
extern char sweep_cache[4096];

/* A case failed. */
void sweep_report(const char *what);
/* Ends the script. */
void sweep_fault_ends(void);
/* Which case this is, from 1. */
uint64_t sweep_case(void);

/* What is alive, to be compared when a case is over. */
struct sweep_state {
    struct layer_counts counts;
    uint64_t blocks, bytes;
};
struct sweep_state sweep_state_take(void);
/* Whether queues are left that nobody releases: those of work that a lost
 * device may still do, given back when another one is opened. */
bool sweep_queues_left(const struct sweep_state *before);
/* heap: the heap as well. */
void sweep_state_check(const struct sweep_state *before, bool heap);

/* The program: 77 where there is no OpenCL.  heap_watch was called for
 * libraries other than the plugin. */
int sweep_main(int argc, char **argv, const struct sweep_subject *subject);

#endif
