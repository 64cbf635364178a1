/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tests the launch of a plan if the driver rejects a command in the middle:
 * kernel_launch.c alone, with a driver and streams that this file simulates.
 */
#include <config.h>

#include <string.h>

#include "support/test_list.h"
#include "opencl/launch/clblast.h"
#include "opencl/program/kernel_variants.h"
#include "opencl/launch/kernel_launch.h"
#include "opencl/queue/stream_kernels.h"
#include "opencl/device/cl_status.h"
#include "opencl/queue/buffer_commands.h"
#include "opencl/plan/kernel_step.h"
#include "opencl/queue/hazard_tracking.h"

/* The tests launch no GEMM, so CLBlast is not linked. */
bool clblast_supports_alignment(const struct tandem_gemm *gemm)
{
    (void)gemm;
    return false;
}

enum tandem_status clblast_gemm_launch(struct tandem_stream *stream,
                                       const struct tandem_gemm *gemm)
{
    (void)stream, (void)gemm;
    return TANDEM_FAILED;
}

/* ---- functions that kernel_launch.c calls ---- */

static struct tandem_device device;
static struct tandem_stream stream;
static struct tandem_buffer memory[2], temporary, counters;
/* The third buffer argument of the last kernel. */
static const void *third_buffer;
static uint32_t enqueued, rejected_command, failures, destroyed, cleared;
static bool clear_is_rejected;

cl_int CL_API_CALL clEnqueueNDRangeKernel(cl_command_queue queue,
                                          cl_kernel kernel, cl_uint rank,
                                          const size_t *offset,
                                          const size_t *global,
                                          const size_t *local, cl_uint events,
                                          const cl_event *wait, cl_event *event)
{
    (void)queue, (void)kernel, (void)rank, (void)offset, (void)global;
    (void)local, (void)events, (void)wait, (void)event;
    return enqueued++ == rejected_command ? CL_OUT_OF_RESOURCES : CL_SUCCESS;
}

cl_int CL_API_CALL clEnqueueCopyBuffer(cl_command_queue queue, cl_mem from,
                                       cl_mem to, size_t from_offset,
                                       size_t to_offset, size_t bytes,
                                       cl_uint events, const cl_event *wait,
                                       cl_event *event)
{
    (void)from, (void)to, (void)from_offset, (void)to_offset, (void)bytes;
    return clEnqueueNDRangeKernel(queue, NULL, 1, NULL, NULL, NULL, events,
                                  wait, event);
}

enum tandem_status buffer_fill(struct tandem_stream *on,
                               struct tandem_buffer *buffer, uint64_t offset,
                               uint64_t bytes, const void *pattern,
                               uint32_t pattern_bytes)
{
    (void)on;
    ck_assert_ptr_eq(buffer, &counters);
    ck_assert_uint_eq(pattern_bytes, sizeof(cl_uint));
    ck_assert_uint_eq(*(const cl_uint *)pattern, 0);
    ck_assert_uint_eq(offset, 0);
    ck_assert_uint_eq(bytes, ARRIVAL_COUNTERS * sizeof(cl_uint));
    if (clear_is_rejected)
        return TANDEM_FAILED;
    cleared++;
    return TANDEM_OK;
}

cl_int CL_API_CALL clSetKernelArg(cl_kernel kernel, cl_uint index, size_t bytes,
                                  const void *value)
{
    (void)kernel, (void)bytes;
    if (index == 2)
        third_buffer = value;
    return CL_SUCCESS;
}

cl_int CL_API_CALL clReleaseKernel(cl_kernel kernel)
{
    (void)kernel;
    return CL_SUCCESS;
}

enum tandem_status kernel_variant_create_kernel(struct tandem_device *of,
                                                const struct launch_plan *plan,
                                                uint32_t step,
                                                cl_kernel *out_kernel)
{
    (void)of, (void)plan, (void)step;
    *out_kernel = NULL;
    return TANDEM_OK;
}

enum tandem_status status_from_cl(struct tandem_device *of, cl_int code,
                                  const char *what)
{
    (void)of;
    return code == CL_SUCCESS
               ? TANDEM_OK
               : last_error_set(TANDEM_FAILED, "%s: %d", what, (int)code);
}

enum tandem_status stream_begin_use(struct tandem_stream *on,
                                    struct tandem_buffer *buffer)
{
    (void)on;
    ck_assert_ptr_nonnull(buffer);
    return TANDEM_OK;
}

void stream_note_use(struct tandem_stream *on, struct tandem_buffer *buffer,
                     bool written)
{
    (void)on, (void)buffer, (void)written;
}

bool stream_trim_for_retry(struct tandem_stream *on, cl_int code, bool *retried)
{
    (void)on, (void)code, (void)retried;
    return false;
}

uint64_t stream_next_seqno(struct tandem_stream *on)
{
    (void)on;
    return 1;
}

enum tandem_status stream_fail(struct tandem_stream *on,
                               enum tandem_status status)
{
    (void)on;
    failures++;
    return status;
}

enum tandem_status buffer_create(struct tandem_device *of, uint64_t bytes,
                                 bool internal,
                                 struct tandem_buffer **out_buffer)
{
    (void)of, (void)internal;
    *out_buffer =
        bytes == ARRIVAL_COUNTERS * sizeof(cl_uint) ? &counters : &temporary;
    return TANDEM_OK;
}

void buffer_destroy(struct tandem_buffer *buffer)
{
    ck_assert_ptr_eq(buffer, &temporary);
    destroyed++;
}

