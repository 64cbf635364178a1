/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fault sweeps over a program that uses OpenCL. A test defines the parts of its
 * program and what a case does. This file enumerates the cases, compares the
 * counts before and after, and reads the program's arguments.
 *
 * A call site is a stack of return addresses in the tested libraries. Calls
 * from the same site run the same code afterwards, so a case is not needed for
 * each of them. The first and the second call from each site in a group of
 * parts fail, because the second one has the results of the first to clean up.
 * When a site is reached for the first time, the call fails with each error
 * that the function may return. Its calls in other groups, and calls that keep
 * failing, take one of the errors in turn.
 *
 * By default, CONFORMANCE_SEED selects a subset of the cases. With
 * TANDEM_TEST_LONG=1 all of them run. "part NAME" as first arguments selects
 * the parts with that text in their name. "case FAULT SITE NTH PICK TIMES" runs
 * that case alone; FAULT is a number of enum layer_fault.
 *
 * All cases run in one process, because OpenCL does not survive a fork.
 */
#ifndef TANDEM_TESTS_LAYER_SWEEP_H
#define TANDEM_TESTS_LAYER_SWEEP_H

#include "plugin_under_layer.h"

struct sweep_subject {
    const char *name;
    /*
     * Selects what one_case and pass run from now on. Returns the name of the
     * part, counted from 0, or NULL after the last one. Parts of the same group
     * run the same code of the plugin.
     */
    const char *(*part_select)(uint64_t part, uint64_t *out_group);
    /* Runs one case under the script. Failed checks call sweep_report. */
    void (*one_case)(const struct layer_script *script);
    /*
     * Runs the part once, without checks, and the same calls under the script
     * as one_case.
     */
    void (*pass)(const struct layer_script *script);
    /*
     * sweep_report prints these texts: the first call of the case that failed,
     * and what was wrong. They are empty if no call failed.
     */
    const char *failed, *wrong;
    /*
     * The number of cases that make check runs for each part: calls that fail
     * once, calls that always fail, commands that fail while they run, and
     * memory that the driver cannot provide at first use.
     */
    uint64_t once, ever, later, lazy;
};

extern struct plug plug;
/* A cache directory for the tested program, empty at first. */
extern char sweep_cache[4096];

/* Returns true if all cases run, false if they are a random subset. */
bool sweep_is_full(void);
/* Returns a random number below the limit, which CONFORMANCE_SEED selects. */
uint64_t sweep_random(uint64_t limit);
/* Reports that the case failed. */
void sweep_report(const char *what);
/* Ends the script. */
void sweep_fault_ends(void);
/* Returns the number of the current case, from 1. */
uint64_t sweep_case(void);

/* Counts of live objects, compared before and after a case. */
struct sweep_state {
    struct layer_counts counts;
    uint64_t blocks, bytes;
};
struct sweep_state sweep_state_take(void);
/*
 * Calls device_open, which opens and closes a device, while queues are still
 * alive. A lost device may still run their work; they are released when another
 * device is opened.
 */
void sweep_queues_wait(const struct sweep_state *before,
                       void (*device_open)(void));
/* heap: also compares the heap. */
void sweep_state_check(const struct sweep_state *before, bool heap);

/*
 * Runs the program. Returns 77 if there is no OpenCL. Call heap_watch before,
 * for libraries other than the plugin.
 */
int sweep_main(int argc, char **argv, const struct sweep_subject *subject);

#endif
