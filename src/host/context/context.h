/* SPDX-License-Identifier: Apache-2.0 */
/* A context holds plugins, devices, tensors and the state of the chooser.
 *
 * A thread that takes several of its locks takes them in this order:
 *
 *   enumeration_mutex  while devices are found
 *   storage->lock      by the address of the storages; while a call uses their
 *                      memory, also while a plugin computes (storage.h)
 *   device->open_mutex while the device is opened
 *   stream->is_used    while a plugin uses the stream (stream.h)
 *   cache stripes      (prepared_cache.h)
 *   device->mutex, context->mutex  for lists and messages; no plugin is called
 *
 * Atomic fields may be read without a lock. */
#ifndef TANDEM_HOST_CONTEXT_CONTEXT_H
#define TANDEM_HOST_CONTEXT_CONTEXT_H

#include "common/fp_environment.h"
#include "common/handle_pool.h"
#include "host/exported_api.h"

#include <pthread.h>
#include <stdatomic.h>

struct device;
struct prepared_cache;
struct storage;

#define MAX_OPEN_OPTIONS 64u

struct log {
    tandem_log_fn function; /* callback of the program, or NULL */
    void *user;
    uint32_t level; /* level of the least severe messages to report */
};

/* An option that the program passes to the open function of every plugin. */
struct open_pair {
    char *key, *value;
};

struct tandem_context {
    struct handle handle;
    uint32_t generation; /* value of fork_generation at creation */
    uint32_t serial;     /* serial number of the context in this process */

    /* The fields up to hang_timeout_ns do not change after creation. */
    struct log log;
    struct tandem_backend *backends; /* "cpu" first */
    uint32_t backend_count;
    bool deterministic;
    char *profile_path; /* directory searched first for profiles, or NULL */
    char *cache_path;   /* the user's cache directory, or NULL */
    bool cache_usable;  /* true if the directory cache_path is writable */
    char *num_threads;  /* thread count for the plugins as text, or NULL */
    char *compile_processes; /* open option of the plugins, or NULL */
    char host_cpu[128];      /* CPU model name */
    struct open_pair *open_pairs;
    uint32_t open_count;
    /* Names of the plugins to load, separated by commas, or NULL for all. */
    char *backends_option;
    const char *backends_setting; /* what set backends_option, for messages */
    uint64_t hang_timeout_ns;     /* or TANDEM_TIMEOUT_INFINITE */

    /* Name of the device that must run all operators, or NULL.  If
     * forced_is_named is set, the device was not yet found by this name. */
    char *forced_name;
    bool forced_by_environment;
    atomic_bool forced_is_named;
    _Atomic uint32_t forced; /* number of the forced device, or ANY_DEVICE */

    pthread_mutex_t enumeration_mutex;
    /* Number of completely enumerated backends. */
    _Atomic uint32_t backends_enumerated;
    uint32_t indices_enumerated; /* devices found so far in the next backend */
    struct device *devices[TANDEM_MAX_DEVICES];
    _Atomic uint32_t device_count;
    /* The next fields are masks, in which bit d stands for device d. */
    _Atomic uint32_t usable;            /* devices that may run operators */
    _Atomic uint32_t zero_copy_devices; /* they compute in host memory */
    _Atomic uint32_t import_devices;    /* they can import host memory */
    /* Devices that have measured costs of each cost class. */
    _Atomic uint32_t calibrated[TANDEM_COST_CLASS_COUNT];
    _Atomic uint32_t default_costs_are_upper_bound;
    _Atomic uint32_t gpus; /* devices of kind TANDEM_DEVICE_GPU */
    /* Devices that must not run an operator. */
    _Atomic uint32_t op_blocked[TANDEM_OP_ID_END];

