/* SPDX-License-Identifier: Apache-2.0 */
/* Timing; see kernel_timer.h. */
#include <config.h>

#include "opencl/tune/kernel_timer.h"

#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "opencl/device/device.h"
#include "opencl/device/event_poll.h"
#include "opencl/queue/buffer_commands.h"
#include "opencl/queue/stream_lifecycle.h"
#include "opencl/transfer/transfer.h"

#define SEED_BYTES (UINT64_C(1) << 20)
#define LEAST_BYTES (UINT64_C(4) << 20)
/* Launches between two waits last about so long, so that the wait, of 10 us
 * or so, is nothing beside them; and there are so many of them at most. */
#define BATCH_NS UINT64_C(500000)
#define MOST_LAUNCHES 256u
#define SAMPLES 7u
/* Batches that turn out to be small, of one measurement. */
#define MOST_SMALL 8u
/* Where something else gets the processor meanwhile, batches are made shorter,
 * as that comes at some length; and so many are tried. */
#define SHORT_BATCH_NS UINT64_C(60000)
#define MAX_PREEMPTED_SAMPLES 24u
/* What takes longer is timed less often. */
#define LONG_NS UINT64_C(20000000)
#define LONG_SAMPLES 3u

/* The highest bit of a half's exponent: without it a half is finite. */
#define HALF_TOP_EXPONENT 0x4000u

/* Numbers in [-1, 1) of every digit, others at each call; read as halves, in
 * (-2, 2). */
static void numbers_fill(float *out, size_t count)
{
    uint64_t state = monotonic_ns() | 1u;
    for (size_t i = 0; i < count; i++) {
        state = state * 6364136223846793005u + 1442695040888963407u;
        float number = (float)(int32_t)(state >> 32) / 2147483648.0f;
        uint32_t bits;
        memcpy(&bits, &number, sizeof(bits));
        bits &= ~HALF_TOP_EXPONENT;
        memcpy(&out[i], &bits, sizeof(bits));
    }
}

/* The first bytes from here, the others from those before them. */
static enum tandem_status memory_fill(struct meter *meter)
{
    float *numbers = malloc(SEED_BYTES);
    if (numbers == NULL)
        return last_error_set(TANDEM_OUT_OF_MEMORY, "tune: out of host memory");
    numbers_fill(numbers, SEED_BYTES / sizeof(float));
    enum tandem_status status = transfer_upload(
        meter->stream, meter->memory, 0, numbers, SEED_BYTES, 0);
    for (uint64_t done = SEED_BYTES;
         done < meter->bytes && status == TANDEM_OK; done *= 2) {
        uint64_t rest = meter->bytes - done;
        status = buffer_copy(meter->stream, meter->memory, done, meter->memory,
                             0, rest < done ? rest : done);
    }
    if (status == TANDEM_OK)
        status =
            stream_synchronize(meter->stream, device_timeout_ns(meter->device));
    free(numbers);
    return status;
}

enum tandem_status meter_start(struct meter *meter,
                               struct tandem_device *device, uint64_t bytes,
                               uint64_t deadline_ns)
{
    memset(meter, 0, sizeof(*meter));
    meter->device = device;
    meter->deadline_ns = deadline_ns;
    enum tandem_status status = stream_create(device, 0, &meter->stream);
    if (status != TANDEM_OK)
        return status;
    /* Drivers allocate at first use: filling it is what shows. */
    for (;; bytes /= 2) {
        status = buffer_create(device, bytes, false, &meter->memory);
        meter->bytes = bytes;
        if (status == TANDEM_OK)
            status = memory_fill(meter);
        if (status != TANDEM_OUT_OF_MEMORY || bytes / 2 < LEAST_BYTES)
            return status;
        if (meter->memory != NULL)
            buffer_destroy(meter->memory);
        meter->memory = NULL;
    }
}

void meter_end(struct meter *meter)
{
    if (meter->stream != NULL)
        stream_synchronize(meter->stream, device_timeout_ns(meter->device));
    if (meter->memory != NULL)
        buffer_destroy(meter->memory);
    if (meter->stream != NULL)
        stream_destroy(meter->stream);
    meter->memory = NULL;
    meter->stream = NULL;
}

