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

#define SKIPPED 77

/* The plugin of the build directory, set by plugin_load. */
extern const struct tandem_backend *backend;

/* Returns NULL with a line on stderr if the plugin cannot be loaded. */
const struct tandem_backend *plugin_load(void);
/*
 * Loads the plugin. Returns 0, or main's result if there is no plugin or no
 * device.
 */
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
void expect_ok(enum tandem_status status, const char *what);

/*
 * Starts the program again with this argument, because OpenCL does not survive
 * a fork.
 */
pid_t process_start(const char *self, const char *what);
/* Returns the exit status of the child, or -1. */
int process_end(pid_t child);

#endif
