/* SPDX-License-Identifier: Apache-2.0 */
/* A context: plugins, devices, tensors and the state of the chooser.  One mutex
 * guards everything that changes after creation.  "Locked" means that the
 * caller must hold this mutex. */
#ifndef TANDEM_HOST_CONTEXT_CONTEXT_H
#define TANDEM_HOST_CONTEXT_CONTEXT_H

#include "common/fp_environment.h"
#include "common/handle_pool.h"
#include "host/exported_api.h"
#include "host/context/fork_generation.h"
#include "host/context/log.h"

#include <pthread.h>

struct backend;
struct device;
struct call_cache;
struct storage;

/* A key and its value for the plugins' open function. */
struct open_pair {
    char *key, *value;
};

struct tandem_context {
    struct handle handle;
    uint32_t generation; /* fork_generation at creation */
    uint32_t serial;     /* unique among all contexts of the process */

    /* These fields do not change after creation. */
    struct log log;
    struct backend *backends; /* "cpu" first */
    uint32_t backend_count;
    bool deterministic;
    char *profile_path; /* the directory searched first, or NULL */
    char *cache_path;   /* the user's cache directory, or NULL */
    bool cache_usable;  /* cache_path exists and is writable */
    char *num_threads;  /* decimal text for the plugins, or NULL */
    char host_cpu[128]; /* CPU model name */
    struct open_pair *open_pairs;
    uint32_t open_count;
    uint64_t hang_timeout_ns; /* or TANDEM_TIMEOUT_INFINITE */

    pthread_mutex_t mutex;
    struct float_env float_env;     /* saved for the thread that holds mutex */
    pthread_cond_t stream_released; /* also signaled if a device is lost */
    uint64_t unlock_epoch;          /* number of waits that released mutex */
    const void
        *first_thread; /* identifies the first thread that locked mutex */
    bool is_shared;    /* a second thread locked mutex */

    char **load_errors; /* messages about plugins that could not be used */
    uint32_t load_error_count;
    struct device *devices[TANDEM_MAX_DEVICES];
    uint32_t device_count;
    uint32_t backends_enumerated;
    uint32_t indices_enumerated; /* devices done of the next backend */
    /* Masks of devices; bit d stands for device d. */
    uint32_t usable;            /* may be chosen */
    uint32_t zero_copy_devices; /* always compute in host memory */
    uint32_t import_devices;    /* can import suitable host memory */
    uint32_t calibrated[TANDEM_COST_CLASS_COUNT]; /* by cost class */
    uint32_t default_costs_are_upper_bound;
    uint32_t op_blocked[TANDEM_OP_ID_END]; /* fail an operator, by operator */
    char *forced_name; /* name that was not looked up yet, or NULL */
    bool forced_by_environment;
    uint32_t forced; /* device number or TANDEM_ANY_DEVICE */
    bool time_operators;
    tandem_observer_fn observer;
    void *observer_user;

    double predicted_now_ns; /* virtual clock of the chooser, from creation */
    /* The first asynchronous error that tandem_context_synchronize has not
     * reported yet. */
    enum tandem_status async_error_status;
    char async_error_message[512];

    struct tandem_tensor *tensors; /* linked list */
    uint64_t tensor_serial;        /* serial of the newest tensor */
    struct call_cache *call_cache; /* NULL before the first use */
    struct storage *pending_free;  /* released storages that work still uses */
    uint64_t next_address; /* for library-owned storages, see storage.h */
};

extern struct handle_pool context_pool;

/* Returns true if the context is live and was created in this process. */
static inline bool context_is_valid(const struct tandem_context *context)
{
    return handle_live(&context_pool, context) &&
           context->generation == fork_generation;
}

/* Returns TANDEM_OK if context_is_valid, else an error with its message set. */
enum tandem_status context_check(const struct tandem_context *context);

/* Locks the mutex.  A thread that holds the mutex has the default
 * floating-point environment. */
void context_lock(struct tandem_context *context);
/* Locks the mutex like context_lock.  Returns false with the message set if the
 * mutex is still taken at deadline_ns (clock_ns time) and after 5 ms. */
bool context_lock_until(struct tandem_context *context, uint64_t deadline_ns);
void context_unlock(struct tandem_context *context);
/* Unlocks, waits for context->stream_released and locks again.  Returns false
 * at deadline_ns.  Locked. */
bool context_wait_released(struct tandem_context *context,
                           uint64_t deadline_ns);

/* Adds a message for tandem_context_load_error and logs the message at level.
 * Locked, or called before the context is shared. */
void context_add_load_error(struct tandem_context *context,
                            enum tandem_log_level level, const char *format,
                            ...) __attribute__((format(printf, 3, 4)));

/* Returns the time of the monotonic clock in ns. */
uint64_t clock_ns(void);
/* Converts a timeout to a clock_ns deadline.  TANDEM_TIMEOUT_INFINITE stays. */
uint64_t clock_deadline(uint64_t timeout_ns);
/* Returns the ns left until a deadline.  TANDEM_TIMEOUT_INFINITE stays. */
uint64_t clock_left(uint64_t deadline_ns);

#endif
