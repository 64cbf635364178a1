/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The OpenCL plugin on a GPU whose commands or builds do not complete: calls
 * without a timeout parameter return all the same, memory that the driver may
 * still use is not freed, and the calls work again once the command has
 * completed. The blocking timeout expires only where a test wants it.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "../opencl-layer/fake_clock.h"
#include "single_fault.h"

#define SHORT_MS "300"
#define LONG_MS "100000"
/* The number of attempts, 10 ms apart, before a call counts as hanging. */
#define RETRIES 6000
#define MIB ((uint64_t)1 << 20)
/* The plugin's FIRST_CHUNK_BYTES, and the number of these in its ring. */
#define CHUNK (MIB / 2)
#define CHUNKS 33
#define LARGE (5 * MIB)
#define BEYOND_RING ((CHUNKS + 1) * CHUNK)

static unsigned char source[BEYOND_RING], target[LARGE];

/* Opens a device with this timeout and one more open key. key may be NULL. */
static void device_with(const char *limit_ms, const char *key,
                        const char *value)
{
    const char *const pairs[] = {
        "cache_dir", "", "blocking_timeout_ms", limit_ms, key, value, NULL};

    device_open(pairs);
}

static void script_once(enum layer_fault fault, const char *function,
                        uint64_t nth)
{
    script_nth(fault, function, nth, 1, -30 /* CL_INVALID_VALUE */);
}

static enum tandem_status alloc(uint64_t bytes, struct tandem_buffer **out)
{
    return plug.api->alloc(work.device, TANDEM_BYTES(bytes), out);
}

static enum tandem_status upload_some(struct tandem_buffer *buffer,
                                      uint64_t bytes)
{
    return plug.api->upload(work.stream, buffer, 0, source, bytes, 0);
}

static enum tandem_status fill(struct tandem_buffer *buffer)
{
    const uint32_t pattern = 0x01020304u;

    return plug.api->fill(work.stream, buffer, 0, CHUNK, &pattern, 4);
}

/* Retries while deferred releases are pending, because these may take time. */
static bool retry_later(int attempt, enum tandem_status status)
{
    nanosleep(&(struct timespec){0, attempt != 0 ? 10000000 : 0}, NULL);
    return status == TANDEM_NOT_READY && attempt < RETRIES;
}

static struct tandem_buffer *alloc_later(uint64_t bytes)
{
    struct tandem_buffer *buffer = NULL;
    enum tandem_status status = TANDEM_NOT_READY;

    for (int i = 0; retry_later(i, status); i++)
        status = alloc(bytes, &buffer);
    ck_assert_int_eq(status, TANDEM_OK);
    return buffer;
}

/* Checks that the buffer can be written and read. */
static void expect_buffer_works(struct tandem_buffer *buffer, uint64_t bytes)
{
    enum tandem_status status = TANDEM_NOT_READY;

    for (uint64_t i = 0; i < bytes; i++)
        source[i] = (unsigned char)(i * 7 + bytes / 3);
    for (int i = 0; retry_later(i, status); i++)
        status = upload_some(buffer, bytes);
    ck_assert_int_eq(status, TANDEM_OK);
    OK(plug.api->download(work.stream, buffer, 0, target, bytes, 0,
                          TANDEM_TIMEOUT_INFINITE));
    ck_assert(memcmp(source, target, bytes) == 0);
}

/*
 * While a command that a call gave up waiting for is still running,
 * allocations query it once each and do not wait.
 */
static void allocations_do_not_wait(int count)
{
    struct tandem_buffer *buffer;

    for (int i = 0; i < count; i++) {
        const uint64_t before_it = calls_of("clGetEventInfo");

        EXPECT_TIMEOUT(alloc(2 * MIB, &buffer), TANDEM_NOT_READY);
        ck_assert_uint_le(calls_of("clGetEventInfo") - before_it,
                          (uint64_t)i + 4);
    }
}

TEST(an_allocation)
{
    struct tandem_buffer *buffer, *small;

    device_with(SHORT_MS, NULL, NULL);
    script_once(LAYER_FAULT_ENDLESS, "clEnqueueFillBuffer", 1);
    EXPECT_TIMEOUT(alloc(2 * MIB, &buffer), TANDEM_NOT_READY);
    ck_assert_ptr_null(buffer);
    allocations_do_not_wait(5);
    OK(alloc(CHUNK, &small));
    plug.release();
    expect_buffer_works(alloc_later(2 * MIB), 2 * MIB);
    expect_buffer_works(small, CHUNK);
    device_end();
}

