/* SPDX-License-Identifier: Apache-2.0 */
/* What the costs that were found choose; see tune.h. */
#include "opencl/tune/tune.h"

#include <stdio.h>
#include <string.h>

#include "opencl/device/device.h"

#define PREFIX "gemm."
#define TEXT_BYTES 256u

/* Squares whose routes are told. */
static const int64_t sizes[] = {256, 1024, 4096};
static const struct {
    const char *name;
    uint32_t dtype, flags;
} kinds[] = {{"f32", TANDEM_F32, 0},
             {"tf32", TANDEM_F32, TANDEM_GEMM_ALLOW_TF32},
             {"f16", TANDEM_F16, 0}};

/* Takes one result of the measurements: updates the costs that `user`, a struct
 * chosen, chooses by, and passes the result on. */
static void chosen_note(void *user, const char *key, const char *value)
{
    struct chosen *chosen = user;
    if (strncmp(key, PREFIX, strlen(PREFIX)) == 0)
        gemm_cost_model_parse(&chosen->selector.cost_model,
                              key + strlen(PREFIX), value);
    chosen->told.sink(chosen->told.user, key, value);
}

void chosen_start(struct chosen *chosen, struct tandem_device *device,
                  const struct findings *findings)
{
    struct gemm_selector *selector = &chosen->selector;
    memset(chosen, 0, sizeof(*chosen));
    gemm_selector_init(selector, device->hardware);
    selector->cost_model = device->gemm_selector.cost_model;
    selector->sm90a_kernels = device->gemm_selector.sm90a_kernels;
    atomic_store(&selector->disabled_kernels,
                 atomic_load(&device->gemm_selector.disabled_kernels));
    chosen->told = *findings;
    chosen->findings = (struct findings){chosen_note, chosen};
}

static const char *selected_kernel_name(struct gemm_selector *selector,
                                        int64_t size, uint32_t dtype,
                                        uint32_t flags)
{
    const struct tandem_gemm gemm = {.struct_size = sizeof(gemm),
                                     .dtype = dtype,
                                     .flags = flags,
                                     .m = size,
                                     .n = size,
                                     .k = size,
                                     .batch = 1,
                                     .alpha = 1,
                                     .a = {NULL, 0, size, size * size},
                                     .b = {NULL, 0, size, size * size},
                                     .c = {NULL, 0, size, size * size},
                                     .c_dtype = dtype};
    struct gemm_selection selection;
    gemm_selector_compute(selector, &gemm, &selection);
    return selection.clblast ? "clblast" : gemm_configs[selection.tile].name;
}

void chosen_tell(struct chosen *chosen)
{
    for (uint32_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
        char key[32], text[TEXT_BYTES] = "";
        for (uint32_t j = 0; j < sizeof(sizes) / sizeof(sizes[0]); j++) {
            size_t used = strlen(text);
            snprintf(text + used, sizeof(text) - used, "%s%d %s",
                     j == 0 ? "" : ", ", (int)sizes[j],
                     selected_kernel_name(&chosen->selector, sizes[j],
                                          kinds[i].dtype, kinds[i].flags));
        }
        snprintf(key, sizeof(key), PREFIX "chosen.%s", kinds[i].name);
        chosen->told.sink(chosen->told.user, key, text);
    }
}
