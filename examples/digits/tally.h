/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Counts what the chooser did, as an observer of its context.  Used by the
 * thread that runs the operators.
 */
#ifndef DIGITS_TALLY_H
#define DIGITS_TALLY_H

#include <stdio.h>
#include <tandem/host.h>

struct tally_cell {
    uint64_t runs;
    double predicted_ns, measured_ns; /* sums over the runs */
};

struct tally {
    struct tally_cell cells[TANDEM_CLASS_END][TANDEM_MAX_DEVICES];
    /* Operators that would have run elsewhere, had their kernel been ready. */
    uint64_t waiting;
};

/* A tandem_observer_fn; user is a struct tally. */
void tally_observe(void *user, const struct tandem_explanation *explanation,
                   bool after);

/* Prints how often each device ran each class of operators, and what one was
 * predicted to take, in runs and in timed, and what it took in timed. */
void tally_print(FILE *out, struct tandem_context *context,
                 const struct tally *runs, const struct tally *timed);

/* Prints to standard output which device ran which operators. */
void tally_summary_print(struct tandem_context *context,
                         const struct tally *runs);

/* Returns true if devices of other backends ran no operator. */
bool tally_has_only(struct tandem_context *context, const struct tally *runs,
                    const char *backend);

#endif