/* An upload behind a command that does not end. */
static const struct {
    uint64_t bytes;
    int before; /* The number of uploads that precede it. */
    const char *transfer_path, *message;
} blocked_uploads[] = {
    {CHUNK, CHUNKS, NULL, ""}, /* There is no room in the ring. */
    {LARGE, 0, NULL, ""},      /* The upload waits for the work before it. */
    /* The first part of the upload fills the ring, and the rest never starts.
     */
    {BEYOND_RING, 0, "ring", "pinned memory"}};

LOOP_TEST(an_upload_that_waits, CASES_IN(blocked_uploads))
{
    const uint64_t bytes = blocked_uploads[_i].bytes;
    const char *path = blocked_uploads[_i].transfer_path;
    struct tandem_buffer *buffer;

    device_with(SHORT_MS, path ? "test.transfer_path" : NULL, path);
    buffer = alloc_later(bytes);
    script_once(LAYER_FAULT_ENDLESS, "clEnqueueFillBuffer", 1);
    OK(fill(buffer));
    for (int i = 0; i < blocked_uploads[_i].before; i++)
        OK(upload_some(buffer, bytes));
    EXPECT_TIMEOUT(upload_some(buffer, bytes), TANDEM_NOT_READY);
    expect_message(blocked_uploads[_i].message);
    plug.release();
    OK(synchronize());
    if (bytes == BEYOND_RING) {
        RETURNS(TANDEM_FAILED,
                plug.api->download(work.stream, buffer, 0, target, 64, 0,
                                   TANDEM_TIMEOUT_INFINITE));
        expect_message("overwrite all of it");
        OK(upload_some(buffer, bytes));
    }
    expect_buffer_works(buffer, bytes < LARGE ? bytes : LARGE);
    device_end();
}

/*
 * Polled downloads enqueue nothing while earlier work is running. Downloads
 * with longer timeouts keep their memory of the ring, until none is left.
 */
TEST(downloads_that_wait_for_the_work_before_them)
{
    struct tandem_buffer *buffer;
    uint64_t reads;

    device_with(LONG_MS, "test.transfer_path", "ring");
    OK(alloc(CHUNK, &buffer));
    expect_buffer_works(buffer, CHUNK);
    script_once(LAYER_FAULT_ENDLESS, "clEnqueueFillBuffer", 1);
    OK(fill(buffer));
    reads = plug_counts(&plug).reads;
    memset(target, 0xee, CHUNK);
    for (int i = 0; i < 100; i++)
        RETURNS(TANDEM_NOT_READY, plug.api->download(work.stream, buffer, 0,
                                                     target, CHUNK, 0, 0));
    ck_assert_uint_eq(plug_counts(&plug).reads, reads);
    for (int i = 0; i < 40; i++)
        EXPECT_TIMEOUT(plug.api->download(work.stream, buffer, 0, target, CHUNK,
                                          0, UINT64_C(2000000000)),
                       TANDEM_NOT_READY);
    expect_message("pinned memory");
    plug.release();
    OK(synchronize());
    for (uint64_t i = 0; i < CHUNK; i++)
        ck_assert_uint_eq(target[i], 0xee);
    expect_buffer_works(buffer, CHUNK);
    device_end();
}

TEST(memory_that_is_to_be_pinned)
{
    struct tandem_buffer *buffer;
    enum tandem_status status = TANDEM_NOT_READY;
    void *memory;

    device_with(SHORT_MS, NULL, NULL);
    OK(alloc(CHUNK, &buffer));
    script_once(LAYER_FAULT_ENDLESS, "clEnqueueMapBuffer", 1);
    EXPECT_TIMEOUT(upload_some(buffer, 64), TANDEM_NOT_READY);
    plug.release();
    expect_buffer_works(buffer, 64);
    script_once(LAYER_FAULT_ENDLESS, "clEnqueueUnmapMemObject", 1);
    EXPECT_TIMEOUT(plug.api->trim(work.device, 0), TANDEM_OK);
    plug.release();
    expect_buffer_works(buffer, 64);
    script_once(LAYER_FAULT_ENDLESS, "clEnqueueMapBuffer", 1);
    EXPECT_TIMEOUT(plug.api->host_alloc(work.device, 64, &memory),
                   TANDEM_NOT_READY);
    plug.release();
    for (int i = 0; retry_later(i, status); i++)
        status = plug.api->host_alloc(work.device, 64, &memory);
    ck_assert_int_eq(status, TANDEM_OK);
    plug.api->host_free(work.device, memory);
    workload_close(&work);
}

