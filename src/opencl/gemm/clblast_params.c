/* SPDX-License-Identifier: Apache-2.0 */
/* Reads and sets CLBlast's kernel parameters; see clblast_params.h. */
#include "opencl/gemm/clblast_params.h"

#include <clblast_c.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

#include "config.h"

/* In the first call of the process, CLBlast fills its table of tuned parameters
 * without a lock, so two threads would free each other's table. Therefore one
 * thread makes the first call, which needs no kernel. */
void clblast_init_once(cl_command_queue *queue)
{
    static atomic_bool done;
    static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
    const size_t n = 16;
    size_t bytes;
    if (atomic_load_explicit(&done, memory_order_acquire))
        return;
    pthread_mutex_lock(&mutex);
    if (!atomic_load_explicit(&done, memory_order_relaxed) &&
        CLBlastSGemmTempBufferSize(CLBlastLayoutRowMajor, CLBlastTransposeNo,
                                   CLBlastTransposeNo, n, n, n, 0, n, 0, n, 0,
                                   n, queue, &bytes) == CLBlastSuccess)
        atomic_store_explicit(&done, true, memory_order_release);
    pthread_mutex_unlock(&mutex);
}

static void param_names_fill(enum clblast_kernel_id id, const char *names[])
{
    for (uint32_t i = 0; i < clblast_kernels[id].count; i++)
        names[i] = clblast_kernels[id].params[i].name;
}

bool clblast_params_get(cl_device_id device, enum clblast_kernel_id id,
                        struct clblast_params *out)
{
#ifdef TANDEM_CLBLAST_PARAMETERS
    const char *names[CLBLAST_MAX_PARAMS];
    memset(out, 0, sizeof(*out));
    param_names_fill(id, names);
    return clblast_params_query(device, clblast_kernels[id].name,
                                clblast_kernels[id].count, names, out->values);
#else
    (void)device;
    (void)id;
    memset(out, 0, sizeof(*out));
    return false;
#endif
}

int clblast_params_set(cl_device_id device, enum clblast_kernel_id id,
                       const struct clblast_params *set)
{
    const char *names[CLBLAST_MAX_PARAMS];
    size_t values[CLBLAST_MAX_PARAMS];
    param_names_fill(id, names);
    for (uint32_t i = 0; i < clblast_kernels[id].count; i++)
        values[i] = set->values[i];
    return CLBlastOverrideParameters(device, clblast_kernels[id].name,
                                     CLBlastPrecisionSingle,
                                     clblast_kernels[id].count, names, values);
}
