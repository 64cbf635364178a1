/* SPDX-License-Identifier: Apache-2.0 */
/* The threads of the CBLAS; see blas.h. */
#include "config.h"

#include "cpu/blas.h"

#ifdef HAVE_OPENBLAS_SET_NUM_THREADS

#include <cblas.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static _Atomic uint32_t users;
static int found; /* the process's number, while there are users */
/* The process that these are of; negative while it makes them its own. */
static _Atomic pid_t owner;

/* In a child after fork they are as its parent's threads left them. */
static void blas_lock(void)
{
    pid_t self = getpid(), seen = atomic_load(&owner);
    while (seen != self) {
        if (seen != -self &&
            atomic_compare_exchange_weak(&owner, &seen, -self)) {
            pthread_mutex_init(&mutex, NULL);
            if (atomic_exchange(&users, 0) > 0)
                openblas_set_num_threads(found);
            atomic_store(&owner, self);
        }
        seen = atomic_load(&owner);
    }
    pthread_mutex_lock(&mutex);
}

bool blas_limit(uint32_t threads)
{
    if (atomic_load(&users) == 0 && openblas_get_num_threads() <= (int)threads)
        return false;
    blas_lock();
    if (atomic_load(&users) == 0)
        found = openblas_get_num_threads();
    atomic_fetch_add(&users, 1);
    if (openblas_get_num_threads() > (int)threads)
        openblas_set_num_threads((int)threads);
    pthread_mutex_unlock(&mutex);
    return true;
}

void blas_release(void)
{
    blas_lock();
    if (atomic_fetch_sub(&users, 1) == 1)
        openblas_set_num_threads(found);
    pthread_mutex_unlock(&mutex);
}

/* Whether core is one of OpenBLAS's for AVX2 at least. */
static bool core_is_wide(const char *core)
{
    static const char *const cores[] = {"Haswell",    "Zen",
                                        "SkylakeX",   "Cooperlake",
                                        "Excavator",  "SapphireRapids"};
    for (size_t i = 0; i < sizeof cores / sizeof cores[0]; i++)
        if (strcasecmp(core, cores[i]) == 0)
            return true;
    return false;
}

bool blas_complain(const char *level, char *out, size_t bytes)
{
    const char *core = openblas_get_corename();
    bool avx512 = strcmp(level, "avx512") == 0;
    if ((!avx512 && strcmp(level, "avx2") != 0) || core_is_wide(core))
        return false;
    snprintf(out, bytes,
             "matrix products are slow: OpenBLAS runs its %s kernels on this "
             "%s processor, which it does not know; set OPENBLAS_CORETYPE=%s "
             "in the environment, or install a newer OpenBLAS",
             core, avx512 ? "AVX-512" : "AVX2",
             avx512 ? "SkylakeX" : "Haswell");
    return true;
}

void blas_name(char *out, size_t bytes)
{
    snprintf(out, bytes, " openblas:%s", openblas_get_corename());
}

#else

void blas_name(char *out, size_t bytes)
{
    if (bytes > 0)
        *out = '\0';
}

bool blas_complain(const char *level, char *out, size_t bytes)
{
    (void)level;
    (void)out;
    (void)bytes;
    return false;
}

/* Another CBLAS keeps the number that it has. */
bool blas_limit(uint32_t threads)
{
    (void)threads;
    return false;
}

void blas_release(void)
{
}

#endif
