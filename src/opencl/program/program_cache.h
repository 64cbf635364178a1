/* SPDX-License-Identifier: Apache-2.0 */
/* Compiled programs on disk.  Any thread, any number of processes. */
#ifndef TANDEM_OPENCL_PROGRAM_PROGRAM_CACHE_H
#define TANDEM_OPENCL_PROGRAM_PROGRAM_CACHE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "opencl/device/cl_api.h"
#include "opencl/program/variant_options.h"

struct tandem_device;

/* What a device knows of it. */
struct cache {
    char *path;         /* NULL: no disk cache */
    char *system_path;  /* all users'; NULL: none */
    int directory;      /* open where path is set and can be trusted */
    int system;         /* likewise; only read */
    uint64_t limit_bytes; /* of all programs in it */
    bool forced;        /* even where the driver's own cache serves better */
    bool shared;        /* what is written is for all users */
    uint32_t turn_ms;   /* so long others' turns are waited for */
    atomic_bool late;   /* once it was in vain: no longer */
};

#define DEFAULT_CACHE_LIMIT_BYTES ((uint64_t)256 << 20)
/* Many processes compile a kernel each before one comes again. */
#define DEFAULT_COMPILE_LOCK_TIMEOUT_MS 60000u

/* No directory, and the system's where it is when nobody says otherwise. */
void program_cache_init(struct cache *cache);
/* Opens the directories.  path is made (mode 0700; 0755 for all users) where
 * it is missing.  What cannot be trusted is told and left alone. */
void program_cache_open(struct tandem_device *device);
void program_cache_close(struct tandem_device *device);

/* A built program, or NULL where the disk has none that works. */
cl_program program_cache_load(struct tandem_device *device,
                              const struct variant_text *text);
/* Where one process at a time is to compile and to ask for binaries: until
 * compile_lock_release, others with the same path do not.  -1: none is needed,
 * or there was none in turn_ms.  *out_waited: others had theirs meanwhile, and
 * may have stored programs. */
int compile_lock_acquire(struct tandem_device *device, bool *out_waited);
void compile_lock_release(int turn);
/* Whether with that turn a program's binary may be asked for. */
bool compile_lock_permits_binary(const struct tandem_device *device, int turn);
/* Keeps program for the next process; failures are logged and harmless. */
void program_cache_store(struct tandem_device *device,
                         const struct variant_text *text, cl_program program);
/* The program's binary for its one device, of at most so many bytes, which the
 * caller frees; or NULL. */
unsigned char *cache_binary_fetch(cl_program program, size_t most,
                                  size_t *out_bytes);

#endif