/* A thread that makes calls at the same time. */
struct other_thread {
    pthread_t thread;
    enum tandem_status (*call)(void);
    enum tandem_status status;
    atomic_bool done;
};

static void *other_run(void *argument)
{
    struct other_thread *other_thread = argument;

    other_thread->status = other_thread->call();
    atomic_store(&other_thread->done, true);
    return NULL;
}

static void other_start(struct other_thread *other_thread,
                        enum tandem_status (*call)(void))
{
    *other_thread = (struct other_thread){.call = call};
    ck_assert_int_eq(
        pthread_create(&other_thread->thread, NULL, other_run, other_thread),
        0);
}

/* Returns true if the other thread finishes while a command does not. */
static bool other_thread_ends(struct other_thread *other_thread)
{
    for (int i = 0; i < 3000 && !atomic_load(&other_thread->done); i++)
        nanosleep(&(struct timespec){0, 10000000}, NULL);
    return atomic_load(&other_thread->done);
}

/*
 * Checks that the call of another thread ends while the first thread still
 * waits, and that both calls succeed when the command has completed.
 */
static void expect_not_blocked(struct other_thread *first,
                               enum tandem_status (*call)(void))
{
    struct other_thread other;
    bool ends;

    other_start(&other, call);
    ends = other_thread_ends(&other) && !atomic_load(&first->done);
    plug.release();
    pthread_join(other.thread, NULL);
    pthread_join(first->thread, NULL);
    ck_assert(ends);
    OK(other.status);
    OK(first->status);
}

static enum tandem_status trim(void)
{
    return plug.api->trim(work.device, 0);
}

static enum tandem_status stream_come_and_go(void)
{
    struct tandem_stream *stream = NULL;
    enum tandem_status status =
        plug.api->stream_create(work.device, 0, &stream);

    plug.api->stream_destroy(stream);
    return status;
}

TEST(a_trim_does_not_block)
{
    const uint64_t unmaps = plug_counts(&plug).unmaps;
    struct tandem_buffer *buffer;
    struct other_thread trims;

    device_with(LONG_MS, NULL, NULL);
    OK(alloc(CHUNK, &buffer));
    expect_buffer_works(buffer, 64);
    script_once(LAYER_FAULT_ENDLESS, "clEnqueueUnmapMemObject", 1);
    other_start(&trims, trim);
    while (plug_counts(&plug).unmaps == unmaps)
        nanosleep(&(struct timespec){0, 1000000}, NULL);
    expect_not_blocked(&trims, stream_come_and_go);
    expect_buffer_works(buffer, 64);
    device_end();
}

static struct tandem_event *event;

static enum tandem_status wait_event(void)
{
    return plug.api->event_wait(event, TANDEM_TIMEOUT_INFINITE);
}

TEST(an_event_wait_does_not_block_others)
{
    struct tandem_buffer *buffer;
    struct other_thread waits;

    device_with(LONG_MS, NULL, NULL);
    OK(alloc(CHUNK, &buffer));
    OK(fill(buffer));
    OK(plug.api->event_record(work.stream, &event));
    script_once(LAYER_FAULT_HANG, "clFlush", 1);
    other_start(&waits, wait_event);
    while (plug.hanging() == 0)
        nanosleep(&(struct timespec){0, 1000000}, NULL);
    expect_not_blocked(&waits, stream_come_and_go);
    plug.api->event_destroy(event);
    device_end();
}

static enum tandem_status alloc_another(void)
{
    struct tandem_buffer *buffer;

    return alloc(3 * CHUNK, &buffer);
}

static enum tandem_status look(void)
{
    struct tandem_memory_stats stats = {.struct_size = sizeof stats};

    return plug.api->memory_stats(work.device, &stats);
}

