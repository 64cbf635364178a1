/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The OpenCL plugin while a build or a command never completes: no call waits
 * without limit, and calls that do not need it work. A test releases what it
 * made hang. Other builds and commands may take longer than the timeout on a
 * slow machine, so the test repeats such calls, as a host would.
 */
#include <stdatomic.h>
#include <stdlib.h>
#include <time.h>

#include "../opencl-layer/fake_clock.h"
#include "single_fault.h"

#define SHORT "blocking_timeout_ms", "200"

static const struct timespec moment = {0, 5000000};
#define MOMENTS 24000

/* Launches a kernel and repeats the launch while its build is not finished. */
static enum tandem_status launch_wait(uint32_t id, struct tandem_buffer *buffer)
{
    enum tandem_status status = unary(id, buffer);

    for (int i = 0; i < MOMENTS && status == TANDEM_FAILED; i++) {
        nanosleep(&moment, NULL);
        status = unary(id, buffer);
    }
    return status;
}

/* Waits for a build in the background. */
static enum tandem_status build_wait(uint32_t id)
{
    enum tandem_status status = poll_ready(id);

    for (int i = 0; i < MOMENTS && status != TANDEM_OK; i++) {
        nanosleep(&moment, NULL);
        status = poll_ready(id);
    }
    return status;
}

static void expect_close(void)
{
    OK(synchronize());
    device_end();
}

/* Releases the hanging work, so that the process can end. */
static void hang_release(void)
{
    plug.release();
    for (int i = 0; i < MOMENTS && !is_context_released(); i++)
        nanosleep(&moment, NULL);
    expect_no_object_left();
}

/* The build hangs in the background, in a launch, and behind another build. */
TEST(a_build_that_never_completes)
{
    struct tandem_buffer *buffer;

    device_new(SHORT);
    buffer = ramp_new();
    script(LAYER_FAULT_HANG, "clBuildProgram", "-DOP=op_erf ", 0);
    OK(prepare(TANDEM_OP_ERF));
    OK(prepare(TANDEM_OP_ABS));
    clock_set_real_speed(true);
    OK(launch_wait(TANDEM_OP_NEG, buffer));
    OK(build_wait(TANDEM_OP_ABS));
    EXPECT_TIMEOUT(ready_wait(TANDEM_OP_ERF), TANDEM_FAILED);
    expect_message("may never do so");
    RETURNS(TANDEM_FAILED, unary(TANDEM_OP_ERF, buffer));
    expect_message("blocking_timeout_ms");
    OK(unary(TANDEM_OP_ABS, buffer));
    plug.release();
    OK(unary(TANDEM_OP_NEG, buffer));
    OK(build_wait(TANDEM_OP_ERF));
    OK(unary(TANDEM_OP_ERF, buffer));
    expect_close();
}

TEST(close_leaks_a_build_that_never_completes)
{
    struct tandem_buffer *buffer;

    device_new(SHORT);
    buffer = ramp_new();
    script(LAYER_FAULT_HANG, "clBuildProgram", "-DOP=op_erf ", 0);
    EXPECT_TIMEOUT(unary(TANDEM_OP_ERF, buffer), TANDEM_FAILED);
    for (int i = 0; i < MOMENTS && plug.hanging() == 0; i++)
        nanosleep(&moment, NULL);
    ck_assert_uint_eq(plug.hanging(), 1);
    workload_close(&work);
    hang_release();
}

TEST(a_failed_build_reports_its_log)
{
    struct tandem_buffer *buffer;

    device_new(NULL, NULL);
    buffer = ramp_new();
    script(LAYER_FAULT_CALL, "clBuildProgram", "-DOP=op_erf ",
           -11 /* CL_BUILD_PROGRAM_FAILURE */);
    for (int i = 0; i < 5; i++) {
        RETURNS(TANDEM_FAILED, unary(TANDEM_OP_ERF, buffer));
        expect_message("line 1 is wrong");
    }
    ck_assert_uint_eq(plug_counts(&plug).faults, 9);
    RETURNS(TANDEM_FAILED, poll_ready(TANDEM_OP_ERF));
    OK(unary(TANDEM_OP_NEG, buffer));
    device_end();
}

/* PoCL reads the variable once, when it lists its devices. */
TEST(a_build_without_pocls_cache_is_reported)
{
    const char *cache = getenv("POCL_CACHE_DIR");
    char *saved = cache != NULL ? strdup(cache) : NULL;
    struct tandem_device_info info = {.struct_size = sizeof info};
    struct tandem_buffer *buffer;

    device_new(NULL, NULL);
    OK(plug.api->device_describe(0, &info));
    buffer = ramp_new();
    setenv("POCL_CACHE_DIR", "/dev/null/cache", 1);
    script(LAYER_FAULT_CALL, "clBuildProgram", "-DOP=op_erf ",
           -11 /* CL_BUILD_PROGRAM_FAILURE */);
    RETURNS(TANDEM_FAILED, unary(TANDEM_OP_ERF, buffer));
    expect_message(
        strstr(info.platform, "Portable Computing") != NULL
            ? "/dev/null/cache (from POCL_CACHE_DIR) cannot be written"
            : "line 1 is wrong");
    plug.script_set(NULL);
    if (saved != NULL)
        setenv("POCL_CACHE_DIR", saved, 1);
    else
        unsetenv("POCL_CACHE_DIR");
    free(saved);
    workload_close(&work);
    expect_no_object_left();
}

static void statuses_add(void *user, enum tandem_status status)
{
    atomic_fetch_add((atomic_uint *)user, 1000u + (unsigned)status);
}

TEST(close_leaves_work_that_never_completes)
{
    static atomic_uint statuses;
    const struct layer_counts start = plug_counts(&plug);
    struct tandem_buffer *buffer;
    struct tandem_event *event;

    device_new(SHORT);
    buffer = ramp_new();
    OK(launch_wait(TANDEM_OP_NEG, buffer));
    OK(synchronize());
    script(LAYER_FAULT_ENDLESS, "clEnqueueNDRangeKernel", NULL, 0);
    OK(unary(TANDEM_OP_NEG, buffer));
    OK(plug.api->event_record(work.stream, &event));
    OK(plug.api->event_callback(event, statuses_add, &statuses));
    clock_set_real_speed(true);
    workload_close(&work);
    clock_set_real_speed(false);
    /* One call, with TANDEM_DEVICE_LOST. */
    ck_assert_uint_eq(atomic_load(&statuses), 1000u + TANDEM_DEVICE_LOST);
    RETURNS(TANDEM_INVALID_ARGUMENT,
            plug.api->alloc(work.device, TANDEM_BYTES(64), &buffer));
    plug.release();
    device_new(SHORT);
    OK(launch_wait(TANDEM_OP_NEG, ramp_new()));
    OK(synchronize());
    workload_close(&work);
    expect_freed_later(&start);
}

TEST_MAIN(single_run("stuck", NULL))