uint64_t meter_left_ns(const struct meter *meter)
{
    uint64_t now = monotonic_ns();
    return now < meter->deadline_ns ? meter->deadline_ns - now : 0;
}

static enum tandem_status launch_many(struct meter *meter, meter_fn launch,
                                      void *work, uint32_t count,
                                      uint64_t *out_ns)
{
    enum tandem_status status = TANDEM_OK;
    uint64_t start = monotonic_ns();
    for (uint32_t i = 0; i < count && status == TANDEM_OK; i++)
        status = launch(meter, work);
    enum tandem_status end =
        stream_synchronize(meter->stream, device_timeout_ns(meter->device));
    *out_ns = monotonic_ns() - start;
    return status == TANDEM_OK ? end : status;
}

static int compare(const void *x, const void *y)
{
    double a = *(const double *)x, b = *(const double *)y;
    return (a > b) - (a < b);
}

/* As many launches of ns as fill a batch. */
static uint32_t batch_of(uint64_t batch_ns, uint64_t ns)
{
    uint64_t count = batch_ns / (ns + 1) + 1;
    return count < MOST_LAUNCHES ? (uint32_t)count : MOST_LAUNCHES;
}

/* How often others got this thread's processor, whose turn may be of 4 ms,
 * while it had something to do.  On a processor's device these may be its
 * own. */
static long times_spoilt(const struct meter *meter)
{
    struct rusage usage;
    if (meter->device->hardware->info.kind == TANDEM_DEVICE_CPU ||
        getrusage(RUSAGE_THREAD, &usage) != 0)
        return 0;
    return usage.ru_nivcsw;
}

enum tandem_status kernel_timer_measure(struct meter *meter, meter_fn launch,
                                        void *work, double *out_ns)
{
    double samples[SAMPLES];
    uint64_t ns;
    *out_ns = 0;
    enum tandem_status status = launch_many(meter, launch, work, 1, &ns);
    const long before = times_spoilt(meter);
    if (status == TANDEM_OK)
        status = launch_many(meter, launch, work, 1, &ns);
    if (status != TANDEM_OK)
        return status;
    if (meter->enough_ns > 0 && (double)ns > 2 * meter->enough_ns &&
        times_spoilt(meter) == before) {
        *out_ns = (double)ns;
        return TANDEM_OK;
    }
    /* Launched alone it took the wait's time, too, or something had come
     * between: a batch that turns out to be small is not counted. */
    uint64_t batch_ns = BATCH_NS;
    uint32_t count = batch_of(batch_ns, ns), taken = 0, small = 0, spoilt = 0;
    uint32_t most = ns < LONG_NS ? SAMPLES : LONG_SAMPLES;
    do {
        const long had = times_spoilt(meter);
        status = launch_many(meter, launch, work, count, &ns);
        samples[taken] = (double)ns / count;
        if (times_spoilt(meter) != had && spoilt < MAX_PREEMPTED_SAMPLES) {
            spoilt++;
            batch_ns = batch_ns / 2 > SHORT_BATCH_NS ? batch_ns / 2
                                                     : SHORT_BATCH_NS;
            count = (count + 1) / 2;
        } else if (ns < batch_ns / 2 && count < MOST_LAUNCHES &&
                   small < MOST_SMALL) {
            small++;
            count = batch_of(batch_ns, ns / count);
        } else {
            taken++;
        }
    } while (status == TANDEM_OK && taken < most &&
             spoilt < MAX_PREEMPTED_SAMPLES && meter_left_ns(meter) > 0);
    if (status != TANDEM_OK)
        return status;
    if (spoilt == MAX_PREEMPTED_SAMPLES && taken < LONG_SAMPLES) {
        meter->spoilt++;
        return last_error_set(TANDEM_FAILED,
                           "tune: the processors are busy with something "
                           "else, which shows in all times: measure again "
                           "when they are not");
    }
    if (taken == 0)
        return last_error_set(TANDEM_FAILED, "tune: the time is used up");
    qsort(samples, taken, sizeof(samples[0]), compare);
    *out_ns = samples[taken / 4];
    return TANDEM_OK;
}

bool meter_goes_on(enum tandem_status status)
{
    return status == TANDEM_OK || status == TANDEM_FAILED ||
           status == TANDEM_UNSUPPORTED || status == TANDEM_OUT_OF_MEMORY;
}
