/* SPDX-License-Identifier: Apache-2.0 */
/* The operator classes, and those classes that allocate memory for their
 * intermediate results: convolution and attention. */
#include "config.h"

#include "cpu/attention/attention.h"
#include "cpu/conv/conv.h"
#include "cpu/gemm/blas_guard.h"
#include "cpu/objects.h"

/* ---- convolution -------------------------------------------------------- */

static enum tandem_status conv_class_run(const struct work *work)
{
    struct conv conv;
    struct conv_job job;
    struct direct_job direct;
    struct tandem_buffer *workspace;
    if (!conv_init(&conv, work))
        return TANDEM_OK;
    enum tandem_status status = conv.uses_gemm ? blas_ready() : TANDEM_OK;
    if (status != TANDEM_OK)
        return status;
    status = memory_alloc(work->device,
                          conv.uses_gemm ? conv_gemm_prepare(&job, &conv)
                                         : conv_direct_prepare(&direct, &conv),
                          &workspace);
    if (status != TANDEM_OK)
        return status;
    if (conv.uses_gemm)
        conv_gemm_run(&job, workspace->base);
    else
        conv_direct_run(&direct, workspace->base);
    memory_free(workspace);
    return TANDEM_OK;
}

const struct cpu_class cpu_class_conv = {.run = conv_class_run};

/* ---- attention ---------------------------------------------------------- */

static enum tandem_status attention_class_run(const struct work *work)
{
    struct attention_job job;
    struct tandem_buffer *workspace;
    uint64_t bytes = attention_prepare(&job, work);
    enum tandem_status status = bytes == 0 ? TANDEM_OK : blas_ready();
    if (bytes == 0 || status != TANDEM_OK)
        return status;
    status = memory_alloc(work->device, bytes, &workspace);
    if (status != TANDEM_OK)
        return status;
    attention_run(&job, workspace->base);
    memory_free(workspace);
    return TANDEM_OK;
}

const struct cpu_class cpu_class_attention = {.run = attention_class_run};

/* ---- all classes ----------------------------------------------------------
 */

static const struct cpu_class *const classes[TANDEM_CLASS_END] = {
#define CPU_CLASS_ENTRY(ID, number, name) [number] = &cpu_class_##name,
    TANDEM_CLASSES(CPU_CLASS_ENTRY)
#undef CPU_CLASS_ENTRY
};

const struct cpu_class *cpu_class_of(uint32_t op)
{
    return classes[operator_lookup(op)->op_class];
}
