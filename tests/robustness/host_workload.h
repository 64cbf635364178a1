/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A program that uses all of libtandem and checks every result, for tests in
 * which calls fail. Each section frees what it has created.
 *
 * Call it from one thread.
 */
#ifndef TANDEM_TESTS_HOST_WORKLOAD_H
#define TANDEM_TESTS_HOST_WORKLOAD_H

#include <stdbool.h>
#include <tandem/host.h>

struct host_workload {
    struct tandem_context *context;
    uint32_t device; /* A device, or TANDEM_ANY_DEVICE. */
    uint32_t cpu;    /* The CPU plugin's device. */
};

/*
 * Runs all sections. Returns the number of those that failed. `large` is the
 * number of elements of a large tensor, at most LARGE_ELEMENTS.
 */
#define LARGE_ELEMENTS (1200u << 10)
uint32_t host_sections_run(struct host_workload *work, uint32_t large);

/* ---- functions that the test defines ---- */

/* Called before and after each call of libtandem. */
void host_call_begin(void);
void host_call_end(void);
/*
 * Records what a call returned. Returns true if it succeeded. Sets *out_again
 * if the caller must repeat the call. attempt: the number of calls before.
 */
bool host_call_succeeded(enum tandem_status status, const char *call,
                         int attempt, bool *out_again);
/* Records that the result of a call is not what it must be. */
void host_violation(const char *what);
/* Waits for the work of the context. */
bool host_synchronize(struct host_workload *work);

/* Makes a call, and again if the test says so. True if it succeeded. */
#define HOST_TRY(call)                                                         \
    __extension__({                                                            \
        bool again_ = true, succeeded_ = false;                                \
        for (int attempt_ = 0; again_; attempt_++) {                           \
            host_call_begin();                                                 \
            const enum tandem_status status_ = (call);                         \
            host_call_end();                                                   \
            succeeded_ =                                                       \
                host_call_succeeded(status_, #call, attempt_, &again_);        \
        }                                                                      \
        succeeded_;                                                            \
    })

#endif
