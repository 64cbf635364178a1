/* SPDX-License-Identifier: Apache-2.0 */
/* Tuning a device, from the quick to the long; see tune.h. */
#include "opencl/device/event_poll.h"
#include "opencl/tune/tune.h"

#include "opencl/gemm/clblast.h"
#include "opencl/device/device.h"

/* Products of 4096, and CLBlast's copies of their operands; on a processor,
 * of 1024. */
#define SCRATCH_BYTES (UINT64_C(192) << 20)
#define CPU_SCRATCH_BYTES (UINT64_C(32) << 20)
/* What gemm_cost_model.h wants takes less; a longer budget is for the search.
 */
#define QUICK_NS UINT64_C(2500000000)
/* With less, what only takes products that callers allow to be less accurate,
 * or of 16 bits, is left to its built-in costs. */
#define ALL_NS UINT64_C(4000000000)

static uint64_t scratch_bytes(const struct tandem_device *device)
{
    const struct tandem_device_info *info = &device->hardware->info;
    uint64_t bytes = info->kind == TANDEM_DEVICE_CPU ? CPU_SCRATCH_BYTES
                                                     : SCRATCH_BYTES;
    return info->memory_bytes != 0 && info->memory_bytes / 8 < bytes
               ? info->memory_bytes / 8
               : bytes;
}

/* The search, and CLBlast's times with what it found; afterwards CLBlast has
 * what it had before. */
static enum tandem_status search(struct meter *meter,
                                 const struct findings *findings,
                                 uint32_t *times)
{
    cl_device_id id = meter->device->hardware->id;
    struct clblast_params before[CLBLAST_KERNEL_COUNT];
    uint32_t known = 0;
    uint64_t end = meter->deadline_ns;
    clblast_init_once(&meter->stream->queue);
    for (uint32_t i = 0; i < CLBLAST_KERNEL_COUNT; i++)
        if (clblast_params_get(id, (enum clblast_kernel_id)i, &before[i]))
            known |= 1u << i;
    if (known != (1u << CLBLAST_KERNEL_COUNT) - 1) {
        device_log(meter->device, TANDEM_LOG_WARNING,
                   "tune: CLBlast does not say what its parameters are: they "
                   "are not searched for");
        return TANDEM_OK;
    }
    meter->deadline_ns = end - QUICK_NS;
    enum tandem_status status = tune_search(meter, findings);
    meter->deadline_ns = end;
    if (status == TANDEM_OK)
        status = tune_clblast_times(meter, findings, times);
    /* The programs of all that was tried. */
    clblast_clear_cache();
    for (uint32_t i = 0; i < CLBLAST_KERNEL_COUNT; i++)
        clblast_params_set(id, (enum clblast_kernel_id)i, &before[i]);
    return status;
}

enum tandem_status tune_device(struct tandem_device *device,
                               uint64_t budget_ns, tandem_tuning_result_fn sink,
                               void *user)
{
    struct meter meter;
    struct chosen chosen;
    struct findings findings = {sink, user};
    uint32_t times = 0;
    uint64_t now = monotonic_ns();
    uint64_t end = budget_ns < UINT64_MAX - now ? now + budget_ns : UINT64_MAX;
    if (budget_ns == 0)
        return TANDEM_OK;
    if (device->self_test_only)
        return tune_patched(device, budget_ns, &findings);
    chosen_start(&chosen, device, &findings);
    findings = chosen.findings;
    enum tandem_status status =
        meter_start(&meter, device, scratch_bytes(device), end);
    if (status == TANDEM_OK)
        status = tune_tiles(&meter, &findings, budget_ns >= ALL_NS);
    if (status == TANDEM_OK)
        status = tune_clblast_times(&meter, &findings, &times);
    /* A candidate that cannot be timed is left out: others are as good. */
    const uint32_t spoilt = meter.spoilt;
    if (status == TANDEM_OK && meter_left_ns(&meter) > 2 * QUICK_NS)
        status = search(&meter, &findings, &times);
    meter_end(&meter);
    if (status == TANDEM_OK)
        chosen_tell(&chosen);
    if (status == TANDEM_OK && spoilt > 0)
        status = last_error_set(TANDEM_FAILED,
                             "tune: %u measurements have no end, as the "
                             "processors are busy with something else: "
                             "measure again when they are not",
                             spoilt);
    return status;
}
