/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Running the suites on the devices.  Single-threaded.
 */
#ifndef TANDEM_BENCH_SUITE_RUNNER_H
#define TANDEM_BENCH_SUITE_RUNNER_H

#include "bench.h"

#define ANY_DEVICE_NAME "any" /* the library's choice */

struct selection {
    const char *device; /* NULL: all */
    const char *only;   /* rows whose name has this; NULL: all */
    int scale;          /* enum scale; -1: as the device is */
    bool suites[SUITE_COUNT];
    bool any_suite; /* one was named */
};

/* Adds the rows selected (of this suite alone, where it is not NULL) to a list
 * that has its scale.  Ends with list_destroy. */
void selection_list(const struct selection *selection,
                    const struct suite *suite, struct list *list);

/* Measures what is selected on each device, into document: its devices and
 * rows.  false where there is no such device, having complained. */
bool run_selection(struct bench *bench, const struct selection *selection,
                   json_t *document);

#endif