/* The memory limit makes this allocation release cached blocks. */
TEST(an_allocation_within_the_limit_does_not_block_others)
{
    struct tandem_buffer *buffer;
    struct other_thread allocates;

    device_with(LONG_MS, "memory_limit_bytes", "3145728");
    OK(alloc(2 * MIB, &buffer));
    plug.api->free(buffer);
    script_once(LAYER_FAULT_HANG, "clReleaseMemObject", 1);
    other_start(&allocates, alloc_another);
    while (plug.hanging() == 0)
        nanosleep(&(struct timespec){0, 1000000}, NULL);
    expect_not_blocked(&allocates, look);
    device_end();
}

/*
 * The wait finds the failure, and the work behind it never completes: the
 * second marker, which the wait enqueues, hangs.
 */
static void fail_and_go_on(struct tandem_buffer *buffer)
{
    script_once(LAYER_FAULT_AFTER_ENQUEUE, "clEnqueueFillBuffer", 1);
    OK(fill(buffer));
    script_once(LAYER_FAULT_ENDLESS, "clEnqueueMarkerWithWaitList", 2);
}

TEST(a_failure_does_not_lengthen_a_wait)
{
    struct tandem_buffer *buffer;
    const time_t start = time(NULL);

    device_with(LONG_MS, NULL, NULL);
    OK(alloc(CHUNK, &buffer));
    fail_and_go_on(buffer);
    EXPECT_TIMEOUT(plug.api->stream_synchronize(work.stream, 20000000u),
                   TANDEM_NOT_READY);
    RETURNS(TANDEM_FAILED, fill(buffer));
    ck_assert_int_lt(time(NULL) - start, 60);
    plug.release();
    RETURNS(TANDEM_FAILED, synchronize());
    OK(synchronize());
    expect_buffer_works(buffer, CHUNK);
    device_end();
}

/* The first import builds its kernel from programs that were loaded before. */
TEST(an_import_waits_for_no_compiler)
{
    static _Alignas(4096) unsigned char memory[4096];
    struct tandem_buffer *buffer;
    uint64_t builds;

    device_with(LONG_MS, NULL, NULL);
    OK(prepare(TANDEM_OP_ABS));
    for (int i = 0; retry_later(i, poll_ready(TANDEM_OP_ABS)); i++)
        continue;
    OK(poll_ready(TANDEM_OP_ABS));
    builds = plug_counts(&plug).builds;
    OK(plug.api->import_host(work.device, memory, sizeof memory, NULL, NULL,
                             &buffer));
    ck_assert_uint_eq(plug_counts(&plug).builds, builds);
    device_end();
}

/* A device that does not respond cannot share memory. */
LOOP_TEST(an_import_that_does_not_end, 2)
{
    static _Alignas(4096) unsigned char memory[4096];
    struct tandem_buffer *buffer;

    device_with(SHORT_MS, NULL, NULL);
    script_once(LAYER_FAULT_ENDLESS,
                _i == 0 ? "clEnqueueFillBuffer" : "clEnqueueCopyBuffer", 1);
    EXPECT_TIMEOUT(plug.api->import_host(work.device, memory, sizeof memory,
                                         NULL, NULL, &buffer),
                   TANDEM_UNSUPPORTED);
    ck_assert_ptr_null(buffer);
    plug.release();
    device_end();
}

/* Nine operators, built by eight threads. */
TEST(builds_in_all_threads)
{
    static const uint32_t ops[] = {
        TANDEM_OP_NEG,  TANDEM_OP_ABS, TANDEM_OP_SQRT,
        TANDEM_OP_EXP,  TANDEM_OP_LOG, TANDEM_OP_SIN,
        TANDEM_OP_TANH, TANDEM_OP_ERF, TANDEM_OP_COS};
    const struct layer_script hang = {.fault = LAYER_FAULT_HANG,
                                      .function = "clBuildProgram",
                                      .nth = 1,
                                      .times = UINT64_MAX};
    struct tandem_buffer *buffer;

    device_with(SHORT_MS, NULL, NULL);
    OK(alloc(CHUNK, &buffer));
    plug.script_set(&hang);
    for (int i = 0; i < 9; i++)
        EXPECT_TIMEOUT(unary(ops[i], buffer), TANDEM_FAILED);
    expect_message("each of 8 threads");
    while (plug.hanging() < 8) /* The last build may have just started. */
        nanosleep(&(struct timespec){0, 1000000}, NULL);
    RETURNS(TANDEM_NOT_READY, poll_ready(TANDEM_OP_COS));
    plug.release();
    for (int i = 0; i < 9; i++) {
        int n = 0;

        while (unary(ops[i], buffer) != TANDEM_OK && n++ < RETRIES)
            nanosleep(&(struct timespec){0, 10000000}, NULL);
        ck_assert_int_lt(n, RETRIES);
    }
    device_end();
}

