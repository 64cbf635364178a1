/* SPDX-License-Identifier: Apache-2.0 */
/* Launch plans: the kernels that calls of an operator enqueue, with their
 * parameters and sizes.  A plan contains no memory: it names buffers by slots,
 * and it lists the parameters that depend on the operands' addresses.  The
 * functions that make plans are pure: they call no driver, and any thread may
 * call them. */
#ifndef TANDEM_OPENCL_PLAN_PLAN_H
#define TANDEM_OPENCL_PLAN_PLAN_H

#include "common/tensor_desc.h"

#include "common/iteration_space.h"
#include "opencl/plan/gemm_kernel_configs.h"
#include "opencl/plan/kernel_info.h"
#include "common/params.cl"

struct gemm_selector;
struct platform_device;
struct tandem_device;

/* Names of the buffers of a plan.  The launch knows the buffers, and the
 * offsets at which operands start in them. */
enum slot {
    SLOT_TEMP = 1, /* the temporary buffer of the plan */
    SLOT_COUNTERS, /* the arrival counters of the stream */
    /* Packed copies of GEMM operands; see operand_packing.h. */
    SLOT_PACKED_A,
    SLOT_PACKED_B,
    /* Output i is SLOT_OUTPUT + i, and input i is SLOT_INPUT + i.  The inputs
     * of a GEMM are a, b and the bias. */
    SLOT_OUTPUT,
    SLOT_INPUT = SLOT_OUTPUT + TANDEM_MAX_OPERANDS,
    SLOT_COUNT = SLOT_INPUT + TANDEM_MAX_OPERANDS
};

/* In plans, `buffer` of a tensor or matrix is not memory but a slot and the
 * alignment of the operand's first element: a power of two up to
 * MAX_SLOT_ALIGNMENT bytes.  byte_offset is that from the operand's start, 0
 * for a whole operand. */
#define MAX_SLOT_ALIGNMENT 128u
static inline struct tandem_buffer *slot_buffer(uint32_t slot,
                                                uint32_t alignment)
{
    return (struct tandem_buffer *)(uintptr_t)(slot | alignment << 8);
}
static inline uint32_t buffer_slot(const struct tandem_buffer *buffer)
{
    return (uint32_t)(uintptr_t)buffer & 0xffu;
}
static inline uint32_t slot_alignment(const struct tandem_buffer *buffer)
{
    return (uint32_t)(uintptr_t)buffer >> 8;
}
#define TEMP_BUFFER slot_buffer(SLOT_TEMP, MAX_SLOT_ALIGNMENT)

/* A parameter that depends on the address of an operand. */
enum patch_kind {
    /* uint64_t: add the number of elements from the start of the buffer to that
     * of the operand. */
    PATCH_OFFSET,
    /* uint32_t: set bits from `shift` on to the number of elements, modulo
     * `modulus`, from a 64-byte boundary to the start of the buffer. */
    PATCH_BUFFER_MISALIGNMENT,
    /* uint32_t: set to the number of elements, modulo `modulus`, from a
     * boundary of that many elements to the start of the operand. */
    PATCH_MISALIGNMENT
};
struct patch {
    uint8_t kind, slot, element_bytes, shift;
    uint16_t at; /* position in the parameters, in bytes */
    uint16_t modulus;
};

#define MAX_STEP_BUFFERS 9u
#define MAX_STEP_PATCHES 18u
#define MAX_PLAN_STEPS 8u
/* Number of arrival counters per stream.  A kernel counts its finished
 * work-groups in these uints, which are 0 before and after every kernel. */
#define ARRIVAL_COUNTERS 1024u

/* One step of a plan: a kernel launch or one clEnqueueCopyBuffer. */
struct kernel_step {
    struct kernel_key key;
    uint64_t groups; /* number of work-groups */
    /* Buffer arguments of the kernel, in order: enum slot.  Bit i of `written`
     * is set if the kernel writes buffer i. */
    uint8_t slots[MAX_STEP_BUFFERS];
    /* Number of bytes before and after the start of the operand that the kernel
     * can access.  0 for slots that are not operands. */
    uint64_t bytes_before[MAX_STEP_BUFFERS], bytes_after[MAX_STEP_BUFFERS];
    uint32_t buffer_count, written;
    struct patch patches[MAX_STEP_PATCHES];
    uint32_t patch_count;
    uint32_t param_bytes;
    /* Offsets in the operands, and size, in bytes, of a copy from slots[1] to
     * slots[0]. */
    uint64_t target_offset, source_offset, bytes;
    _Alignas(8) unsigned char params[MAX_PARAM_BYTES];
};

