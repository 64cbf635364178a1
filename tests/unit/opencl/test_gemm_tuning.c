/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The measured costs of GEMM kernels if the times of some kernels are
 * distorted. Tests tune_gemm_costs.c alone, with times from the test. Needs no
 * OpenCL.
 */
#include <config.h>

#include <string.h>

#include "support/test_list.h"
#include "opencl/device/device.h"
#include "opencl/queue/buffer_commands.h"
#include "opencl/launch/kernel_launch.h"
#include "opencl/launch/kernel_launch.h"
#include "opencl/tune/tune.h"

static struct platform_device hardware = {.info.kind = TANDEM_DEVICE_GPU,
                                          .info.compute_units = 10,
                                          .group_limit = 256};
static struct tandem_device device = {.hardware = &hardware};
/* The times of a GEMM, of the same GEMM and a small one, of the small one, and
 * of a copy, which are measured in this order before the kernels. */
static double first_times[4];
static uint32_t measurements;
/* The kernel whose time hardly depends on k, and what it adds per unit of k if
 * the GEMM has as many tiles as compute units, and if it has more tiles. */
static enum gemm_kernel_id distorted;
static double few_ns_per_k, many_ns_per_k;
/* The largest k of a GEMM that the distorted kernel has computed. */
static int64_t largest_k;
/* The number of elements of the result with as many tiles as compute units. */
static int64_t few_elements;
/* Names of the reported costs, each after a blank. */
static char reported[2048];

enum tandem_status kernel_timer_measure(struct kernel_timer *timer,
                                        kernel_timer_launch_fn launch,
                                        void *work, double *out_ns)
{
    const struct timed_gemm *timed = work;
    (void)timer, (void)launch;
    if (measurements < 4) {
        *out_ns = first_times[measurements++];
        return TANDEM_OK;
    }
    *out_ns = 1e6;
    if (timed->kernel != distorted) {
        *out_ns += 1e3 * (double)timed->gemm.k * (double)timed->gemm.n;
        return TANDEM_OK;
    }
    /* GEMMs with few tiles are measured first. */
    if (few_elements == 0)
        few_elements = timed->gemm.m * timed->gemm.n;
    if (timed->gemm.k > largest_k)
        largest_k = timed->gemm.k;
    *out_ns += (double)timed->gemm.k *
               (timed->gemm.m * timed->gemm.n == few_elements ? few_ns_per_k
                                                              : many_ns_per_k);
    return TANDEM_OK;
}

enum tandem_status kernel_timer_build(struct kernel_timer *timer,
                                      kernel_timer_launch_fn launch, void *work)
{
    (void)timer, (void)launch, (void)work;
    return TANDEM_OK;
}

uint64_t kernel_timer_remaining_ns(const struct kernel_timer *timer)
{
    (void)timer;
    return UINT64_MAX;
}

bool tuning_can_continue(enum tandem_status status)
{
    return status == TANDEM_OK || status == TANDEM_FAILED;
}

enum tandem_status launch_plan(struct tandem_stream *stream,
                               const struct launch_plan *plan,
                               struct launch_memory *memory)
{
    (void)stream, (void)plan, (void)memory;
    return TANDEM_OK;
}

void gemm_memory_to_slots(struct tandem_gemm *gemm, struct launch_memory *out)
{
    (void)gemm, (void)out;
}

enum tandem_status buffer_copy(struct tandem_stream *stream,
                               struct tandem_buffer *to, uint64_t to_offset,
                               struct tandem_buffer *from, uint64_t from_offset,
                               uint64_t bytes)
{
    (void)stream, (void)to, (void)to_offset, (void)from, (void)from_offset;
    (void)bytes;
    return TANDEM_OK;
}

static void cost_receive(void *user, const char *key, const char *value)
{
    (void)user, (void)value;
    strcat(strcat(reported, " "), key);
    strcat(reported, ";");
}

/* Measures all kernels. The small GEMM takes pair_ns - 50000 after another. */
static void tune(double pair_ns)
{
    struct kernel_timer timer = {.device = &device, .bytes = UINT64_C(1) << 30};
    const struct tuning_results_sink sink = {cost_receive, NULL};
    const double times[4] = {50000, pair_ns, 2000, 1e6};
    memcpy(first_times, times, sizeof(times));
    measurements = 0;
    few_elements = largest_k = 0;
    reported[0] = '\0';
    memset(&device.gemm_selector, 0, sizeof(device.gemm_selector));
    gemm_selector_init(&device.gemm_selector, &hardware);
    ck_assert_int_eq(tune_gemm_costs(&timer, &sink, true), TANDEM_OK);
}

static bool is_reported(const char *key)
{
    char text[64];
    snprintf(text, sizeof(text), " gemm.%s;", key);
    return strstr(reported, text) != NULL;
}

TEST(kernel_whose_time_does_not_grow_has_no_costs)
{
    distorted = GEMM_SIMT_64X64;
    tune(55000);
    ck_assert_msg(is_reported("kernel.simt-32x64"), "%s", reported);
    ck_assert_msg(is_reported("kernel.simt-128x128"), "%s", reported);
    ck_assert_msg(is_reported("kernel_mn_major.gemv-1"), "%s", reported);
    ck_assert_msg(!is_reported("kernel.simt-64x64"), "%s", reported);
    distorted = GEMV_1;
    tune(55000);
    ck_assert_msg(is_reported("kernel.simt-64x64"), "%s", reported);
    ck_assert_msg(!is_reported("kernel.gemv-1"), "%s", reported);
    ck_assert_msg(!is_reported("kernel_mn_major.gemv-1"), "%s", reported);
}

/* Tunes with a kernel whose time is 1 ms, plus these times per unit of k. */
static bool has_costs(double few, double many)
{
    distorted = GEMM_SIMT_64X64;
    few_ns_per_k = few;
    many_ns_per_k = many;
    tune(55000);
    few_ns_per_k = many_ns_per_k = 0;
    ck_assert_msg(is_reported("kernel.simt-32x64"), "%s", reported);
    return is_reported("kernel.simt-64x64");
}

TEST(kernel_whose_time_grows_by_noise_has_no_costs)
{
    const double one_ns = 1.0 / 768, usual = 4e3; /* depths: 256 and 1024 */
    ck_assert(has_costs(usual, usual));
    ck_assert(!has_costs(one_ns, usual));
    ck_assert(!has_costs(usual, one_ns));
    /* The time grows by 5 %, and by 10 % if both depths are twice as large. */
    ck_assert(has_costs(68, usual));
    ck_assert_int_eq(largest_k, 2048);
    ck_assert(has_costs(usual, usual));
    ck_assert_int_eq(largest_k, 1024);
}

TEST(launch_that_takes_no_time_has_no_cost)
{
    distorted = GEMM_KERNEL_COUNT;
    tune(55000);
    ck_assert_msg(is_reported("launch_ns"), "%s", reported);
    tune(49000);
    ck_assert_msg(!is_reported("launch_ns"), "%s", reported);
    ck_assert_msg(is_reported("kernel.simt-64x64"), "%s", reported);
}

TEST_MAIN(tests_run("gemm-tuning"))
