/* SPDX-License-Identifier: Apache-2.0 */
/* Trying patched programs, in a process that may crash or hang over it. */
#include <string.h>

#include "opencl/device.h"
#include "opencl/launch.h"
#include "opencl/tune.h"

/* Several tiles along each axis, on each multiprocessor. */
#define SIDE 2048
#define SIDE_BYTES ((uint64_t)SIDE * SIDE * sizeof(float))

static void tell(const struct findings *findings, enum verdict verdict,
                 uint64_t stamp)
{
    char text[VERDICT_BYTES];
    verdict_write(text, verdict, stamp);
    findings->sink(findings->user, "wgmma", text);
}

/* A product that the tile takes.  Its kernels are proved where they are built
 * (proof.h); here it is to come to an end. */
static enum tandem_status product_try(struct meter *meter, enum tile_id tile,
                                      uint32_t dtype)
{
    struct plan plan;
    const struct tandem_gemm gemm = {
        .struct_size = sizeof(gemm),
        .dtype = dtype,
        .flags = TANDEM_GEMM_ALLOW_TF32 | TANDEM_GEMM_ALLOW_ROW_SCALED,
        .m = SIDE,
        .n = SIDE,
        .k = SIDE,
        .batch = 1,
        .alpha = 1,
        .a = {meter->memory, 0, SIDE, 0},
        .b = {meter->memory, SIDE_BYTES, SIDE, 0},
        .c = {meter->memory, 2 * SIDE_BYTES, SIDE, 0}};
    enum tandem_status status;
    do {
        plan_product(&plan, &gemm, tile, WHOLE, NULL,
                     meter->device->programs.group_log2);
        status = launch_plan(meter->stream, &plan);
    } while (status == TANDEM_NOT_READY && meter_left_ns(meter) > 0);
    if (status == TANDEM_OK)
        status = stream_synchronize(meter->stream, meter_left_ns(meter));
    return status;
}

static enum tandem_status tiles_try(struct meter *meter)
{
    static const uint32_t halves[] = {TANDEM_F16, TANDEM_BF16};
    enum tandem_status status = TANDEM_OK;
    for (uint32_t i = 0; i < TILES && status == TANDEM_OK; i++) {
        if (!tiles[i].patched)
            continue;
        if (tiles[i].tensor != TENSOR_HALF)
            status = product_try(meter, (enum tile_id)i, TANDEM_F32);
        for (uint32_t h = 0; h < 2 && tiles[i].tensor == TENSOR_HALF &&
                             status == TANDEM_OK;
             h++)
            status = product_try(meter, (enum tile_id)i, halves[h]);
    }
    return status;
}

enum tandem_status tune_patched(struct tandem_device *device,
                                uint64_t budget_ns,
                                const struct findings *findings)
{
    struct meter meter;
    uint64_t stamp = verdict_stamp(device->hardware);
    uint64_t now = wait_clock();
    uint64_t end = budget_ns < UINT64_MAX - now ? now + budget_ns : UINT64_MAX;
    if (!device->hardware->wgmma)
        return TANDEM_OK;
    enum tandem_status status =
        meter_start(&meter, device, 3 * SIDE_BYTES, end);
    if (status == TANDEM_OK && meter.bytes < 3 * SIDE_BYTES)
        status = message_set(TANDEM_OUT_OF_MEMORY,
                             "tune: no memory to try wgmma in");
    if (status != TANDEM_OK) {
        meter_end(&meter);
        return status;
    }
    tell(findings, VERDICT_TRIED, stamp);
    status = tiles_try(&meter);
    if (status != TANDEM_OK)
        device_log(device, TANDEM_LOG_WARNING,
                   "%s: matrix products do without wgmma: %s",
                   device->hardware->info.name, message_get());
    tell(findings, status == TANDEM_OK ? VERDICT_RIGHT : VERDICT_WRONG, stamp);
    meter_end(&meter);
    return TANDEM_OK;
}