    _Atomic uint32_t first_thread; /* thread_number of a caller, or 0 */
    atomic_bool is_shared;         /* true if another thread called, too */
    atomic_bool time_operators;
    atomic_bool is_observed;         /* true if `observer` is not NULL */
    _Atomic double predicted_now_ns; /* virtual clock of the chooser, from 0 */
    _Atomic uint64_t tensor_serial;  /* serial number of the newest tensor */
    _Atomic uint64_t rebinds;        /* number of tensors that were rebound */
    struct prepared_cache *prepared_cache;

    pthread_mutex_t mutex; /* guards the fields below */
    tandem_observer_fn observer;
    void *observer_user;
    char **load_errors; /* messages about plugins that could not be used */
    size_t load_error_count;
    /* First asynchronous error that no synchronization has reported yet. */
    enum tandem_status async_error_status;
    char async_error_message[512];
    struct tandem_tensor *tensors; /* linked list */
    struct storage *pending_free;  /* storages that device work may still use */
    uint64_t next_address; /* next artificial storage address; see storage.h */
};

extern struct handle_pool context_pool;

/* Number of forks that led to this process, plus one.  Each fork increments it
 * in the child, while the child has only one thread.  A context stores the
 * value at its creation, so that a child process detects contexts of its parent
 * without a system call. */
extern volatile uint32_t fork_generation;

/* Installs the fork handler that increments fork_generation, unless it is
 * already installed.  Returns false if memory runs out. */
bool fork_watch(void);

/* Returns true if the context is live and was created in this process. */
static inline bool context_is_valid(const struct tandem_context *context)
{
    return handle_live(&context_pool, context) &&
           context->generation == fork_generation;
}

/* Returns TANDEM_OK for a valid context.  Otherwise sets the error message. */
enum tandem_status context_check(const struct tandem_context *context);

/* Returns a number of the calling thread, from 1. */
uint32_t thread_number(void);
/* Records that the calling thread uses the context. */
void context_note_thread(struct tandem_context *context);
/* Adds to the virtual clock, or raises it to a time. */
void virtual_clock_add(struct tandem_context *context, double ns);
void virtual_clock_raise(struct tandem_context *context, double ns);

/* The next three functions are in context_options.c.  They need no lock,
 * because no other thread knows the context yet.
 *
 * Copies the caller's options into `out` and checks them.  `options` may be
 * NULL, or a shorter struct if the caller was compiled with an older header.
 * On failure sets the error message. */
enum tandem_status
context_options_read(const struct tandem_context_options *options,
                     struct tandem_context_options *out);
/* Copies the options into the context.  An unset option gets the value of its
 * environment variable or else its default.  Invalid variables are logged and
 * ignored, because the caller does not always control them. */
enum tandem_status
context_options_apply(struct tandem_context *context,
                      const struct tandem_context_options *options);
/* Frees the context's copied options, even if only some of them were copied. */
void context_options_free(struct tandem_context *context);

/* Formats a message and passes it to the log's callback if log->level includes
 * `level`.  May be called from any thread. */
void log_message(const struct log *log, enum tandem_log_level level,
                 const char *format, ...) __attribute__((format(printf, 3, 4)));

/* Log callback that plugins call with `user`, a pointer to a struct log. */
void log_from_plugin(void *user, enum tandem_log_level level,
                     const char *message);

/* Adds a message about an unusable plugin to context->load_errors and logs it.
 */
void context_add_load_error(struct tandem_context *context,
                            enum tandem_log_level level, const char *format,
                            ...) __attribute__((format(printf, 3, 4)));

/* Returns the time of the monotonic clock in ns. */
uint64_t clock_ns(void);
/* Returns the clock_ns time at which a timeout ends.  If the timeout is
 * infinite, returns TANDEM_TIMEOUT_INFINITE. */
uint64_t clock_deadline(uint64_t timeout_ns);
/* Returns the ns left until a deadline that clock_deadline returned, or
 * TANDEM_TIMEOUT_INFINITE if the deadline has this value. */
uint64_t clock_left(uint64_t deadline_ns);

#endif
