/* SPDX-License-Identifier: Apache-2.0 */
/* Runs the suites on the devices.  Single-threaded. */
#ifndef TANDEM_BENCH_SUITE_RUNNER_H
#define TANDEM_BENCH_SUITE_RUNNER_H

#include "bench.h"

struct selection {
    const char *device; /* name of the only device, or NULL for all; "any" means
                         * the device that the library chooses */
    const char *filter; /* text in the names of the rows, or NULL for all */
    int scale; /* enum scale, or -1 to choose it by the device */
    bool suites[SUITE_COUNT];
    bool any_suite; /* the options name a suite */
};

/* Adds the selected rows to the list, only those of `suite` if it is not NULL.
 * The caller sets list->scale and calls list_destroy. */
void selection_list(const struct selection *selection,
                    const struct suite *suite, struct list *list);

/* [blocks] Measures the selected rows on each device and adds devices and rows
 * to the document.  If there is no such device, prints a message and returns
 * false. */
bool run_selection(struct bench *bench, const struct selection *selection);

#endif
