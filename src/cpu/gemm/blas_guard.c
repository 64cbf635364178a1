/* SPDX-License-Identifier: Apache-2.0 */
/* Limits the CBLAS thread count and delays forks; see blas_guard.h. */
#include "config.h"

#include "cpu/gemm/blas_guard.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <time.h>
#ifdef HAVE_OPENBLAS_SET_NUM_THREADS
#include <cblas.h>
#endif

#include "common/atfork.h"
#include "common/last_error.h"
#include "common/thread_state_guard.h"
#include "common/threads.h"

#ifndef HAVE_OPENBLAS_SET_NUM_THREADS
/* Replacements for functions that only OpenBLAS has.  They report one thread,
 * so that the plugin does not change the thread count. */
static int openblas_get_num_threads(void)
{
    return 1;
}

static void openblas_set_num_threads(int threads)
{
    (void)threads;
}

static const char *openblas_get_corename(void)
{
    return NULL;
}
#endif

static _Atomic uint32_t users; /* number of blas_limit calls in effect */
static int found; /* CBLAS thread count that blas_release restores */
/* True in a child process if its parent forked while blas_limit was in effect.
 * `found` then holds the original thread count, which must not be overwritten
 * with the lowered count. */
static atomic_bool inherited;
/* True after a fork ended the threads of OpenBLAS.  Becomes false when the
 * system allows enough new threads for OpenBLAS to restart all of them. */
static atomic_bool stopped;

/* ---- forks -------------------------------------------------------------- */

/* Before a fork, the prepare handler polls every FORK_LOOK_NS nanoseconds until
 * no thread is inside a CBLAS call, but at most FORK_LOOKS times (0.1 s).
 * Without this limit, a signal handler that interrupts a CBLAS call and forks
 * would deadlock. */
#define FORK_LOOKS 2000
#define FORK_LOOK_NS 50000

/* Mutex that is held during a fork and while the CBLAS thread count changes. */
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static _Atomic uint32_t inside;  /* number of threads inside a CBLAS call */
static _Atomic uint32_t forks;   /* number of forks in progress */
static _Atomic pthread_t holder; /* forking thread that holds `mutex`, or 0 */

/* Tries to lock `mutex` for the forking thread.  Returns true if that thread
 * holds the mutex and no thread is inside a CBLAS call. */
static bool fork_ready(void)
{
    if (atomic_load(&holder) != pthread_self()) {
        if (pthread_mutex_trylock(&mutex) != 0)
            return false;
        atomic_store(&holder, pthread_self());
    }
    return atomic_load(&inside) == 0;
}

/* Runs in the parent process before a fork.  Prepare handlers run in reverse
 * order of registration.  The CBLAS registers its handler when it is loaded, so
 * this handler runs first. */
static void fork_prepare(void)
{
    const struct timespec pause = {.tv_nsec = FORK_LOOK_NS};
    atomic_fetch_add(&forks, 1);
    for (int i = 0; i < FORK_LOOKS && !fork_ready(); i++)
        nanosleep(&pause, NULL);
}

static void fork_parent(void)
{
    atomic_store(&stopped, true);
    atomic_fetch_sub(&forks, 1);
    if (atomic_load(&holder) != pthread_self())
        return;
    atomic_store(&holder, (pthread_t)0);
    pthread_mutex_unlock(&mutex);
}

static void fork_child(void)
{
    pthread_mutex_init(&mutex, NULL);
    atomic_store(&holder, (pthread_t)0);
    atomic_store(&inside, 0);
    atomic_store(&forks, 0);
    atomic_store(&stopped, true);
    if (atomic_exchange(&users, 0) > 0)
        atomic_store(&inherited, true);
}

bool blas_fork_guard_install(void)
{
    static struct atfork once = ATFORK;
    return atfork_once(&once, fork_prepare, fork_parent, fork_child);
}

void blas_enter(void)
{
    atomic_fetch_add(&inside, 1);
    while (atomic_load(&forks) > 0) {
        atomic_fetch_sub(&inside, 1);
        pthread_mutex_lock(&mutex);
        pthread_mutex_unlock(&mutex);
        atomic_fetch_add(&inside, 1);
    }
}

