/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Usage: operator-emulation DIRECTORY COMPILER OPTION...
 *
 * Runs the conformance cases of attention, softmax, normalizations and
 * reductions on an emulated NVIDIA GPU: plans the calls for such a GPU,
 * compiles the kernels for the host CPU into DIRECTORY, with tensor-core
 * instructions, warp shuffles and votes as functions, and runs them. The
 * emulation detects items that wait at different barriers.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../conformance/suite_class.h"
#include "common/last_error.h"
#include "common/prepared_call.h"
#include "host_compiled_kernel.h"

#define GROUP_LOG2 8u
#define BUFFER_ALIGNMENT 256u

static const struct platform_device hardware = {.correct_divide = true,
                                                .nvidia = true,
                                                .tensor_cores = true,
                                                .info = {.compute_units = 132}};

/* ---- the emulated device; a buffer is a pointer to its bytes ---- */

static enum tandem_status
buffer_alloc(struct tandem_device *device,
             const struct tandem_alloc_options *options,
             struct tandem_buffer **out_buffer)
{
    (void)device;
    *out_buffer = aligned_alloc(BUFFER_ALIGNMENT,
                                (options->bytes / BUFFER_ALIGNMENT + 2) *
                                    BUFFER_ALIGNMENT);
    return *out_buffer != NULL ? TANDEM_OK : TANDEM_OUT_OF_MEMORY;
}

static void buffer_free(struct tandem_buffer *buffer)
{
    free(buffer);
}

static enum tandem_status buffer_upload(struct tandem_stream *stream,
                                        struct tandem_buffer *buffer,
                                        uint64_t offset, const void *source,
                                        uint64_t bytes, uint32_t flags)
{
    (void)stream;
    (void)flags;
    memcpy((char *)buffer + offset, source, bytes);
    return TANDEM_OK;
}

static enum tandem_status buffer_download(struct tandem_stream *stream,
                                          struct tandem_buffer *buffer,
                                          uint64_t offset, void *target,
                                          uint64_t bytes, uint32_t flags,
                                          uint64_t timeout_ns)
{
    (void)stream;
    (void)flags;
    (void)timeout_ns;
    memcpy(target, (const char *)buffer + offset, bytes);
    return TANDEM_OK;
}

static enum tandem_status stream_synchronize(struct tandem_stream *stream,
                                             uint64_t timeout_ns)
{
    (void)stream;
    (void)timeout_ns;
    return TANDEM_OK;
}

struct tandem_prepared {
    struct prepared_call *call;
    struct launch_plan plan;
};

static void prepared_release(struct tandem_prepared *prepared)
{
    free(prepared->call);
    free(prepared);
}

static uint32_t operand_slot(const struct prepared_call *call, uint32_t number)
{
    const uint32_t same = call->operands[number].same_as_input;
    if (same != 0)
        return SLOT_INPUT + same - 1;
    return number < call->input_count
               ? SLOT_INPUT + number
               : SLOT_OUTPUT + number - call->input_count;
}

static enum tandem_status plan_make(struct launch_plan *out,
                                    const struct prepared_call *call)
{
    struct tandem_tensor_desc tensors[2 * TANDEM_MAX_OPERANDS];
    const struct tandem_tensor_desc *pointers[2 * TANDEM_MAX_OPERANDS];
    for (uint32_t i = 0; i < call->input_count + call->output_count; i++) {
        const uint32_t alignment = call->operands[i].alignment;
        tensors[i] = call->operands[i].tensor;
        tensors[i].buffer = slot_buffer(
            operand_slot(call, i),
            alignment < MAX_SLOT_ALIGNMENT ? alignment : MAX_SLOT_ALIGNMENT);
        pointers[i] = &tensors[i];
    }
    const struct op_request request = {.hardware = &hardware,
                                       .group_log2 = GROUP_LOG2,
                                       .op = &call->op,
                                       .inputs = pointers,
                                       .outputs = pointers + call->input_count,
                                       .input_count = call->input_count,
                                       .output_count = call->output_count};
    return launch_plan_make(out, &request);
}

static enum tandem_status
prepare(struct tandem_device *device, const struct tandem_op *op,
        const struct tandem_operand_desc *const *inputs, uint32_t input_count,
        const struct tandem_operand_desc *const *outputs, uint32_t output_count,
        uint32_t flags, struct tandem_prepared_info *out_info,
        struct tandem_prepared **out_prepared)
{
    struct tandem_prepared *made = calloc(1, sizeof(*made));
    (void)device;
    (void)out_info;
    if (made == NULL)
        return TANDEM_OUT_OF_MEMORY;
    enum tandem_status status = prepared_call_create(
        op, inputs, input_count, outputs, output_count, &made->call);
    if (status == TANDEM_OK)
        status = plan_make(&made->plan, made->call);
    if (status == TANDEM_OK && (flags & TANDEM_PREPARE_QUERY) == 0)
        *out_prepared = made;
    else
        prepared_release(made);
    return status;
}

static enum tandem_status launch(struct tandem_stream *stream,
                                 struct tandem_prepared *prepared,
                                 const struct tandem_memory *memory,
                                 uint32_t count, const double *scalars,
                                 uint32_t scalar_count)
{
    void *slots[SLOT_COUNT] = {0};
    uint64_t offsets[SLOT_COUNT] = {0};
    (void)stream;
    (void)scalars;
    for (uint32_t i = 0; i < count; i++) {
        const uint32_t slot = operand_slot(prepared->call, i);
        slots[slot] = memory[i].buffer;
        offsets[slot] = memory[i].byte_offset;
    }
    if (scalar_count == 0 && plan_run(&prepared->plan, slots, offsets))
        return TANDEM_OK;
    return last_error_set(TANDEM_FAILED, "the plan cannot be run");
}

/* ---- cases ---- */

static bool class_is_emulated(uint32_t op_class)
{
    switch (op_class) {
    case TANDEM_CLASS_ATTENTION:
    case TANDEM_CLASS_SOFTMAX:
    case TANDEM_CLASS_NORM:
    case TANDEM_CLASS_REDUCE:
        return true;
    default:
        return false;
    }
}

int main(int argc, char **argv)
{
    struct suite_options options = {.seed = 1};
    struct suite suite = {.options = &options,
                          .api = {.last_error = last_error_get,
                                  .alloc = buffer_alloc,
                                  .free = buffer_free,
                                  .upload = buffer_upload,
                                  .download = buffer_download,
                                  .prepare = prepare,
                                  .prepared_release = prepared_release,
                                  .launch = launch,
                                  .stream_synchronize = stream_synchronize}};
    if (!emulation_begin(argc, argv, &hardware))
        return 2;
    for (uint32_t i = 0; i < op_table_count; i++) {
        if (!class_is_emulated(op_table[i].op_class))
            continue;
        options.only = op_table[i].name;
        /* Attention has kernels of many forms, and few cases. */
        options.smoke = op_table[i].op_class != TANDEM_CLASS_ATTENTION;
        operators_run(&suite);
        printf("%s: %" PRIu64 " cases passed so far\n", op_table[i].name,
               suite.passed);
        fflush(stdout);
    }
    return emulation_end(suite.passed, suite.failed);
}
