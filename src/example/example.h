/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The objects of the example plugin, and what plugin.c and operators.c need of
 * each other. Any thread may call these functions.
 */
#ifndef TANDEM_EXAMPLE_EXAMPLE_H
#define TANDEM_EXAMPLE_EXAMPLE_H

#include <tandem/backend.h>

#include "common/prepared_call.h"

/*
 * Object to which a handle points. In backend.h, struct tandem_device and the
 * other handle types are opaque, so a handle can point to any struct.
 */
enum kind { DEVICE, STREAM, EVENT, BUFFER, PREPARED };
struct object {
    enum kind kind;
    struct object *next;
    struct object *device;
    bool lost;             /* a DEVICE whose driver reported its loss */
    unsigned char *memory; /* memory of a BUFFER, freed with the object */
    uint64_t bytes;
    struct tandem_memory_stats stats; /* statistics of a DEVICE */
    struct prepared_call *call;       /* of a PREPARED operator */
};

/*
 * Returns the object of a handle if the object is live and of this kind. For
 * any other pointer, returns NULL and sets the message.
 */
struct object *object_get(const void *handle, enum kind kind);

/*
 * Checks a call without memory and sets *out_call to a copy that the caller
 * frees with free(), or returns why the plugin does not support it.
 */
enum tandem_status op_prepare(const struct tandem_op *op,
                              const struct tandem_operand_desc *const *inputs,
                              uint32_t input_count,
                              const struct tandem_operand_desc *const *outputs,
                              uint32_t output_count,
                              struct prepared_call **out_call);
/* Checks the memory and the scalars of a launch, and computes it. */
enum tandem_status op_launch(const struct object *device,
                             const struct prepared_call *call,
                             const struct tandem_memory *memory, uint32_t count,
                             const double *scalars, uint32_t scalar_count);

/* Returns TANDEM_OK if the plugin supports the GEMM on the device's memory. */
enum tandem_status gemm_check(const struct tandem_gemm *gemm,
                              const struct object *device);
void gemm_compute(const struct tandem_gemm *gemm);

#endif