void blas_leave(void)
{
    atomic_fetch_sub(&inside, 1);
}

/* ---- threads ------------------------------------------------------------ */

/* Returns the number of threads that OpenBLAS must start after a fork, without
 * the calling thread.  The caller holds `mutex`. */
static uint32_t threads_missing(void)
{
    int threads = openblas_get_num_threads();
    if ((atomic_load(&users) > 0 || atomic_load(&inherited)) && found > threads)
        threads = found;
    return threads > 1 ? (uint32_t)threads - 1 : 0;
}

/* Returns true if OpenBLAS can restart its threads.  The caller holds
 * `mutex`. */
static bool threads_can_restart(void)
{
    struct thread_state host;
    if (!atomic_load(&stopped))
        return true;
    thread_state_guard_enter(&host);
    bool can = threads_can_start(threads_missing());
    thread_state_guard_leave(&host);
    if (can)
        atomic_store(&stopped, false);
    return can;
}

enum tandem_status blas_ready(void)
{
    if (!atomic_load_explicit(&stopped, memory_order_relaxed))
        return TANDEM_OK;
    pthread_mutex_lock(&mutex);
    bool can = threads_can_restart();
    uint32_t missing = threads_missing();
    pthread_mutex_unlock(&mutex);
    if (can)
        return TANDEM_OK;
    return memory_error(
        "gemm: OpenBLAS must start %u threads again after a fork, but the "
        "system refuses them because of " THREADS_LIMITS "; raise it, or set "
        "OPENBLAS_NUM_THREADS=1 in the environment",
        (unsigned)missing);
}

bool blas_limit(void)
{
    if (atomic_load(&users) == 0 && !atomic_load(&inherited) &&
        openblas_get_num_threads() <= 1)
        return false;
    pthread_mutex_lock(&mutex);
    if (atomic_load(&users) == 0 && !atomic_exchange(&inherited, false))
        found = openblas_get_num_threads();
    atomic_fetch_add(&users, 1);
    if (openblas_get_num_threads() > 1)
        openblas_set_num_threads(1);
    pthread_mutex_unlock(&mutex);
    return true;
}

void blas_release(void)
{
    pthread_mutex_lock(&mutex);
    /* If the system refuses new threads, OpenBLAS keeps one thread. */
    bool can = threads_can_restart();
    if (atomic_fetch_sub(&users, 1) == 1 && can)
        openblas_set_num_threads(found);
    pthread_mutex_unlock(&mutex);
}

/* Returns true if `core` names OpenBLAS kernels that use at least AVX2. */
static bool core_is_wide(const char *core)
{
    static const char *const cores[] = {"Haswell",   "Zen",
                                        "SkylakeX",  "Cooperlake",
                                        "Excavator", "SapphireRapids"};
    for (size_t i = 0; i < sizeof cores / sizeof cores[0]; i++)
        if (strcasecmp(core, cores[i]) == 0)
            return true;
    return false;
}

bool blas_complain(const char *level, char *out, size_t bytes)
{
    const char *core = openblas_get_corename();
    bool avx512 = strcmp(level, "avx512") == 0;
    if ((!avx512 && strcmp(level, "avx2") != 0) || core == NULL ||
        core_is_wide(core))
        return false;
    snprintf(out, bytes,
             "GEMM is slow: OpenBLAS runs its %s kernels on this "
             "%s processor, which it does not know; set OPENBLAS_CORETYPE=%s "
             "in the environment, or install a newer OpenBLAS, then run "
             "\"cl-probe --calibrate\"",
             core, avx512 ? "AVX-512" : "AVX2",
             avx512 ? "SkylakeX" : "Haswell");
    return true;
}

void blas_name(char *out, size_t bytes)
{
    const char *core = openblas_get_corename();
    snprintf(out, bytes, "%s%s",
             core == NULL ? "" : " openblas:", core == NULL ? "" : core);
}
