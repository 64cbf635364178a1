/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The OpenCL plugin on a driver that starts commands as late as OpenCL allows:
 * on a flush or a wait. This reveals memory that is used too early, waits for
 * commands that were not flushed, and uploads that still read their source
 * after they returned. The program runs on the CPU device and, in a child
 * process, on the same device reported as a GPU.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../support/seed.h"
#include "single_fault.h"

#define BYTES (N * sizeof(float))
#define MINUTE_NS UINT64_C(60000000000)

static struct tandem_stream *streams[3];
static uint64_t unflushed;
static uint64_t first_seed;

static void start(enum layer_defer_submission mode)
{
    device_new(NULL, NULL);
    streams[0] = work.stream;
    for (int i = 1; i < 3; i++)
        OK(plug.api->stream_create(work.device, 0, &streams[i]));
    unflushed = plug_counts(&plug).unflushed;
    plug.hold(mode);
}

static void end(void)
{
    const uint64_t now = plug_counts(&plug).unflushed;

    plug.hold(LAYER_HOLD_NONE);
    for (int i = 1; i < 3; i++)
        plug.api->stream_destroy(streams[i]);
    workload_close(&work);
    expect_no_object_left();
    ck_assert_msg(now == unflushed,
                  "%" PRIu64 " commands were waited for and not flushed",
                  now - unflushed);
}

static void synchronize_on(int on)
{
    ck_assert_msg(plug.api->stream_synchronize(
                      streams[on], TANDEM_TIMEOUT_INFINITE) == TANDEM_OK,
                  "%s", plug.api->last_error());
}

static struct tandem_buffer *block_new(void)
{
    struct tandem_buffer *buffer;

    ck_assert(buffer_new(&work, BYTES, &buffer));
    return buffer;
}

/* Uploads all elements. */
static void put(int on, struct tandem_buffer *buffer, float value)
{
    float values[N];

    fill_ramp(values, N, value, 0);
    OK(plug.api->upload(streams[on], buffer, 0, values, BYTES, 0));
}

/* Fills half 0 or half 1 of the elements. */
static void fill_half(int on, struct tandem_buffer *buffer, int half,
                      float value)
{
    OK(plug.api->fill(streams[on], buffer, half * BYTES / 2, BYTES / 2, &value,
                      sizeof value));
}

static void expect_halves(struct tandem_buffer *buffer, float first,
                          float second)
{
    float values[N];

    OK(plug.api->download(streams[0], buffer, 0, values, BYTES, 0,
                          TANDEM_TIMEOUT_INFINITE));
    for (int i = 0; i < N; i++) {
        const float want = i < N / 2 ? first : second;

        ck_assert_msg(values[i] == want, "element %d is %g, not %g", i,
                      (double)values[i], (double)want);
    }
}

static uint64_t blocks_made(void)
{
    struct tandem_memory_stats stats = {.struct_size = sizeof stats};

    OK(plug.api->memory_stats(work.device, &stats));
    return stats.driver_alloc_count;
}

/* ---- memory that another stream used before ---- */

/*
 * Streams 0 to users - 1 write a block and free it; idle owners allocate and
 * free it without using it; then stream 2 writes it, the half `last` at the
 * end.
 */
static void block_reuse(int users, int idle, int last)
{
    struct tandem_buffer *buffer;
    uint64_t made;

    start(LAYER_HOLD_WAIT);
    buffer = block_new();
    made = blocks_made();
    for (int i = 0; i < users; i++)
        put(i, buffer, (float)(i + 1));
    for (int i = 0; i <= idle; i++) {
        plug.api->free(buffer);
        buffer = block_new();
    }
    ck_assert_uint_eq(blocks_made(), made);
    fill_half(2, buffer, 0, 7.0f);
    synchronize_on(2);
    fill_half(last, buffer, 1, 8.0f);
    synchronize_on(last);
    synchronize_on(0);
    synchronize_on(1);
    expect_halves(buffer, 7.0f, 8.0f);
    plug.api->free(buffer);
    end();
}

TEST(a_block_waits_for_its_last_user)
{
    block_reuse(1, 0, 2);
    block_reuse(2, 0, 2);
}

