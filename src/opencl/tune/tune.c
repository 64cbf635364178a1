/* SPDX-License-Identifier: Apache-2.0 */
/* Runs the tuning measurements of a device, and reports which GEMM kernels the
 * measured costs select; see tune.h. */
#include "opencl/tune/tune.h"

#include <stdio.h>
#include <string.h>

#include "opencl/device/device.h"

/* Scratch memory for a GEMM of 4096 x 4096 matrices and CLBlast's packed
 * operands. On a CPU, the matrices are 1024 x 1024. */
#define SCRATCH_BYTES (UINT64_C(192) << 20)
#define CPU_SCRATCH_BYTES (UINT64_C(32) << 20)
/* Minimum time budget for measuring the kernels that only 16-bit and
 * reduced-accuracy GEMMs use. */
#define ALL_KERNELS_NS UINT64_C(4000000000)

/* ---- the selected kernels ---- */

#define PREFIX "gemm."

/* Passes tuning results on to `output`, then reports which kernels the results
 * select for some square matrices (gemm.selected.DTYPE, for information). */
struct selection_report {
    struct tuning_results_sink input; /* receives the tuning results */
    struct tuning_results_sink output;
    struct gemm_selector selector; /* selects kernels by the measured costs */
};

/* Sizes of square matrices and data types for which kernels are reported. */
static const int64_t sizes[] = {256, 1024, 4096};
static const struct {
    const char *name;
    uint32_t dtype, flags;
} types[] = {{"f32", TANDEM_F32, 0},
             {"tf32", TANDEM_F32, TANDEM_GEMM_ALLOW_TF32},
             {"f16", TANDEM_F16, 0}};

/* Receives a tuning result. `user` is a struct selection_report. Updates the
 * report's cost model and passes the result on to the report's output. */
static void result_receive(void *user, const char *key, const char *value)
{
    struct selection_report *report = user;
    if (strncmp(key, PREFIX, strlen(PREFIX)) == 0)
        gemm_cost_model_parse(&report->selector.cost_model,
                              key + strlen(PREFIX), value);
    report->output.callback(report->output.user, key, value);
}

static void selection_report_init(struct selection_report *report,
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

/* Reports only f32, the first type, unless `all_kernels` were measured. */
static void selection_report_write(struct selection_report *report,
                                   bool all_kernels)
{
    const uint32_t count = all_kernels ? sizeof(types) / sizeof(types[0]) : 1;
    for (uint32_t i = 0; i < count; i++) {
        char key[32], text[256] = "";
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

/* ---- the measurements ---- */

static uint64_t scratch_bytes(const struct tandem_device *device)
{
    const struct tandem_device_info *info = &device->hardware->info;
    uint64_t bytes =
        info->kind == TANDEM_DEVICE_CPU ? CPU_SCRATCH_BYTES : SCRATCH_BYTES;
    return info->memory_bytes != 0 && info->memory_bytes / 8 < bytes
               ? info->memory_bytes / 8
               : bytes;
}

enum tandem_status tune_device(struct tandem_device *device, uint64_t budget_ns,
                               tandem_tuning_result_fn callback, void *user)
{
    struct kernel_timer timer;
    struct selection_report report;
    const struct tuning_results_sink output = {callback, user};
    const bool all_kernels = budget_ns >= ALL_KERNELS_NS;
    if (budget_ns == 0)
        return TANDEM_OK;
    if (device->self_test_only)
        return sm90a_self_test_run(device, budget_ns, &output);
    selection_report_init(&report, device, &output);
    const struct tuning_results_sink *sink = &report.input;
    enum tandem_status status =
        kernel_timer_init(&timer, device, scratch_bytes(device), budget_ns);
    if (status == TANDEM_OK)
        status = tune_gemm_costs(&timer, sink, all_kernels);
    if (status == TANDEM_OK)
        status = tune_clblast_times(&timer, sink);
    const uint32_t aborted = timer.aborted;
    kernel_timer_finish(&timer);
    if (status == TANDEM_OK)
        selection_report_write(&report, all_kernels);
    if (status == TANDEM_OK && aborted > 0)
        status = last_error_set(TANDEM_FAILED,
                                "tune: aborted %u measurements, because other "
                                "processes keep the CPUs busy; tune again on "
                                "an idle machine",
                                aborted);
    return status;
}
