/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A context: plugins, devices, tensors and the state of the chooser.  One
 * mutex guards everything that changes after creation; functions below say
 * where it is held ("locked").
 */
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
struct judged_table;
struct record;
struct storage;

struct open_pair {
    char *key, *value;
};

struct tandem_context {
    struct handle handle;
    uint32_t generation; /* fork_generation at creation */
    uint32_t serial;     /* distinct for each context of the process */

    /* Fixed after creation. */
    struct log log;
    struct backend *backends; /* "cpu" first */
    uint32_t backend_count;
    bool deterministic;
    char *profile_path; /* the first directory of profiles, or NULL */
    char *cache_path;   /* the user's cache directory, or NULL */
    bool cache_usable;  /* cache_path could be made and written */
    char *num_threads;  /* or NULL */
    char host_cpu[128]; /* model of the processor */
    struct open_pair *open_pairs;
    uint32_t open_count;

    uint64_t hang_ns; /* see WAIT_LIMIT in device_wait.h */

    pthread_mutex_t mutex;
    struct float_env float_env; /* of the thread that has the mutex */
    pthread_cond_t freed; /* a device's stream is held no longer, or lost */
    uint64_t unlocks;     /* how often a call unlocked in its midst to wait */
    const void *thread; /* the first thread that locked it */
    bool threaded;      /* another did, too */

    char **problems; /* plugins that could not be used */
    uint32_t problem_count;
    struct device *devices[TANDEM_MAX_DEVICES];
    uint32_t device_count;
    uint32_t backends_enumerated;
    uint32_t indices_enumerated; /* of the backend after those */
    uint32_t usable;  /* bit d: device d may be chosen */
    uint32_t sharing; /* bit d: device d computes in host memory, */
    uint32_t importing; /* or can, where the memory suits it */
    /* By cost class, bit d: device d's costs of it were measured. */
    uint32_t measured[TANDEM_COST_CLASSES];
    uint32_t bounded; /* bit d: where not, device d is no slower than guessed */
    /* By operator, bit d: device d computes it wrong, by its profile. */
    uint32_t rejecting[TANDEM_OP_ID_END];
    char *forced_name; /* not yet looked up, or NULL */
    bool forced_by_environment;
    uint32_t forced;
    bool measure;
    tandem_observer_fn observer;
    void *observer_user;

    /* The chooser's clock: predicted ns since creation. */
    double now_ns;
    /* The first error of work that failed after its call, for
     * tandem_context_synchronize. */
    enum tandem_status late_status;
    char late_message[512];

    struct tandem_tensor *tensors; /* list */
    uint64_t tensor_serial;        /* of the latest */
    struct judged_table *judged;   /* or NULL; see call_cache.h */
    struct storage *leaving; /* freed by the caller, in use by work */
    uint64_t next_address;   /* of library-owned storages, see storage.h */
};

extern struct handle_pool context_pool;

/* Live, and of this process. */
static inline bool context_good(const struct tandem_context *context)
{
    return handle_live(&context_pool, context) &&
           context->generation == fork_generation;
}

/* A live context of this process, or a status with its message set. */
enum tandem_status context_check(const struct tandem_context *context);

/* While it is held, the thread has the default floating-point environment. */
void context_lock(struct tandem_context *context);
/* Gives up at deadline_ns (of clock_ns): false. */
bool context_lock_until(struct tandem_context *context, uint64_t deadline_ns);
void context_unlock(struct tandem_context *context);
/* Unlocks until something is freed, or deadline_ns: false.  Locked. */
bool context_sleep(struct tandem_context *context, uint64_t deadline_ns);

/* Adds a problem (tandem_context_load_error) and logs it at level.  Locked, or
 * before the context is shared. */
void context_problem(struct tandem_context *context,
                     enum tandem_log_level level, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Monotonic. */
uint64_t clock_ns(void);
/* The deadline of a timeout; TANDEM_TIMEOUT_INFINITE stays. */
uint64_t clock_deadline(uint64_t timeout_ns);
/* The timeout that is left until a deadline. */
uint64_t clock_left(uint64_t deadline_ns);

#endif
