/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tests what happens to a plan when the driver refuses a command in the middle:
 * kernel_launch.c alone, with a driver and streams that this file simulates.
 */
#include <config.h>

#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "../../support/check_runner.h"
#include "opencl/queue/kernel_launch.h"
#include "opencl/device/cl_status.h"
#include "opencl/queue/buffer_commands.h"
#include "opencl/queue/hazard_tracking.h"

/* ---- what kernel_launch.c calls ---- */

static struct tandem_device device;
static struct tandem_stream stream;
static struct tandem_buffer memory[2], temporary, counters;
static const void *last_of_three; /* what a kernel has for its third buffer */
static uint32_t enqueued, refused_at, failures, destroyed, cleared;
static bool clear_refused;

cl_int CL_API_CALL clEnqueueNDRangeKernel(
    cl_command_queue queue, cl_kernel kernel, cl_uint rank,
    const size_t *offset, const size_t *global, const size_t *local,
    cl_uint events, const cl_event *wait, cl_event *event)
{
    (void)queue, (void)kernel, (void)rank, (void)offset, (void)global;
    (void)local, (void)events, (void)wait, (void)event;
    return enqueued++ == refused_at ? CL_OUT_OF_RESOURCES : CL_SUCCESS;
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
    if (clear_refused)
        return TANDEM_FAILED;
    cleared++;
    return TANDEM_OK;
}

cl_int CL_API_CALL clSetKernelArg(cl_kernel kernel, cl_uint index,
                                  size_t bytes, const void *value)
{
    (void)kernel, (void)bytes;
    if (index == 2)
        last_of_three = value;
    return CL_SUCCESS;
}

cl_int CL_API_CALL clReleaseKernel(cl_kernel kernel)
{
    (void)kernel;
    return CL_SUCCESS;
}

enum tandem_status kernel_variant_create_kernel(struct tandem_device *of,
                                                const struct kernel_step *step,
                                                cl_kernel *out_kernel)
{
    (void)of, (void)step;
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

bool stream_trim_for_retry(struct tandem_stream *on, cl_int code,
                           bool *retried)
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
                                const struct tandem_buffer *buffer,
                                const char *what)
{
    (void)of, (void)buffer, (void)what;
    return TANDEM_OK;
}

enum tandem_status buffer_check_poison(const struct tandem_buffer *buffer)
{
    (void)buffer;
    return TANDEM_OK;
}

enum tandem_status launch_plan_make(struct launch_plan *plan,
                                    const struct op_request *request)
{
    (void)plan, (void)request;
    return TANDEM_UNSUPPORTED;
}

/* ---- the tests ---- */

/* Where a product's sums go. */
#define TO_RESULT 1u
#define TO_PARTIALS 2u

static void step_add(struct launch_plan *plan, uint32_t kernel,
                     uint32_t written)
{
    struct kernel_step *step = &plan->step[plan->step_count++];
    memset(step, 0, sizeof(*step));
    step->key = variant_key_kernel(kernel, 0, false, 7);
    step->groups = 1;
    step->param_bytes = 8;
    step->buffer_count = 3;
    step->buffers[0] = &memory[0];
    step->buffers[2] = &memory[1]; /* and [1] is the plan's temporary */
    step->written = written;
}

/* A strict product after the copy of an operand, of which command number
 * refused, from 0, is not taken. */
static void try(uint32_t sums, uint32_t refused)
{
    static struct launch_plan plan;
    plan.step_count = 0;
    plan.temp_bytes = 64;
    enqueued = failures = destroyed = 0;
    refused_at = refused;
    memset(&stream, 0, sizeof(stream));
    stream.device = &device;
    step_add(&plan, KERNEL_TRANSPOSE_TILED, TO_PARTIALS);
    step_add(&plan, KERNEL_GEMM_3XTF32, sums);
    step_add(&plan, KERNEL_GEMM_SIMT, sums);
    if ((sums & TO_PARTIALS) != 0)
        step_add(&plan, KERNEL_SPLIT_K_FIXUP, TO_RESULT);
    enum tandem_status status = launch_plan(&stream, &plan);
    stream_kernels_free(&stream);
    ck_assert_uint_eq(destroyed, 1);
    ck_assert_int_eq(status,
                     refused < plan.step_count ? TANDEM_FAILED : TANDEM_OK);
    ck_assert_uint_eq(enqueued, refused < plan.step_count ? refused + 1
                                                          : plan.step_count);
}

START_TEST(a_result_left_half_way_stays_on_the_stream)
{
    static const uint32_t sums[2] = {TO_RESULT, TO_RESULT | TO_PARTIALS};
    for (uint32_t i = 0; i < 2; i++) {
        uint32_t steps = i == 0 ? 3 : 4;
        for (uint32_t refused = 0; refused <= steps; refused++) {
            try(sums[i], refused);
            /* Before anything is written, nothing shows. */
            ck_assert_uint_eq(failures, refused >= 2 && refused < steps);
        }
    }
}
END_TEST

START_TEST(partials_that_are_left_show_nowhere)
{
    for (uint32_t refused = 0; refused <= 4; refused++) {
        try(TO_PARTIALS, refused);
        ck_assert_uint_eq(failures, 0);
    }
}
END_TEST

/* A kernel that counts in the stream's counters. */
static enum tandem_status counted(void)
{
    static struct launch_plan plan;
    plan.step_count = 0;
    plan.temp_bytes = 64;
    step_add(&plan, KERNEL_REDUCE_LAST_GROUP, TO_RESULT | TO_PARTIALS);
    plan.step[0].buffers[2] = NULL;
    plan.step[0].arrival_counters = 2;
    enqueued = 0;
    refused_at = UINT32_MAX;
    return launch_plan(&stream, &plan);
}

START_TEST(counters_are_cleared_before_they_count)
{
    memset(&stream, 0, sizeof(stream));
    stream.device = &device;
    cleared = 0;
    clear_refused = true;
    ck_assert_int_eq(counted(), TANDEM_FAILED);
    ck_assert_uint_eq(enqueued, 0);
    clear_refused = false;
    for (int i = 0; i < 3; i++) {
        ck_assert_int_eq(counted(), TANDEM_OK);
        ck_assert_uint_eq(enqueued, 1);
        ck_assert_uint_eq(cleared, 1);
        ck_assert_ptr_eq(last_of_three, &counters.mem);
        stream_kernels_free(&stream);
    }
    /* As a failure of the stream's leaves it. */
    stream.arrival_counters_are_zero = false;
    ck_assert_int_eq(counted(), TANDEM_OK);
    ck_assert_uint_eq(cleared, 2);
    stream_kernels_free(&stream);
}
END_TEST

int main(void)
{
    TCase *tests = tcase_create("launch");
    tcase_add_test(tests, a_result_left_half_way_stays_on_the_stream);
    tcase_add_test(tests, partials_that_are_left_show_nowhere);
    tcase_add_test(tests, counters_are_cleared_before_they_count);
    return runner_run_case("launch", tests);
}