TEST(a_block_waits_for_its_last_user_across_idle_owners)
{
    block_reuse(1, 1, 2);
    block_reuse(1, 3, 2);
    block_reuse(2, 1, 2);
}

/* Each of the two streams that use the block must wait. */
TEST(each_stream_that_uses_a_block_waits)
{
    struct tandem_buffer *buffer;

    start(LAYER_HOLD_WAIT);
    buffer = block_new();
    put(0, buffer, 1.0f);
    plug.api->free(buffer);
    buffer = block_new();
    fill_half(1, buffer, 0, 7.0f);
    fill_half(2, buffer, 1, 8.0f);
    synchronize_on(2);
    synchronize_on(1);
    synchronize_on(0);
    expect_halves(buffer, 7.0f, 8.0f);
    plug.api->free(buffer);
    end();
}

/* ---- events ---- */

/* Tests each kind of wait with new work to wait for. */
TEST(waits_flush_the_work)
{
    const uint64_t timeouts[] = {TANDEM_TIMEOUT_INFINITE, MINUTE_NS};
    struct tandem_event *event;
    struct tandem_buffer *buffer;

    start(LAYER_HOLD_FLUSH);
    buffer = block_new();
    for (int turn = 0; turn < 6; turn++) {
        const uint64_t timeout_ns = timeouts[turn % 2];
        enum tandem_status status;

        put(0, buffer, (float)turn);
        OK(plug.api->event_record(streams[0], &event));
        if (turn / 2 == 1)
            put(0, buffer, (float)turn + 0.5f);
        /*
         * The work was flushed before the wait, but the command that the wait
         * enqueues was not.
         */
        if (turn / 2 >= 2)
            plug.api->event_wait(event, 0);
        status = turn / 2 < 2
                     ? plug.api->event_wait(event, timeout_ns)
                     : plug.api->stream_synchronize(streams[0], timeout_ns);
        ck_assert_int_eq(status, TANDEM_OK);
        OK(plug.api->event_wait(event, 0));
        plug.api->event_destroy(event);
    }
    expect_halves(buffer, 5.0f, 5.0f);
    end();
}

/* A query whether work is complete must ensure that the work will complete. */
TEST(queries_flush_the_work)
{
    struct tandem_buffer *buffer;
    struct tandem_event *event;
    enum tandem_status status = TANDEM_NOT_READY;

    start(LAYER_HOLD_FLUSH);
    buffer = block_new();
    put(0, buffer, 1.0f);
    for (int i = 0; i < 60000 && status == TANDEM_NOT_READY; i++) {
        status = plug.api->stream_synchronize(streams[0], 0);
        usleep(1000);
    }
    ck_assert_int_eq(status, TANDEM_OK);
    put(1, buffer, 2.0f);
    OK(plug.api->event_record(streams[1], &event));
    status = TANDEM_NOT_READY;
    for (int i = 0; i < 60000 && status == TANDEM_NOT_READY; i++) {
        status = plug.api->event_wait(event, 0);
        usleep(1000);
    }
    ck_assert_int_eq(status, TANDEM_OK);
    plug.api->event_destroy(event);
    end();
}

/* ---- all entries ---- */

static const struct {
    enum layer_defer_submission mode;
    uint32_t elements;
} sequences[] = {{LAYER_HOLD_FLUSH, 1000},
                 {LAYER_HOLD_WAIT, 1000},
                 {LAYER_HOLD_FLUSH, 300000}, /* Several commands of the ring. */
                 {LAYER_HOLD_WAIT, 300000}};

/* Two streams wait for each other, sources are overwritten after their uploads,
 * and memory is trimmed. */
LOOP_TEST(sequences_are_correct, CASES_IN(sequences))
{
    for (uint64_t seed = 0; seed < 6; seed++) {
        start(sequences[_i].mode);
        ck_assert_msg(
            sequence_run(&work, sequences[_i].elements, first_seed + seed),
            "%s %s", work.failed, work.wrong);
        work.stream = streams[0];
        end();
    }
}

int main(void)
{
    const int as_gpu = single_as_gpu(true);

    if (as_gpu != 0)
        return as_gpu;
    first_seed = test_seed();
    return single_run("hold", NULL);
}
