/* SPDX-License-Identifier: Apache-2.0 */
/* Reports which GEMM kernels the measured costs select; see tune.h. */
#include "opencl/tune/tune.h"

#include <stdio.h>
#include <string.h>

#define PREFIX "gemm."
#define TEXT_BYTES 256u

/* Sizes of square matrices and data types for which kernels are reported. */
static const int64_t sizes[] = {256, 1024, 4096};
static const struct {
    const char *name;
    uint32_t dtype, flags;
} types[] = {{"f32", TANDEM_F32, 0},
             {"tf32", TANDEM_F32, TANDEM_GEMM_ALLOW_TF32},
             {"f16", TANDEM_F16, 0}};

/* Receives a tuning result. `user` is a struct selection_report. Updates its
 * cost model and passes the result on to its output. */
static void result_receive(void *user, const char *key, const char *value)
{
    struct selection_report *report = user;
    if (strncmp(key, PREFIX, strlen(PREFIX)) == 0)
        gemm_cost_model_parse(&report->selector.cost_model,
                              key + strlen(PREFIX), value);
    report->output.callback(report->output.user, key, value);
}

void selection_report_init(struct selection_report *report,
                           struct tandem_device *device,
                           const struct tuning_results_sink *output)
{
    struct gemm_selector *selector = &report->selector;
    memset(report, 0, sizeof(*report));
    gemm_selector_init(selector, device->hardware);
    selector->cost_model = device->gemm_selector.cost_model;
    selector->sm90a_kernels = device->gemm_selector.sm90a_kernels;
    atomic_store(&selector->disabled_kernels,
                 atomic_load(&device->gemm_selector.disabled_kernels));
    report->output = *output;
    report->input = (struct tuning_results_sink){result_receive, report};
}

static const char *selected_kernel_name(struct gemm_selector *selector,
                                        int64_t size, uint32_t dtype,
                                        uint32_t flags)
{
    const struct tandem_matrix matrix = {NULL, 0, size, size * size};
    const struct tandem_gemm gemm = {.struct_size = sizeof(gemm),
                                     .dtype = dtype,
                                     .flags = flags,
                                     .m = size,
                                     .n = size,
                                     .k = size,
                                     .batch = 1,
                                     .alpha = 1,
                                     .a = matrix,
                                     .b = matrix,
                                     .c = matrix,
                                     .c_dtype = dtype};
    struct gemm_selection selection;
    gemm_selector_compute(selector, &gemm, &selection);
    return selection.clblast ? "clblast" : gemm_configs[selection.kernel].name;
}

void selection_report_write(struct selection_report *report)
{
    for (uint32_t i = 0; i < sizeof(types) / sizeof(types[0]); i++) {
        char key[32], text[TEXT_BYTES] = "";
        for (uint32_t j = 0; j < sizeof(sizes) / sizeof(sizes[0]); j++) {
            size_t used = strlen(text);
            snprintf(text + used, sizeof(text) - used, "%s%d %s",
                     j == 0 ? "" : ", ", (int)sizes[j],
                     selected_kernel_name(&report->selector, sizes[j],
                                          types[i].dtype, types[i].flags));
        }
        snprintf(key, sizeof(key), PREFIX "selected.%s", types[i].name);
        report->output.callback(report->output.user, key, text);
    }
}
