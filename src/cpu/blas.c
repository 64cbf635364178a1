/* SPDX-License-Identifier: Apache-2.0 */
/* The threads of the CBLAS; see blas.h. */
#include "config.h"

#include "cpu/blas.h"

#ifdef HAVE_OPENBLAS_SET_NUM_THREADS

#include <cblas.h>
#include <pthread.h>
#include <stdatomic.h>

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static _Atomic uint32_t users;
static int found; /* the process's number, while there are users */

bool blas_limit(uint32_t threads)
{
    if (atomic_load(&users) == 0 && openblas_get_num_threads() <= (int)threads)
        return false;
    pthread_mutex_lock(&mutex);
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
    pthread_mutex_lock(&mutex);
    if (atomic_fetch_sub(&users, 1) == 1)
        openblas_set_num_threads(found);
    pthread_mutex_unlock(&mutex);
}

#else

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
