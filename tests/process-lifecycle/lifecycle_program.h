/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A program that uses the library, ends in every way that a process can end,
 * and exits with 0 only if every result was right.  One thread, except where a
 * function says otherwise.
 */
#ifndef TANDEM_TESTS_PROCESS_GUEST_H
#define TANDEM_TESTS_PROCESS_GUEST_H

#include <stdbool.h>
#include <stdint.h>

#include <tandem/host.h>

#define GUEST_N 1024

/* Complains and ends the process with status 3, at once.  Any thread. */
void guest_fail(const char *format, ...)
    __attribute__((format(printf, 1, 2), noreturn));
#define MUST(condition)                                                      \
    do {                                                                     \
        if (!(condition))                                                    \
            guest_fail("%s:%d: %s: %s", __FILE__, __LINE__, #condition,      \
                       tandem_last_error());                                 \
    } while (0)
#define OK(call) MUST((call) == TANDEM_OK)

struct guest {
    struct tandem_context *context;
    uint32_t device; /* the one under test */
    float x[GUEST_N], y[GUEST_N];
    struct tandem_tensor *tx, *ty;
};

/* A context, the device of this name, tensors over x and y.  Any thread. */
void guest_begin(struct guest *guest, const char *device);
/* Leaves work under way on the device: y = -x. */
void guest_start(struct guest *guest);
/* Reads it. */
void guest_read(struct guest *guest);
/* Element-wise work and a reduction, checked; and a product. */
void guest_work_own(struct guest *guest);
void guest_work(struct guest *guest);
void guest_end(struct guest *guest);

/* A way to use the library, and to end.  Returns the status for main. */
struct guest_mode {
    const char *name;
    int (*run)(const char *device);
};
extern const struct guest_mode end_modes[], fork_modes[], signal_modes[],
    crowd_modes[];

#endif
