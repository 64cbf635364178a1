/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Work of the OpenCL plugin that fails after its launch returned: callbacks and
 * the counters of split reductions. check-async-error tests the rules of
 * backend.h.
 */
#include <stdatomic.h>
#include <time.h>

#include "single_fault.h"

/* An error of one call; the device keeps working. */
#define INVALID_EVENT (-58)

/* Enough elements for several work-groups. */
#define LONG 120000

static void status_store(void *user, enum tandem_status status)
{
    atomic_store((atomic_int *)user, (int)status);
}

/* The callback gets the error of the work before the event, and of a stream
 * that has an error. */
TEST(a_callback_gets_the_error)
{
    static atomic_int status = -1;
    struct tandem_event *event = NULL;
    struct tandem_buffer *buffer;

    device_new(NULL, NULL);
    buffer = ramp_new();
    OK(unary(TANDEM_OP_NEG, buffer));
    OK(synchronize());
    script_nth(LAYER_FAULT_AFTER_ENQUEUE, "clEnqueueNDRangeKernel", 1, 1,
               INVALID_EVENT);
    OK(unary(TANDEM_OP_NEG, buffer));
    OK(plug.api->event_record(work.stream, &event));
    OK(plug.api->event_callback(event, status_store, &status));
    for (int i = 0; i < 60000 && atomic_load(&status) == -1; i++)
        nanosleep(&(const struct timespec){0, 1000000}, NULL);
    ck_assert_int_eq(atomic_load(&status), TANDEM_FAILED);
    atomic_store(&status, -1);
    OK(plug.api->event_callback(event, status_store, &status));
    ck_assert_int_eq(atomic_load(&status), TANDEM_FAILED);
    plug.api->event_destroy(event);
    RETURNS(TANDEM_FAILED, synchronize());
}

/* Returns how often the counters of a split reduction were cleared. */
static uint64_t sum_counter_clears(struct tandem_buffer *a,
                                   struct tandem_buffer *c)
{
    const struct tandem_tensor_desc ones = vector(c, LONG),
                                    total = {a, 0, TANDEM_F32, 0, {0}, {0}};
    const struct tandem_tensor_desc *operand = &ones;
    const int64_t all[2] = {1, 0};
    const float want = LONG;
    const uint64_t before = plug_counts(&plug).fills;

    ck_assert_msg(
        launch(&work, TANDEM_OP_SUM, NULL, 0, all, 2, &operand, 1, &total) &&
            content_matches(&work, a, &want, 1, "a sum of ones"),
        "%s %s", work.failed, work.wrong);
    return plug_counts(&plug).fills - before;
}

/* A failed reduction may leave the counters with any value. */
TEST(counters_are_cleared_after_a_failure)
{
    const float one = 1.0f;
    struct tandem_buffer *a, *b, *c;

    device_new("test.device_scope_visibility", "1");
    b = ramp_new();
    OK(unary(TANDEM_OP_NEG, b));
    ck_assert(buffer_new(&work, sizeof one, &a));
    ck_assert(buffer_new(&work, LONG * sizeof one, &c));
    OK(plug.api->fill(work.stream, c, 0, LONG * sizeof one, &one, 4));
    ck_assert_uint_eq(sum_counter_clears(a, c), 1);
    ck_assert_uint_eq(sum_counter_clears(a, c), 0);
    script(LAYER_FAULT_AFTER_ENQUEUE, "clEnqueueNDRangeKernel", NULL,
           INVALID_EVENT);
    OK(unary(TANDEM_OP_NEG, b));
    RETURNS(TANDEM_FAILED, synchronize());
    plug.script_set(NULL);
    ck_assert_uint_eq(sum_counter_clears(a, c), 1);
    ck_assert_uint_eq(sum_counter_clears(a, c), 0);
}

TEST_MAIN(single_run("late", device_end))
