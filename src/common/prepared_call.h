/* SPDX-License-Identifier: Apache-2.0 */
/* Parts of the prepared operators of all plugins: the handle, a checked call
 * without memory, and the check of a launch's memory.  Any thread may call
 * these functions. */
#ifndef TANDEM_COMMON_PREPARED_CALL_H
#define TANDEM_COMMON_PREPARED_CALL_H

#include "common/tensor_desc.h"
#include "common/argument_check.h"
#include "common/handle_pool.h"
#include "common/operator_table.h"

/* Types of the functions that implement the entries of backend.h. */
typedef __typeof__(*((struct tandem_backend *)NULL)->prepare) prepare_fn;
typedef __typeof__(*((struct tandem_backend *)NULL)->launch) launch_fn;

struct prepared_operand {
    struct tandem_tensor_desc tensor; /* without buffer and offset */
    /* Bytes that the operand reaches before and after the start of its element
     * (0, ..., 0).  Both are 0 if it is empty. */
    uint64_t bytes_before, bytes_after;
    uint32_t alignment;      /* of that element, in bytes: a power of two */
    bool alignment_is_known; /* the caller said it; else that of an element */
    uint32_t same_as_input;  /* as in struct tandem_operand_desc */
    bool is_scalar;
};

/* The arrays are in the same block of memory as the struct. */
struct prepared_call {
    const struct operator_info *info;
    struct tandem_op op; /* with copies of the attributes */
    uint32_t input_count, output_count;
    const struct tandem_tensor_desc *inputs[TANDEM_MAX_OPERANDS];
    const struct tandem_tensor_desc *outputs[TANDEM_MAX_OPERANDS];
    struct prepared_operand operands[]; /* inputs, then outputs */
};

/* Checks the arguments of prepare that are not about the operator. */
enum tandem_status
prepare_arguments_check(uint32_t flags,
                        const struct tandem_prepared_info *out_info,
                        struct tandem_prepared *const *out_prepared);

/* Checks what tensors do not have: reserved members, alignment, same_as_input.
 * `name` is that of the operator. */
enum tandem_status operand_desc_check(const char *name, uint32_t operand,
                                      const struct tandem_operand_desc *desc,
                                      uint32_t input_count);

/* Checks the call, and sets *out_call to a copy that the caller frees with
 * free(), or to NULL. */
enum tandem_status prepared_call_create(
    const struct tandem_op *op, const struct tandem_operand_desc *const *inputs,
    uint32_t input_count, const struct tandem_operand_desc *const *outputs,
    uint32_t output_count, struct prepared_call **out_call);

/* An operator with the scalars of a launch. */
struct launch_scalars {
    struct tandem_op op;
    int64_t ints[2];
    bool are_changed; /* they differ from those of the prepared call */
};
/* Checks the scalars of a launch; see launch in backend.h.  *out
 * points to `scalars`. */
enum tandem_status prepared_call_set_scalars(struct launch_scalars *out,
                                             const struct prepared_call *call,
                                             const double *scalars,
                                             uint32_t count);

/* Checks the memory of a launch: see launch in backend.h.  `span` and
 * `user` are those of check_op. */
enum tandem_status
prepared_call_check_memory(const struct prepared_call *call,
                           const struct tandem_memory *memory, uint32_t count,
                           address_range_fn span, const void *user);

/* ---- handles ---- */

/* The first member of a plugin's struct tandem_prepared. */
struct prepared_base {
    struct handle handle;
    struct prepared_call *call;
    /* The device, which is live if its id is still device_id. */
    struct tandem_device *device;
    uint64_t device_id;
};

/* Returns an id for a device that is opened, which no other device gets. */
uint64_t device_id_new(void);
/* Returns TANDEM_OK for a live prepared operator, or sets an error. */
enum tandem_status prepared_check(const struct handle_pool *pool,
                                  const void *prepared);
/* Sets and returns the error of an operator whose device was closed, or which
 * is launched on a stream of another device. */
enum tandem_status prepared_device_closed(void);
enum tandem_status prepared_other_device(void);

#endif