/* How the operator GEMM is computed. */
struct planned_gemm {
    /* Normalized, with slots.  struct_size is 0 for other operators. */
    struct tandem_gemm gemm;
    struct split_k split;
    /* Operands that the plan packs each time: bit OPERAND_A, OPERAND_B. */
    uint32_t packs;
    /* CLBlast computes the product before step `clblast_at`. */
    bool uses_clblast;
    uint32_t clblast_at;
};

struct launch_plan {
    uint32_t step_count; /* 0 if there is nothing to do */
    bool is_overfull;    /* a planner added more than MAX_PLAN_STEPS steps */
    /* The kernel of the plugin that a GEMM, or a convolution as a GEMM, uses:
     * enum gemm_kernel_id + 1, or 0 for none. */
    uint32_t selected_gemm;
    bool uses_attention_mma;
    /* Predicted time of a GEMM, or of a convolution as a GEMM; 0: unknown. */
    double predicted_ns;
    struct planned_gemm gemm; /* of the operator GEMM */
    uint64_t temp_bytes;      /* size of the temporary buffer in bytes */
    /* The last element is not part of the plan.  Planners write to it when the
     * plan is full. */
    struct kernel_step step[MAX_PLAN_STEPS + 1];
};

/* Removes all steps and reservations. */
static inline void launch_plan_clear(struct launch_plan *plan)
{
    plan->step_count = 0;
    plan->is_overfull = false;
    plan->selected_gemm = 0;
    plan->uses_attention_mma = false;
    plan->predicted_ns = 0;
    plan->gemm.gemm.struct_size = 0;
    plan->gemm.packs = 0;
    plan->gemm.uses_clblast = false;
    plan->temp_bytes = 0;
}
/* Returns FAILED if a planner added more steps, or more buffers or patches to a
 * step, than a plan can hold. */
enum tandem_status launch_plan_check(const struct launch_plan *plan);

/* A call of an operator whose arguments have been checked.  An output that is
 * exactly an input has the input's slot. */
struct op_request {
    const struct platform_device *hardware;
    uint32_t group_log2; /* work-group size to use */
    const struct tandem_op *op;
    const struct tandem_tensor_desc *const *inputs;
    const struct tandem_tensor_desc *const *outputs;
    uint32_t input_count, output_count;
    /* True if a work-group can read what other work-groups of the same kernel
     * have written.  OpenCL C 1.2 does not guarantee this.  NVIDIA GPUs of
     * compute capability 7.0 or higher have an instruction for this. */
    bool has_device_scope_visibility;
    /* Selects the kernels of GEMMs and convolutions.  NULL: the plan uses the
     * naive kernels, which are not selected. */
    struct gemm_selector *gemm_selector;
    bool avoids_clblast;
    /* Replaces the choice for the operator GEMM unless it is NULL. */
    const struct gemm_selection *gemm_selection;
    /* Operands of which SLOT_PACKED_A and SLOT_PACKED_B are packed copies. */
    uint32_t packed_operands;
    bool avoids_attention_mma; /* the driver cannot run attention_mma.cl */
};

/* Plans a call of any operator. */
enum tandem_status launch_plan_make(struct launch_plan *plan,
                                    const struct op_request *request);

/* How the operators of a class are planned.  The table has one entry for each
 * row of TANDEM_CLASSES; the planner of the class defines the entry. */
struct plan_class {
    /* Plans a call whose outputs are not empty.  NULL means that the plugin
     * does not support the class. */
    void (*plan)(struct launch_plan *plan, const struct op_request *request);
};

#define PLAN_CLASS_DECLARE(ID, number, name)                                   \
    extern const struct plan_class plan_class_##name;
TANDEM_CLASSES(PLAN_CLASS_DECLARE)
#undef PLAN_CLASS_DECLARE

/* Plans an element-wise operator, copy or transpose with operands that are not
 * contiguous.  For a transpose, the axes of the input are already permuted.
 * Changes `space`. */
void plan_strided(struct launch_plan *plan, const struct op_request *request,
                  struct iteration_space *space);

/* Plans the copy of inputs[0] to outputs[0], which may have any strides.  The
 * input broadcasts to the output. */
void plan_copy(struct launch_plan *plan, const struct op_request *request);

/* Plans batch norm, an operator of class CHANNEL_NORM. */
void plan_batch_norm(struct launch_plan *plan,
                     const struct op_request *request);

/* Adds the kernel that multiplies the result of a GEMM by `scale`, then adds
 * the bias and applies the activation. */
void plan_epilogue(struct launch_plan *plan, const struct tandem_gemm *gemm,
                   uint32_t group_log2, float scale);
/* Adds a GEMM kernel with one work-item per output element, which every device
 * can run. */
void plan_naive_gemm(struct launch_plan *plan, const struct tandem_gemm *gemm,
                     uint32_t group_log2);

#endif