/*
 * A download waits for the caller's timeout plus a short time, even if the
 * transfer itself never completes. If it uses the ring, nothing writes to the
 * caller's memory afterwards.
 */
LOOP_TEST(a_download_that_does_not_end, 2)
{
    static const char *const transfer_paths[] = {"driver", "ring"};
    struct tandem_buffer *buffer;
    time_t start;

    device_with(LONG_MS, "test.transfer_path", transfer_paths[_i]);
    OK(alloc(LARGE, &buffer));
    expect_buffer_works(buffer, LARGE);
    start = time(NULL);
    memset(target, 0xee, LARGE);
    script_once(LAYER_FAULT_ENDLESS, "clEnqueueReadBuffer", 1);
    EXPECT_TIMEOUT(
        plug.api->download(work.stream, buffer, 0, target, LARGE, 0, 50000000),
        TANDEM_NOT_READY);
    ck_assert_int_lt(time(NULL) - start, 60);
    plug.release();
    OK(synchronize());
    for (uint64_t i = 0; _i == 1 && i < LARGE; i++)
        ck_assert_uint_eq(target[i], 0xee);
    /* A download with timeout 0 still gets the short time. */
    memset(target, 0, LARGE);
    OK(plug.api->download(work.stream, buffer, 0, target, LARGE, 0, 0));
    ck_assert_int_eq(memcmp(source, target, LARGE), 0);
    expect_buffer_works(buffer, LARGE);
    device_end();
}

/*
 * A failed wait does not mean that the work has ended. Memory that the driver
 * may still read survives the stream.
 */
TEST(a_device_loss_during_an_upload)
{
    const struct layer_script dead = {.fault = LAYER_FAULT_CALL,
                                      .function = "clEnqueueMarkerWithWaitList",
                                      .nth = 1,
                                      .times = UINT64_MAX,
                                      .code =
                                          -36 /* CL_INVALID_COMMAND_QUEUE */};
    struct tandem_buffer *buffer;
    struct layer_counts passed, now;

    device_with(SHORT_MS, NULL, NULL);
    OK(alloc(CHUNK, &buffer));
    script_once(LAYER_FAULT_ENDLESS, "clEnqueueFillBuffer", 1);
    OK(fill(buffer));
    OK(upload_some(buffer, CHUNK));
    plug.script_set(&dead);
    passed = plug_counts(&plug);
    RETURNS(TANDEM_DEVICE_LOST, synchronize());
    plug.api->stream_destroy(work.stream);
    work.stream = NULL;
    now = plug_counts(&plug);
    ck_assert_uint_eq(plug_alive(&now, LAYER_MEMORY),
                      plug_alive(&passed, LAYER_MEMORY));
    plug.release();
    workload_close(&work);
}

/*
 * The devices of these two tests are closed while a command runs. The next open
 * uses a new OpenCL context.
 */
TEST(a_failure_before_work_that_never_ends)
{
    const struct layer_counts start = plug_counts(&plug);
    struct tandem_buffer *buffer;

    device_with(SHORT_MS, NULL, NULL);
    OK(alloc(CHUNK, &buffer));
    fail_and_go_on(buffer);
    EXPECT_TIMEOUT(synchronize(), TANDEM_DEVICE_LOST);
    RETURNS(TANDEM_DEVICE_LOST, fill(buffer));
    clock_set_real_speed(true);
    workload_close(&work);
    clock_set_real_speed(false);
    device_with(SHORT_MS, NULL, NULL);
    OK(alloc(CHUNK, &buffer));
    expect_buffer_works(buffer, CHUNK);
    workload_close(&work);
    expect_no_object_left();
    plug.release();
    expect_freed_later(&start);
}

