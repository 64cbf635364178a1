/* SPDX-License-Identifier: Apache-2.0 */
/* A context holds plugins, devices, tensors and the state of the chooser.  One
 * mutex guards everything that changes after creation.  A context is locked
 * while a thread holds this mutex. */
#ifndef TANDEM_HOST_CONTEXT_CONTEXT_H
#define TANDEM_HOST_CONTEXT_CONTEXT_H

#include "common/fp_environment.h"
#include "common/handle_pool.h"
#include "host/exported_api.h"

#include <pthread.h>

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

    pthread_mutex_t mutex;
    struct float_env float_env;     /* caller's FP state, restored on unlock */
    pthread_cond_t stream_released; /* signals a free stream or a lost device */
    uint64_t unlock_epoch;          /* number of waits that unlocked `mutex` */
    const void *first_thread; /* ID of the first thread that locked `mutex` */
    bool is_shared;           /* true if another thread has locked `mutex` */

    char **load_errors; /* messages about plugins that could not be used */
    size_t load_error_count;
    struct device *devices[TANDEM_MAX_DEVICES];
    uint32_t device_count;
    uint32_t backends_enumerated; /* number of completely enumerated backends */
    uint32_t indices_enumerated;  /* devices found so far in the next backend */
    /* The next three fields are masks, in which bit d stands for device d. */
    uint32_t usable;            /* devices that may run operators */
    uint32_t zero_copy_devices; /* devices that compute in host memory */
    uint32_t import_devices;    /* devices able to import host memory */
    /* Mask of the devices that have measured costs of each cost class. */
    uint32_t calibrated[TANDEM_COST_CLASS_COUNT];
    uint32_t default_costs_are_upper_bound; /* mask of devices */
    uint32_t gpus; /* mask of the devices of kind TANDEM_DEVICE_GPU */
    /* Bit d of op_blocked[op] is set if device d must not run operator op. */
    uint32_t op_blocked[TANDEM_OP_ID_END];
    /* Name of the device that must run all operators.  NULL if no device is
     * forced, or if the name was already converted to the number `forced`. */
    char *forced_name;
    bool forced_by_environment;
    uint32_t forced; /* number of the forced device or TANDEM_ANY_DEVICE */
    bool time_operators;
    tandem_observer_fn observer;
    void *observer_user;

    double predicted_now_ns; /* virtual clock of the chooser, 0 at creation */
    /* First asynchronous error that no synchronization has reported yet. */
    enum tandem_status async_error_status;
    char async_error_message[512];

    struct tandem_tensor *tensors; /* linked list */
    uint64_t tensor_serial;        /* serial number of the newest tensor */
    struct prepared_cache *prepared_cache; /* NULL before the first call */
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

/* Locks the context and sets the default floating-point environment.
 * context_unlock restores the caller's environment. */
void context_lock(struct tandem_context *context);
/* Works like context_lock, but waits at most until deadline_ns, or for 5 ms if
 * that is longer.  On failure sets the error message and returns false. */
bool context_lock_until(struct tandem_context *context, uint64_t deadline_ns);
void context_unlock(struct tandem_context *context);
/* Unlocks the context, waits until a stream is released or a device is lost,
 * and locks the context again.  Returns false if deadline_ns passes first. */
bool context_wait_released(struct tandem_context *context,
                           uint64_t deadline_ns);

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
 * The mutex must be held unless no other thread knows the context yet. */
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
