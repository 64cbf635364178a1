/* SPDX-License-Identifier: Apache-2.0 */
/* The disk cache of compiled programs.  Any thread, any number of processes. */
#ifndef TANDEM_OPENCL_PROGRAM_PROGRAM_CACHE_H
#define TANDEM_OPENCL_PROGRAM_PROGRAM_CACHE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "opencl/device/cl_api.h"
#include "opencl/program/variant_options.h"

struct tandem_device;

/* The cache of one device.  The paths are owned; NULL means no cache. */
struct program_cache {
    char *path;           /* the user's directory */
    char *system_path;    /* the system's directory, for all users */
    int directory;        /* descriptor of `path`, or -1 if it is not used */
    int system;           /* descriptor of `system_path`, or -1 */
    uint64_t limit_bytes; /* maximum size of all files in `path` */
    bool is_forced;       /* used even if the driver's own cache is better */
    bool world_readable;  /* files are written for all users */
    uint32_t compile_lock_timeout_ms;
    /* A wait for the compile lock timed out.  Later calls do not wait. */
    atomic_bool compile_lock_timed_out;
};

#define DEFAULT_CACHE_LIMIT_BYTES ((uint64_t)256 << 20)
/* Long enough for many processes that compile one kernel each. */
#define DEFAULT_COMPILE_LOCK_TIMEOUT_MS 60000u

/* Sets the defaults: no user directory, and the installed system directory. */
void program_cache_init(struct program_cache *cache);
/* Opens the directories.  Creates `path` with mode 0700, or 0755 if it is
 * world_readable.  Logs a warning and ignores a directory that other users can
 * write to. */
void program_cache_open(struct tandem_device *device);
void program_cache_close(struct tandem_device *device);

/* Returns a built program, or NULL if the cache has no valid one. */
cl_program program_cache_load(struct tandem_device *device,
                              const struct variant_text *text);
/* Writes the program's binary to the user's directory.  Failures are logged. */
void program_cache_store(struct tandem_device *device,
                         const struct variant_text *text, cl_program program);
/* Returns the binary of a program with one device.  The caller frees it.
 * Returns NULL if it is larger than max_bytes or cannot be read. */
unsigned char *program_binary_get(cl_program program, size_t max_bytes,
                                  size_t *out_bytes);

#endif
