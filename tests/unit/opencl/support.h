/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Functions that the tests of the OpenCL plugin share. Call them from one
 * thread.
 */
#ifndef TANDEM_TESTS_OPENCL_SUPPORT_H
#define TANDEM_TESTS_OPENCL_SUPPORT_H

#include <sys/types.h>

#include <tandem/backend.h>

#include "support/test_list.h"
#include "../../../tools/common/tensor_call.h"

#define SKIPPED 77

/* The plugin of the build directory, set by plugin_load. */
extern const struct tandem_backend *backend;

/* Returns NULL with a line on stderr if the plugin cannot be loaded. */
const struct tandem_backend *plugin_load(void);
/* Loads the plugin. Returns 0, or main's result if there is no device. */
int plugin_start(void);
/*
 * Runs the tests of this source file on the plugin, with setup before and
 * teardown after each test. Both may be NULL. Returns main's result.
 */
static inline int opencl_tests_run(const char *name, SFun setup, SFun teardown)
{
    const int status = plugin_start();

    return status != 0 ? status : tests_run_without_fork(name, setup, teardown);
}
/* Fails the test with the plugin's message unless the status is TANDEM_OK. */
void expect_ok(enum tandem_status status, const char *what);
#define OK(call) expect_ok(call, #call)

/* The device of a test and a stream. device_close closes both. */
extern struct tandem_device *device;
extern struct tandem_stream *stream;
/*
 * Opens the first device with pairs of keys and values that end with NULL, and
 * creates the stream. log may be NULL.
 */
void device_open(const char *const *pairs, tandem_log_fn log);
/* Opens the device with one key. */
void device_open_with(const char *key, const char *value);
void device_close(void);
struct tandem_stream *stream_new(void);
struct tandem_buffer *buffer_new(uint64_t bytes);
/* Transfer the first bytes of a buffer, and wait for a download. */
void buffer_write(struct tandem_buffer *buffer, const void *data,
                  uint64_t bytes);
void buffer_read(struct tandem_buffer *buffer, void *data, uint64_t bytes);
void stream_wait(struct tandem_stream *waited);
struct tandem_memory_stats memory_stats(void);
/* Returns c = a b for contiguous matrices of f32. */
struct tandem_gemm gemm_of(int64_t m, int64_t n, int64_t k,
                           struct tandem_buffer *a, struct tandem_buffer *b,
                           struct tandem_buffer *c);

/* Starts the program again, because OpenCL does not survive a fork. */
pid_t process_start(const char *self, const char *what);
/* Returns the exit status of the child, or -1. */
int process_end(pid_t child);

#endif
