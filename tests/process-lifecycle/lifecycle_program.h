/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A program that uses the library and ends in each way in which a process can
 * end. It exits with 0 only if every result was correct. Functions are called
 * from one thread unless they say otherwise.
 */
#ifndef TANDEM_TESTS_LIFECYCLE_PROGRAM_H
#define TANDEM_TESTS_LIFECYCLE_PROGRAM_H

#include <stdbool.h>
#include <stdint.h>

#include <tandem/host.h>

#define LIFECYCLE_N 1024

/*
 * Prints an error and ends the process with status 3. Any thread may call it.
 */
void lifecycle_test_fail(const char *format, ...)
    __attribute__((format(printf, 1, 2), noreturn));
#define MUST(condition)                                                        \
    do {                                                                       \
        if (!(condition))                                                      \
            lifecycle_test_fail("%s:%d: %s: %s", __FILE__, __LINE__,           \
                                #condition, tandem_last_error());              \
    } while (0)
#define OK(call) MUST((call) == TANDEM_OK)

struct lifecycle_test {
    struct tandem_context *context;
    uint32_t device; /* The tested device. */
    float x[LIFECYCLE_N], y[LIFECYCLE_N];
    struct tandem_tensor *tx, *ty;
};

/*
 * Creates a context, finds the device of this name, and wraps tensors over x
 * and y. Any thread may call it.
 */
void lifecycle_test_begin(struct lifecycle_test *test, const char *device);
/* Enqueues y = -x on the device without waiting. */
void lifecycle_test_start(struct lifecycle_test *test);
/* Reads y and checks it. */
void lifecycle_test_read(struct lifecycle_test *test);
/*
 * Runs element-wise operators, a reduction and a GEMM, and checks the results.
 */
void lifecycle_test_work_own(struct lifecycle_test *test);
void lifecycle_test_work(struct lifecycle_test *test);
void lifecycle_test_end(struct lifecycle_test *test);

/* A way to use the library and to end the process. Returns the exit status. */
struct lifecycle_mode {
    const char *name;
    int (*run)(const char *device);
};
extern const struct lifecycle_mode end_modes[], fork_modes[], signal_modes[],
    crowd_modes[];

#endif
