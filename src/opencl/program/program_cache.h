/* SPDX-License-Identifier: Apache-2.0 */
/* The disk cache of compiled programs.  Several threads and processes can use
 * the same directory. */
#ifndef TANDEM_OPENCL_PROGRAM_PROGRAM_CACHE_H
#define TANDEM_OPENCL_PROGRAM_PROGRAM_CACHE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "opencl/device/cl_api.h"
#include "opencl/plan/kernel_info.h"

struct tandem_device;

/* The program cache of one device, which owns the paths.  A directory whose
 * path is NULL is not used. */
struct program_cache {
    char *path;           /* the user's directory */
    char *system_path;    /* the directory that all users share */
    int directory;        /* file descriptor of `path`; -1 means not used */
    int system;           /* descriptor of `system_path`; -1 means not used */
    uint64_t limit_bytes; /* maximum total size of the files in `path` */
    bool is_forced;       /* use `path` even if the driver's cache is better */
    bool world_readable;  /* all users can read the cache */
    uint32_t compile_lock_timeout_ms;
    /* True if a wait for the compile lock has timed out.  Subsequent builds do
     * not wait for the lock. */
    atomic_bool compile_lock_timed_out;
};

#define DEFAULT_CACHE_LIMIT_BYTES ((uint64_t)256 << 20)
/* Long enough for many processes to compile a kernel one after the other. */
#define DEFAULT_COMPILE_LOCK_TIMEOUT_MS 60000u

/* Sets the default options.  By default, there is no user directory. */
void program_cache_init(struct program_cache *cache);
/* Opens the cache directories.  Creates `path` with mode 0700, or 0755 if
 * world_readable is set.  If other users can write to a directory, logs a
 * warning and does not use the directory. */
void program_cache_open(struct tandem_device *device);
void program_cache_close(struct tandem_device *device);

/* Returns a program built from a cached binary, or NULL if no cache directory
 * has a valid file for the program. */
cl_program program_cache_load(struct tandem_device *device,
                              const struct kernel_source *text);
/* Writes the program's binary to the user's cache directory.  Logs failures. */
void program_cache_store(struct tandem_device *device,
                         const struct kernel_source *text, cl_program program);
/* Builds a program from a binary.  Returns an OpenCL error code.  If the driver
 * rejects the binary, sets *out_program to NULL. */
cl_int program_from_binary(struct tandem_device *device, const void *binary,
                           size_t bytes, const char *options,
                           cl_program *out_program);
/* Returns the binary of a built program.  The caller frees the binary.  Returns
 * NULL if the binary cannot be read or is larger than max_bytes. */
unsigned char *program_binary_get(cl_program program, size_t max_bytes,
                                  size_t *out_bytes);

/* Locks the directory of the program cache if the driver has QUIRK_BINARY_RACE.
 * Blocks for at most cache.compile_lock_timeout_ms.  Returns a lock for
 * lock_release(), or -1 if no lock is needed or the lock was not acquired.
 * Sets *out_waited if another process held the lock: that process can have
 * stored the program in the cache.
 *
 * To return a program's binary, PoCL 3.1 reads a directory of its own cache.
 * Without the lock, another process can move this directory first.  Up to 15 of
 * 64 processes that started with empty caches then crashed. */
int compile_lock_acquire(struct tandem_device *device, bool *out_waited);

#endif
