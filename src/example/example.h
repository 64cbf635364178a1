/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The objects of the example plugin, and what plugin.c and operators.c need of
 * each other. Any thread may call these functions.
 */
#ifndef TANDEM_EXAMPLE_EXAMPLE_H
#define TANDEM_EXAMPLE_EXAMPLE_H

#include <tandem/backend.h>

/*
 * Object to which a handle points. In backend.h, struct tandem_device and the
 * other handle types are opaque, so a handle can point to any struct.
 */
enum kind { DEVICE, STREAM, EVENT, BUFFER };
struct object {
    enum kind kind;
    struct object *next;
    struct object *device;
    bool lost;             /* a DEVICE whose driver reported its loss */
    unsigned char *memory; /* memory of a BUFFER, freed with the object */
    uint64_t bytes;
    struct tandem_memory_stats stats; /* statistics of a DEVICE */
};

/*
 * Returns the object of a handle if the object is live and of this kind. For
 * any other pointer, returns NULL and sets the message.
 */
struct object *object_get(const void *handle, enum kind kind);

/*
 * Returns TANDEM_OK if the plugin supports the call. Checks the buffers only if
 * device is not NULL. For GEMM, only op->gemm is used.
 */
enum tandem_status op_check(const struct tandem_op *op,
                            const struct tandem_tensor_desc *const *inputs,
                            uint32_t input_count,
                            const struct tandem_tensor_desc *const *outputs,
                            uint32_t output_count, const struct object *device);
/* Computes a call that op_check accepted. */
void op_compute(const struct tandem_op *op,
                const struct tandem_tensor_desc *const *inputs,
                uint32_t input_count, const struct tandem_tensor_desc *output);
void gemm_compute(const struct tandem_gemm *gemm);

#endif
