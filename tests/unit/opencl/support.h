/* SPDX-License-Identifier: Apache-2.0 */
/* What the tests of the OpenCL plugin share.  One thread. */
#ifndef TANDEM_TESTS_OPENCL_SUPPORT_H
#define TANDEM_TESTS_OPENCL_SUPPORT_H

#include <sys/types.h>

#include <tandem/backend.h>

#define SKIPPED 77

/* The plugin of the build directory, once plugin_load was called. */
extern const struct tandem_backend *backend;

/* NULL, and why on stderr, where it cannot be loaded. */
const struct tandem_backend *plugin_load(void);
void expect_ok(enum tandem_status status, const char *what);

/* Each process starts afresh: OpenCL does not survive a fork. */
pid_t process_start(const char *self, const char *what);
/* Its exit status, or -1. */
int process_end(pid_t child);

#endif
