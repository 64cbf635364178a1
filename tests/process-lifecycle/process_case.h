/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A program that uses the library in one process of each kind:
 *
 *     process-case DEVICE STEP[=ARGUMENT]...
 *
 * runs the steps in order and then returns from main, unless a step ends the
 * process. The tables of steps are at the end of each source file. The exit
 * status is 0 only if every result was correct. Call the functions from one
 * thread unless they say otherwise.
 */
#ifndef TANDEM_TESTS_PROCESS_CASE_H
#define TANDEM_TESTS_PROCESS_CASE_H

#include <sched.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include <tandem/host.h>

/* Prints an error and ends the process with status 3. Any thread may call it.
 */
void process_fail(const char *format, ...)
    __attribute__((format(printf, 1, 2), noreturn));
#define MUST(condition)                                                        \
    do {                                                                       \
        if (!(condition))                                                      \
            process_fail("%s:%d: %s: %s", __FILE__, __LINE__, #condition,      \
                         tandem_last_error());                                 \
    } while (0)
#define OK(call) MUST((call) == TANDEM_OK)

/* ---- a client of the library ---- */

#define CLIENT_ELEMENTS 1024

struct client {
    struct tandem_context *context;
    uint32_t device; /* The tested device. */
    float x[CLIENT_ELEMENTS], y[CLIENT_ELEMENTS];
    struct tandem_tensor *tx, *ty;
};

/* The argument DEVICE. */
extern const char *device_name;
/* The client of most steps. It exists after main returns. */
extern struct client client;
/* Warnings of the library are printed to stderr. */
extern bool prints_warnings;

/* Each thread may use a client of its own. */

/* Creates a context, finds the device, and wraps tensors over x and y. */
void client_open(struct client *own);
/* Enqueues y = -x on the device without waiting. */
void client_start(struct client *own);
/* Reads y and checks it. */
void client_read(struct client *own);
/* Runs an element-wise operator and a reduction, and checks the results. */
void client_work_without_gemm(struct client *own);
/* Runs a GEMM, too. */
void client_work(struct client *own);
void client_close(struct client *own);

/* ---- steps ---- */

/* A step has one of the functions. */
struct step {
    const char *name;
    void (*run)(void);
    void (*run_client)(struct client *own);
};
/* The argument of the current step, or NULL. */
extern const char *step_argument;
/* Tables that end with NULL. */
extern const struct step device_steps[], end_steps[], fork_steps[],
    profile_steps[], signal_steps[], state_steps[];

/* Runs steps. The program's module is loaded to call it. */
void steps_run(const char *device, char **steps);

/* ---- threads of the process ---- */

#define MAX_THREADS 512

struct thread {
    char name[16];
    uint64_t blocked; /* Bit n - 1 is set if signal n is blocked. */
    cpu_set_t processors;
};
/* Lists all threads except the calling one and those that end meanwhile. */
uint32_t threads_read(struct thread out[MAX_THREADS]);

/* Uses the OpenCL driver without the library. NULL in builds without OpenCL. */
void driver_use(void) __attribute__((weak));

#endif
