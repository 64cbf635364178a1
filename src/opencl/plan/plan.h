/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a launch will enqueue, worked out without touching the driver: kernels
 * by key, their buffers, parameters and sizes.  Pure functions over checked
 * arguments; any thread.
 */
#ifndef TANDEM_OPENCL_PLAN_PLAN_H
#define TANDEM_OPENCL_PLAN_PLAN_H

#include <tandem/backend.h>

#include "common/iteration_space.h"
#include "opencl/plan/variant_key.h"

struct tandem_device;
struct platform_device;

#define MAX_STEP_BUFFERS 8u
#define MAX_STEP_PARAM_BYTES 1024u
#define MAX_PLAN_STEPS 5u
/* Of a stream, each an uint, 0 before and after every kernel. */
#define ARRIVAL_COUNTERS 1024u

struct kernel_step {
    uint64_t key;
    uint64_t groups;
    /* In the kernel's order, NULL where the plan's temporary belongs.  Bits of
     * written: those that the kernel writes. */
    struct tandem_buffer *buffers[MAX_STEP_BUFFERS];
    uint32_t buffer_count, written;
    /* Which of them, NULL, is the stream's counters (stream.h); 0: none. */
    uint32_t arrival_counters;
    uint32_t param_bytes;
    /* KERNEL_COPY_BUFFER: buffers[0] from buffers[1]. */
    uint64_t target_offset, source_offset, bytes;
    _Alignas(8) unsigned char params[MAX_STEP_PARAM_BYTES];
};

struct launch_plan {
    uint32_t step_count; /* 0: nothing to do */
    uint64_t temp_bytes;
    struct kernel_step step[MAX_PLAN_STEPS];
};

/* A call of launch, checked. */
struct op_request {
    const struct platform_device *hardware;
    uint32_t group_log2; /* of the work-groups to use */
    const struct tandem_op *op;
    const struct tandem_tensor_desc *const *inputs;
    const struct tandem_tensor_desc *const *outputs;
    uint32_t input_count, output_count;
    /* Groups may see what others of the same kernel wrote: on NVIDIA GPUs, from
     * compute capability 7.0 on, by an instruction; OpenCL C 1.2 does not
     * promise it. */
    bool has_device_scope_visibility;
};

enum tandem_status plan_elementwise(struct launch_plan *plan,
                                    const struct op_request *request);
/* Element by element of a space that is laid out and is not flat; copies and
 * transposes too, whose one input is laid out as it is to be read. */
void plan_strided(struct launch_plan *plan, const struct op_request *request,
                  struct layout *layout);
enum tandem_status plan_optimizer(struct launch_plan *plan,
                                  const struct op_request *request);
enum tandem_status plan_copy(struct launch_plan *plan,
                             const struct op_request *request);
enum tandem_status plan_gather(struct launch_plan *plan,
                               const struct op_request *request);
enum tandem_status plan_reduce(struct launch_plan *plan,
                               const struct op_request *request);
enum tandem_status plan_softmax(struct launch_plan *plan,
                                const struct op_request *request);
enum tandem_status plan_norm(struct launch_plan *plan,
                             const struct op_request *request);
/* Dispatches by class; GEMM is not among them. */
enum tandem_status launch_plan_make(struct launch_plan *plan,
                                    const struct op_request *request);

/* The kernel after (or, where the product is zero, instead of) a product. */
void plan_epilogue(struct launch_plan *plan, const struct tandem_gemm *gemm,
                   uint32_t group_log2, float scale);
/* All of a product, by a kernel that every device runs. */
void plan_naive_gemm(struct launch_plan *plan, const struct tandem_gemm *gemm,
                     uint32_t group_log2);

#endif