TEST(close_leaves_memory_that_is_in_use)
{
    const struct layer_counts start = plug_counts(&plug);
    struct tandem_buffer *buffer;

    device_with(SHORT_MS, NULL, NULL);
    script_once(LAYER_FAULT_ENDLESS, "clEnqueueFillBuffer", 1);
    EXPECT_TIMEOUT(alloc(2 * MIB, &buffer), TANDEM_NOT_READY);
    clock_set_real_speed(true);
    workload_close(&work);
    clock_set_real_speed(false);
    device_with(SHORT_MS, NULL, NULL);
    expect_buffer_works(alloc_later(2 * MIB), 2 * MIB);
    workload_close(&work);
    expect_no_object_left();
    plug.release();
    expect_freed_later(&start);
}

/* ---- builds ---- */

/*
 * Launches a kernel, and again while its build is not finished. Other builds
 * may take longer than the timeout, so a host repeats such calls.
 */
static enum tandem_status launch_wait(uint32_t id, struct tandem_buffer *buffer)
{
    enum tandem_status status = TANDEM_FAILED;

    for (int i = 0; i < RETRIES && status == TANDEM_FAILED; i++) {
        nanosleep(&(struct timespec){0, i == 0 ? 0 : 10000000}, NULL);
        status = unary(id, buffer);
    }
    return status;
}

/* Waits for a build in the background. */
static enum tandem_status build_wait(uint32_t id)
{
    enum tandem_status status = poll_ready(id);

    for (int i = 0; i < RETRIES && status != TANDEM_OK; i++) {
        nanosleep(&(struct timespec){0, 10000000}, NULL);
        status = poll_ready(id);
    }
    return status;
}

/* Releases the hanging work, so that the process can end. */
static void hang_release(void)
{
    plug.release();
    for (int i = 0; i < RETRIES && !is_context_released(); i++)
        nanosleep(&(struct timespec){0, 10000000}, NULL);
    expect_no_object_left();
}

/* The build hangs in the background, in a launch, and behind another build. */
TEST(a_build_that_never_completes)
{
    struct tandem_buffer *buffer;

    device_with(SHORT_MS, NULL, NULL);
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
    OK(synchronize());
    device_end();
}

TEST(close_leaks_a_build_that_never_completes)
{
    struct tandem_buffer *buffer;

    device_with(SHORT_MS, NULL, NULL);
    buffer = ramp_new();
    script(LAYER_FAULT_HANG, "clBuildProgram", "-DOP=op_erf ", 0);
    EXPECT_TIMEOUT(unary(TANDEM_OP_ERF, buffer), TANDEM_FAILED);
    for (int i = 0; i < RETRIES && plug.hanging() == 0; i++)
        nanosleep(&(struct timespec){0, 10000000}, NULL);
    ck_assert_uint_eq(plug.hanging(), 1);
    workload_close(&work);
    hang_release();
}

TEST(a_failed_build_reports_its_log)
{
    struct tandem_buffer *buffer;

    device_with(LONG_MS, NULL, NULL);
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

    device_with(LONG_MS, NULL, NULL);
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
    struct tandem_event *end;

    device_with(SHORT_MS, NULL, NULL);
    buffer = ramp_new();
    OK(launch_wait(TANDEM_OP_NEG, buffer));
    OK(synchronize());
    script(LAYER_FAULT_ENDLESS, "clEnqueueNDRangeKernel", NULL, 0);
    OK(unary(TANDEM_OP_NEG, buffer));
    OK(plug.api->event_record(work.stream, &end));
    OK(plug.api->event_callback(end, statuses_add, &statuses));
    clock_set_real_speed(true);
    workload_close(&work);
    clock_set_real_speed(false);
    /* One call, with TANDEM_DEVICE_LOST. */
    ck_assert_uint_eq(atomic_load(&statuses), 1000u + TANDEM_DEVICE_LOST);
    RETURNS(TANDEM_INVALID_ARGUMENT,
            plug.api->alloc(work.device, TANDEM_BYTES(64), &buffer));
    plug.release();
    device_with(SHORT_MS, NULL, NULL);
    OK(launch_wait(TANDEM_OP_NEG, ramp_new()));
    OK(synchronize());
    workload_close(&work);
    expect_freed_later(&start);
}

int main(void)
{
    /* A wait that never returns fails the test. */
    alarm(300);
    setenv("TANDEM_LAYER_GPU", "1", 1);
    return single_run("endless", NULL);
}
