/* SPDX-License-Identifier: Apache-2.0 */
/* Times kernels with wall-clock samples; see kernel_timer.h. */
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
#define MIN_BYTES (UINT64_C(4) << 20)
/* Target time of a batch of launches. Waiting for a batch takes about 10 us. */
#define BATCH_NS UINT64_C(500000)
#define MAX_LAUNCHES 256u
#define SAMPLES 7u
/* Maximum time to build kernels that does not count as part of the budget. */
#define BUILD_NS UINT64_C(30000000000)
/* Maximum number of batches that a measurement discards as too short. */
#define MAX_SHORT_BATCHES 8u
/* Minimum target time of a batch. The target time is halved after each
 * preempted sample, because shorter batches are preempted less often. */
#define MIN_BATCH_NS UINT64_C(60000)
#define MAX_PREEMPTED_SAMPLES 24u
/* If a launch takes at least LONG_NS, only LONG_SAMPLES samples are taken. */
#define LONG_NS UINT64_C(20000000)
#define LONG_SAMPLES 3u

/* Highest exponent bit of an f16. If it is 0, the f16 is finite and below 2. */
#define F16_TOP_EXPONENT_BIT 0x4000u

/* Fills `out` with random f32 numbers in [-1, 1). Both 16-bit halves of each
 * number are also finite f16 numbers. */
static void random_fill(float *out, size_t count)
{
    uint64_t state = monotonic_ns() | 1u;
    for (size_t i = 0; i < count; i++) {
        state = state * 6364136223846793005u + 1442695040888963407u;
        float number = (float)(int32_t)(state >> 32) / 2147483648.0f;
        uint32_t bits;
        memcpy(&bits, &number, sizeof(bits));
        bits &= ~F16_TOP_EXPONENT_BIT;
        memcpy(&out[i], &bits, sizeof(bits));
    }
}

/* Waits until the device has finished all work of the timer. */
static enum tandem_status timer_drain(struct kernel_timer *timer)
{
    return stream_synchronize(timer->stream, device_timeout_ns(timer->device));
}

/* Fills the scratch memory with random numbers. Uploads the first SEED_BYTES
 * and copies them repeatedly on the device. */
static enum tandem_status memory_fill(struct kernel_timer *timer)
{
    float *numbers = malloc(SEED_BYTES);
    if (numbers == NULL)
        return memory_error("tune: out of host memory");
    random_fill(numbers, SEED_BYTES / sizeof(float));
    enum tandem_status status = transfer_upload(timer->stream, timer->memory, 0,
                                                numbers, SEED_BYTES, 0);
    for (uint64_t done = SEED_BYTES; done < timer->bytes && status == TANDEM_OK;
         done *= 2) {
        uint64_t rest = timer->bytes - done;
        status = buffer_copy(timer->stream, timer->memory, done, timer->memory,
                             0, rest < done ? rest : done);
    }
    if (status == TANDEM_OK)
        status = timer_drain(timer);
    free(numbers);
    return status;
}

enum tandem_status kernel_timer_init(struct kernel_timer *timer,
                                     struct tandem_device *device,
                                     uint64_t bytes, uint64_t budget_ns)
{
    uint64_t now = monotonic_ns();
    memset(timer, 0, sizeof(*timer));
    timer->device = device;
    timer->build_ns_left = BUILD_NS;
    timer->deadline_ns =
        budget_ns < UINT64_MAX - now ? now + budget_ns : UINT64_MAX;
    enum tandem_status status = stream_create(device, 0, &timer->stream);
    if (status != TANDEM_OK)
        return status;
    /* Some drivers allocate memory when it is first used, so memory_fill can
     * fail for lack of memory. If it fails, try half the size. */
    for (;; bytes /= 2) {
        status = buffer_create(device, bytes, false, &timer->memory);
        timer->bytes = bytes;
        if (status == TANDEM_OK)
            status = memory_fill(timer);
        if (status != TANDEM_OUT_OF_MEMORY || bytes / 2 < MIN_BYTES)
            return status;
        if (timer->memory != NULL)
            buffer_destroy(timer->memory);
        timer->memory = NULL;
    }
}

void kernel_timer_finish(struct kernel_timer *timer)
{
    if (timer->stream != NULL)
        timer_drain(timer);
    if (timer->memory != NULL)
        buffer_destroy(timer->memory);
    if (timer->stream != NULL)
        stream_destroy(timer->stream);
}

uint64_t kernel_timer_remaining_ns(const struct kernel_timer *timer)
{
    uint64_t now = monotonic_ns();
    return now < timer->deadline_ns ? timer->deadline_ns - now : 0;
}

static enum tandem_status launch_batch(struct kernel_timer *timer,
                                       kernel_timer_launch_fn launch,
                                       void *work, uint32_t count,
                                       uint64_t *out_ns)
{
    enum tandem_status status = TANDEM_OK;
    uint64_t start = monotonic_ns();
    for (uint32_t i = 0; i < count && status == TANDEM_OK; i++)
        status = launch(timer, work);
    enum tandem_status end = timer_drain(timer);
    *out_ns = monotonic_ns() - start;
    return status == TANDEM_OK ? end : status;
}

