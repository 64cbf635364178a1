/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One device and one stream of the plugin under the OpenCL layer, for tests of
 * single faults with libcheck.
 *
 * Call it from one thread.
 */
#ifndef TANDEM_TESTS_LAYER_SINGLE_H
#define TANDEM_TESTS_LAYER_SINGLE_H

#include <stdlib.h>

#include "support/test_list.h"
#include "plugin_under_layer.h"
#include "opencl_workload.h"

/* The number of elements of each buffer. */
#define N 256

extern struct plug plug;
extern struct workload work; /* Contains the device and the stream. */

/* Fails the test unless the call returns this status. */
#define RETURNS(expected, call)                                                \
    do {                                                                       \
        const enum tandem_status status_ = (call);                             \
        ck_assert_msg(status_ == (expected), "%s: %d, not %d: %s", #call,      \
                      (int)status_, (int)(expected), plug.api->last_error());  \
    } while (0)
#define OK(call) RETURNS(TANDEM_OK, call)

/* Opens a device with pairs of keys and values up to NULL, and a stream. */
void device_open(const char *const *pairs);
/* Opens a device without a cache on disk and with one more key, or NULL. */
void device_new(const char *key, const char *value);
/*
 * Ends the script, closes the device, and checks that no object is left that
 * was created since device_open.
 */
void device_end(void);
/* Checks that no object is left that was created since device_open. */
void expect_no_object_left(void);
/*
 * Opens and closes devices until no more objects exist than `start` counts: a
 * device that was closed while its commands ran is freed by a later open or
 * close.
 */
void expect_freed_later(const struct layer_counts *start);
/* Returns true if the object counts are those before device_open. */
bool is_context_released(void);
/* Lets all later calls of the function with this text fail. */
void script(enum layer_fault fault, const char *function, const char *text,
            int code);
/* Lets `times` calls of the function fail, from the nth one on. */
void script_nth(enum layer_fault fault, const char *function, uint64_t nth,
                uint64_t times, int code);
/* Returns the number of calls of an OpenCL function since the script was set.
 */
uint64_t calls_of(const char *function);
/* Returns a buffer that contains 1, 2, 3, ... */
struct tandem_buffer *ramp_new(void);
enum tandem_status unary(uint32_t id, struct tandem_buffer *buffer);
/* Prepares the operator over N elements, which starts to compile it. */
enum tandem_status prepare(uint32_t id);
/* Like prepare, and returns NOT_READY if the operator is not compiled yet. */
enum tandem_status poll_ready(uint32_t id);
/* Calls poll_ready until it no longer returns NOT_READY. */
enum tandem_status ready_wait(uint32_t id);
enum tandem_status synchronize(void);
/* Checks that the last message contains text. */
void expect_message(const char *text);
/*
 * Runs this program in a child process in which the device reports to be a GPU
 * that shares the host's memory, because devices are listed only once. If
 * discrete is true, also runs it in a child process in which the GPU has its
 * own memory. Returns the exit status of the first child that fails. Does
 * nothing in a child. Call it before OpenCL is used.
 */
int single_as_gpu(bool discrete);
/*
 * Runs the tests of this source file, with teardown after each, which may be
 * NULL. Returns main's result, which is 77 if there is no OpenCL device.
 */
static inline int single_run(const char *name, SFun teardown)
{
    setenv("TANDEM_LAYER_OBJECT_CACHE", "1", 0);
    return plug_start(&plug) ? tests_run_without_fork(name, NULL, teardown)
                             : 77;
}

#endif
