/* SPDX-License-Identifier: Apache-2.0 */
/*
 * That what a device takes is found though the machine does something else at
 * times: meter.c alone, over a clock and a stream that this file makes up.
 */
#include <config.h>

#include <check.h>
#include <math.h>
#include <string.h>

#include "../common/runner.h"
#include "opencl/meter.h"
#include "opencl/transfer.h"

#define WAIT_NS 12000u     /* that a wait takes by itself */
#define HICCUP_NS 4000000u /* that the system takes for others at a time */

static struct tandem_device device;
static uint64_t clock_ns, under_way_ns;
static uint32_t waits, every, late; /* of waits: with a hiccup, or one */

uint64_t wait_clock(void)
{
    return clock_ns;
}

enum tandem_status stream_synchronize(struct tandem_stream *stream,
                                      uint64_t timeout_ns)
{
    (void)stream, (void)timeout_ns;
    clock_ns += under_way_ns + WAIT_NS;
    under_way_ns = 0;
    if (waits == late || (every != 0 && waits % every == 0))
        clock_ns += HICCUP_NS;
    waits++;
    return TANDEM_OK;
}

enum tandem_status stream_create(struct tandem_device *of, uint32_t flags,
                                 struct tandem_stream **out_stream)
{
    static struct tandem_stream stream;
    (void)of, (void)flags;
    *out_stream = &stream;
    return TANDEM_OK;
}

void stream_destroy(struct tandem_stream *stream)
{
    (void)stream;
}

enum tandem_status buffer_create(struct tandem_device *of, uint64_t bytes,
                                 bool internal,
                                 struct tandem_buffer **out_buffer)
{
    static struct tandem_buffer buffer;
    (void)of, (void)bytes, (void)internal;
    *out_buffer = &buffer;
    return TANDEM_OK;
}

void buffer_destroy(struct tandem_buffer *buffer)
{
    (void)buffer;
}

enum tandem_status transfer_upload(struct tandem_stream *stream,
                                   struct tandem_buffer *buffer,
                                   uint64_t offset, const void *source,
                                   uint64_t bytes, uint32_t flags)
{
    (void)stream, (void)buffer, (void)offset, (void)source, (void)bytes;
    (void)flags;
    return TANDEM_OK;
}

enum tandem_status transfer_copy(struct tandem_stream *stream,
                                 struct tandem_buffer *to, uint64_t to_offset,
                                 struct tandem_buffer *from,
                                 uint64_t from_offset, uint64_t bytes)
{
    (void)stream, (void)to, (void)to_offset, (void)from, (void)from_offset;
    (void)bytes;
    return TANDEM_OK;
}

static enum tandem_status launch(struct meter *meter, void *ns)
{
    (void)meter;
    clock_ns += 100;
    under_way_ns += *(const uint64_t *)ns;
    return TANDEM_OK;
}

/* What the meter finds of work that takes so long, as a share of it. */
static double found(uint64_t ns, uint32_t which, uint32_t of)
{
    struct meter meter;
    double got;
    memset(&meter, 0, sizeof(meter));
    meter.device = &device;
    meter.deadline_ns = UINT64_MAX;
    clock_ns = under_way_ns = 0;
    waits = 0;
    late = which;
    every = of;
    ck_assert_int_eq(meter_time(&meter, launch, &ns, &got), TANDEM_OK);
    return got / (double)ns;
}

static const uint64_t lengths[] = {5000, 30000, 200000, 3000000, 50000000};

START_TEST(waits_are_nothing_beside_batches)
{
    for (size_t i = 0; i < sizeof(lengths) / sizeof(lengths[0]); i++) {
        double share = found(lengths[i], UINT32_MAX, 0);
        ck_assert(share >= 1.0 && share <= 1.06);
    }
}
END_TEST

START_TEST(one_interruption_does_not_show)
{
    for (size_t i = 0; i < sizeof(lengths) / sizeof(lengths[0]); i++)
        for (uint32_t which = 0; which < 12; which++) {
            double share = found(lengths[i], which, 0);
            ck_assert(share >= 1.0 && share <= 1.06);
        }
}
END_TEST

START_TEST(every_other_wait_may_be_interrupted)
{
    /* The longest is timed three times. */
    for (size_t i = 0; i + 1 < sizeof(lengths) / sizeof(lengths[0]); i++) {
        double share = found(lengths[i], UINT32_MAX, 2);
        ck_assert(share >= 1.0 && share <= 1.06);
    }
}
END_TEST

int main(void)
{
    TCase *tests = tcase_create("meter");
    tcase_add_test(tests, waits_are_nothing_beside_batches);
    tcase_add_test(tests, one_interruption_does_not_show);
    tcase_add_test(tests, every_other_wait_may_be_interrupted);
    return runner_run_case("meter", tests);
}