enum tandem_status kernel_timer_build(struct kernel_timer *timer,
                                      kernel_timer_launch_fn launch, void *work)
{
    const uint64_t deadline_ns = timer->deadline_ns;
    uint64_t ns;
    timer->deadline_ns += timer->build_ns_left < UINT64_MAX - deadline_ns
                              ? timer->build_ns_left
                              : 0;
    enum tandem_status status = launch_batch(timer, launch, work, 1, &ns);
    if (timer->deadline_ns > deadline_ns) {
        ns = ns < timer->build_ns_left ? ns : timer->build_ns_left;
        timer->build_ns_left -= ns;
        timer->deadline_ns = deadline_ns + ns;
    }
    return status;
}

static int compare_doubles(const void *x, const void *y)
{
    double a = *(const double *)x, b = *(const double *)y;
    return (a > b) - (a < b);
}

/* Returns the number of launches of `ns` each that fill a time of batch_ns. */
static uint32_t launches_per_batch(uint64_t batch_ns, uint64_t ns)
{
    uint64_t count = batch_ns / (ns + 1) + 1;
    return count < MAX_LAUNCHES ? (uint32_t)count : MAX_LAUNCHES;
}

/* Returns how often this thread was preempted, which can cost 4 ms each time.
 * Returns 0 for a CPU device, whose threads may preempt this thread. */
static long preemptions(const struct kernel_timer *timer)
{
    struct rusage usage;
    if (timer->device->hardware->info.kind == TANDEM_DEVICE_CPU ||
        getrusage(RUSAGE_THREAD, &usage) != 0)
        return 0;
    return usage.ru_nivcsw;
}

/* Takes samples until there are `max` of them, the deadline has passed or too
 * many samples were preempted. `ns` is the estimated time of one launch. */
static enum tandem_status samples_take(struct kernel_timer *timer,
                                       kernel_timer_launch_fn launch,
                                       void *work, uint64_t ns,
                                       double samples[SAMPLES],
                                       uint32_t *out_taken)
{
    uint64_t batch_ns = BATCH_NS;
    uint32_t count = launches_per_batch(batch_ns, ns), taken = 0;
    uint32_t short_batches = 0, preempted = 0;
    uint32_t max = ns < LONG_NS ? SAMPLES : LONG_SAMPLES;
    enum tandem_status status;
    do {
        const long before = preemptions(timer);
        status = launch_batch(timer, launch, work, count, &ns);
        samples[taken] = (double)ns / count;
        if (preemptions(timer) != before && preempted < MAX_PREEMPTED_SAMPLES) {
            preempted++;
            batch_ns =
                batch_ns / 2 > MIN_BATCH_NS ? batch_ns / 2 : MIN_BATCH_NS;
            count = (count + 1) / 2;
        } else if (ns < batch_ns / 2 && count < MAX_LAUNCHES &&
                   short_batches < MAX_SHORT_BATCHES) {
            /* The estimated launch time was too long: it included waiting. */
            short_batches++;
            count = launches_per_batch(batch_ns, ns / count);
        } else {
            taken++;
        }
    } while (status == TANDEM_OK && taken < max &&
             preempted < MAX_PREEMPTED_SAMPLES &&
             kernel_timer_remaining_ns(timer) > 0);
    *out_taken = taken;
    if (status != TANDEM_OK)
        return status;
    if (preempted == MAX_PREEMPTED_SAMPLES && taken < LONG_SAMPLES) {
        timer->aborted++;
        return last_error_set(TANDEM_FAILED,
                              "tune: other processes keep the CPUs busy, which "
                              "distorts all times; tune again on an idle "
                              "machine");
    }
    return taken > 0 ? TANDEM_OK
                     : last_error_set(TANDEM_FAILED,
                                      "tune: the time budget is used up");
}

enum tandem_status kernel_timer_measure(struct kernel_timer *timer,
                                        kernel_timer_launch_fn launch,
                                        void *work, double *out_ns)
{
    double samples[SAMPLES];
    uint32_t taken;
    uint64_t ns;
    *out_ns = 0;
    enum tandem_status status = launch_batch(timer, launch, work, 1, &ns);
    const long before = preemptions(timer);
    if (status == TANDEM_OK)
        status = launch_batch(timer, launch, work, 1, &ns);
    if (status != TANDEM_OK)
        return status;
    if (timer->cutoff_ns > 0 && (double)ns > 2 * timer->cutoff_ns &&
        preemptions(timer) == before) {
        *out_ns = (double)ns;
        return TANDEM_OK;
    }
    status = samples_take(timer, launch, work, ns, samples, &taken);
    if (status != TANDEM_OK)
        return status;
    qsort(samples, taken, sizeof(samples[0]), compare_doubles);
    *out_ns = samples[taken / 4];
    return TANDEM_OK;
}

bool tuning_can_continue(enum tandem_status status)
{
    return status == TANDEM_OK || status == TANDEM_FAILED ||
           status == TANDEM_UNSUPPORTED || status == TANDEM_OUT_OF_MEMORY;
}
