/* SPDX-License-Identifier: Apache-2.0 */
/* Launch plans: the kernels that one call of an operator enqueues, with their
 * buffers, parameters and sizes.  The functions that make plans are pure: they
 * call no driver, and any thread may call them. */
#ifndef TANDEM_OPENCL_PLAN_PLAN_H
#define TANDEM_OPENCL_PLAN_PLAN_H

#include <tandem/backend.h>

#include "common/iteration_space.h"
#include "opencl/plan/kernel_info.h"
#include "common/params.cl"

struct gemm_selection;
struct gemm_selector;
struct platform_device;
struct tandem_device;

#define MAX_STEP_BUFFERS 9u
#define MAX_PLAN_STEPS 8u
/* Number of arrival counters per stream.  A kernel counts its finished
 * work-groups in these uints, which are 0 before and after every kernel. */
#define ARRIVAL_COUNTERS 1024u

/* One step of a plan: a kernel launch or one clEnqueueCopyBuffer. */
struct kernel_step {
    struct kernel_key key;
    uint64_t groups; /* number of work-groups */
    /* Buffer arguments of the kernel, in order: a buffer, TEMP_BUFFER,
     * COUNTER_BUFFER, or NULL if the caller asks for a plan without having
     * memory.  Bit i of `written` is set if the kernel writes buffer i. */
    struct tandem_buffer *buffers[MAX_STEP_BUFFERS];
    /* Number of bytes, from the start of the buffer, that the kernel can
     * access.  0 for TEMP_BUFFER and COUNTER_BUFFER. */
    uint64_t buffer_bytes[MAX_STEP_BUFFERS];
    uint32_t buffer_count, written;
    uint32_t param_bytes;
    /* Offsets and size in bytes of a copy from buffers[1] to buffers[0]. */
    uint64_t target_offset, source_offset, bytes;
    _Alignas(8) unsigned char params[MAX_PARAM_BYTES];
};

/* Stand for the temporary buffer of the plan and for the arrival counters of
 * the stream.  The launch code replaces them. */
extern struct tandem_buffer plan_temp_buffer, plan_counter_buffer;
#define TEMP_BUFFER (&plan_temp_buffer)
#define COUNTER_BUFFER (&plan_counter_buffer)

struct launch_plan {
    uint32_t step_count; /* 0 if there is nothing to do */
    bool is_overfull;    /* a planner added more than MAX_PLAN_STEPS steps */
    /* The kernel that request->select_gemm selected: enum gemm_kernel_id + 1,
     * or 0 for none. */
    uint32_t selected_gemm;
    bool uses_attention_mma;
    uint64_t temp_bytes; /* size of the temporary buffer in bytes */
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
    plan->temp_bytes = 0;
}
/* Returns FAILED if a planner added more steps, or more buffers to a step, than
 * a plan can hold. */
enum tandem_status launch_plan_check(const struct launch_plan *plan);

/* A call of an operator whose arguments have been checked. */
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
    /* Selects a kernel of the plugin for a GEMM, whose operand `b` are patches
     * (gemm_plan.h) if `patches` is set.  Adds to the predicted time that of a
     * kernel that reads and writes `bytes` bytes, unless this is 0.  Returns
     * false if there is no kernel.  NULL means that there is none. */
    bool (*select_gemm)(struct gemm_selector *selector,
                        const struct tandem_gemm *gemm, bool patches,
                        uint64_t bytes, struct gemm_selection *out);
    struct gemm_selector *gemm_selector;
    bool avoids_attention_mma; /* the driver cannot run attention_mma.cl */
};

/* Plans a call of any operator except GEMM. */
enum tandem_status launch_plan_make(struct launch_plan *plan,
                                    const struct op_request *request);

/* How the operators of a class are planned.  The table has one entry for each
 * row of TANDEM_CLASSES; the planner of the class defines the entry. */
struct plan_class {
    /* Plans a call whose outputs are not empty.  NULL means that the plugin
     * does not support the class, or plans it elsewhere (gemm_plan.h). */
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

/* Plans the kernel that multiplies the result of a GEMM by `scale`, then adds
 * the bias and applies the activation. */
void plan_epilogue(struct launch_plan *plan, const struct tandem_gemm *gemm,
                   uint32_t group_log2, float scale);
/* Plans a GEMM kernel with one work-item per output element, which every device
 * can run. */
void plan_naive_gemm(struct launch_plan *plan, const struct tandem_gemm *gemm,
                     uint32_t group_log2);

#endif