enum tandem_status buffer_check(const struct tandem_device *of,
                                const struct tandem_buffer *buffer)
{
    (void)of, (void)buffer;
    return TANDEM_OK;
}

enum tandem_status buffer_check_poison(const struct tandem_buffer *buffer)
{
    (void)buffer;
    return TANDEM_OK;
}

void step_params_patch(unsigned char *out, const struct kernel_step *step,
                       const struct slot_address *addresses)
{
    (void)addresses;
    memcpy(out, step->params, step->param_bytes);
}

enum tandem_status launch_plan_check(const struct launch_plan *plan)
{
    (void)plan;
    return TANDEM_OK;
}

enum tandem_status launch_plan_make(struct launch_plan *plan,
                                    const struct op_request *request)
{
    (void)plan, (void)request;
    return TANDEM_UNSUPPORTED;
}

/* ---- the tests ---- */

/* Destinations of the sums of a GEMM kernel. */
#define TO_RESULT 1u
#define TO_PARTIALS 2u

static void step_add(struct launch_plan *plan, uint8_t kernel, uint32_t written)
{
    static const struct kernel_info info;
    struct kernel_step *step = &plan->step[plan->step_count++];
    memset(step, 0, sizeof(*step));
    step->key = (struct kernel_key){
        .kernel = &info, .gemm_kernel = kernel, .group_log2 = 7};
    step->groups = 1;
    step->param_bytes = 8;
    step->buffer_count = 3;
    step->slots[0] = SLOT_OUTPUT;
    step->slots[1] = SLOT_TEMP;
    step->slots[2] = SLOT_INPUT;
    step->written = written;
}

static enum tandem_status plan_launch(const struct launch_plan *plan)
{
    struct launch_memory operands;
    launch_memory_set(&operands, SLOT_OUTPUT, &memory[0], 0);
    launch_memory_set(&operands, SLOT_INPUT, &memory[1], 0);
    return launch_plan(&stream, plan, &operands);
}

/*
 * Launches a 3xTF32 GEMM after the copy of an operand. The command number
 * `rejected`, counted from 0, fails.
 */
static void launch_strict_gemm(uint32_t sums, uint32_t rejected)
{
    static struct launch_plan plan;
    plan.step_count = 0;
    plan.temp_bytes = 64;
    enqueued = failures = destroyed = 0;
    rejected_command = rejected;
    memset(&stream, 0, sizeof(stream));
    stream.device = &device;
    step_add(&plan, 0, TO_PARTIALS);
    step_add(&plan, 1, sums);
    step_add(&plan, 2, sums);
    if ((sums & TO_PARTIALS) != 0)
        step_add(&plan, 3, TO_RESULT);
    enum tandem_status status = plan_launch(&plan);
    stream_kernels_free(&stream);
    ck_assert_uint_eq(destroyed, 1);
    ck_assert_int_eq(status,
                     rejected < plan.step_count ? TANDEM_FAILED : TANDEM_OK);
    ck_assert_uint_eq(enqueued, rejected < plan.step_count ? rejected + 1
                                                           : plan.step_count);
}

TEST(a_partial_result_is_an_error_of_the_stream)
{
    static const uint32_t sums[2] = {TO_RESULT, TO_RESULT | TO_PARTIALS};
    for (uint32_t i = 0; i < 2; i++) {
        uint32_t steps = i == 0 ? 3 : 4;
        for (uint32_t rejected = 0; rejected <= steps; rejected++) {
            launch_strict_gemm(sums[i], rejected);
            /* A failure before the first write does not poison the result. */
            ck_assert_uint_eq(failures, rejected >= 2 && rejected < steps);
        }
    }
}

TEST(incomplete_partial_sums_are_no_error)
{
    for (uint32_t rejected = 0; rejected <= 4; rejected++) {
        launch_strict_gemm(TO_PARTIALS, rejected);
        ck_assert_uint_eq(failures, 0);
    }
}

/* Launches a kernel that uses the stream's arrival counters. */
static enum tandem_status launch_with_counters(void)
{
    static struct launch_plan plan;
    plan.step_count = 0;
    plan.temp_bytes = 64;
    step_add(&plan, 0, TO_RESULT | TO_PARTIALS);
    plan.step[0].slots[2] = SLOT_COUNTERS;
    enqueued = 0;
    rejected_command = UINT32_MAX;
    return plan_launch(&plan);
}

TEST(counters_are_cleared_before_use)
{
    memset(&stream, 0, sizeof(stream));
    stream.device = &device;
    cleared = 0;
    clear_is_rejected = true;
    ck_assert_int_eq(launch_with_counters(), TANDEM_FAILED);
    ck_assert_uint_eq(enqueued, 0);
    clear_is_rejected = false;
    for (int i = 0; i < 3; i++) {
        ck_assert_int_eq(launch_with_counters(), TANDEM_OK);
        ck_assert_uint_eq(enqueued, 1);
        ck_assert_uint_eq(cleared, 1);
        ck_assert_ptr_eq(third_buffer, &counters.mem);
        stream_kernels_free(&stream);
    }
    /* The state after a failure on the stream. */
    stream.arrival_counters_are_zero = false;
    ck_assert_int_eq(launch_with_counters(), TANDEM_OK);
    ck_assert_uint_eq(cleared, 2);
    stream_kernels_free(&stream);
}

TEST_MAIN(tests_run("launch"))
