/* SPDX-License-Identifier: Apache-2.0 */
/*
 * libtandem with a GPU that shares the host's memory, which OpenCL on a
 * processor says to be behind the layer: operands go there and results come
 * back by each way that the plugin has, right every time, and never by maps
 * that do not keep what the host writes.
 */
#include <config.h>

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "host/support.h"
#include "layer.h"

/* No multiple of any piece or slot; each has a contest of its own. */
#define SMALL 50077
#define LARGE ((1 << 19) + 1077)
/* Enough for each way to have had its turns, and for the ring to be made. */
#define ROUNDS 12

/* Of a round of both sizes: two operands and a result. */
#define TRANSFERS 6u

static layer_counts_fn counts_fn;
static float x[LARGE], y[LARGE], sum[LARGE];

static void plugins_setup(void)
{
    void *layer, *symbol;

    scratch_setup();
    directory_make(scratch_path("opencl"));
    file_copy(scratch_path("opencl/tandem-opencl.so"),
              build_path("tandem-opencl.so"));
    setenv("OPENCL_LAYERS", build_path("opencl-layer.so"), 1);
    layer = dlopen(build_path("opencl-layer.so"), RTLD_NOW);
    ck_assert_msg(layer != NULL, "%s", dlerror());
    symbol = dlsym(layer, "layer_counts_read");
    ck_assert_ptr_nonnull(symbol);
    memcpy(&counts_fn, &symbol, sizeof counts_fn);
}

static void gpu_setup(void)
{
    environment_setup();
    unsetenv("TANDEM_LAYER_STALE");
    setenv("TANDEM_LAYER_GPU", "1", 1);
}

/* way NULL: by contest. */
static struct tandem_context *unified_new(const char *way, uint32_t *out_gpu)
{
    const char *const keys[] = {"test.transfers"};
    const struct tandem_context_options options = {
        .plugin_path = scratch_path("opencl"),
        .log_level = TANDEM_LOG_DEBUG,
        .open_keys = keys,
        .open_values = &way,
        .open_count = way != NULL};
    struct tandem_context *context = context_new(&options);

    OK(tandem_device_find(context, "opencl", out_gpu));
    return context;
}

/* sum = x + y on the GPU, with new numbers. */
static void add_round(struct tandem_context *context, uint32_t gpu,
                      int64_t count, int round)
{
    const struct tandem_op op = {.struct_size = sizeof op,
                                 .id = TANDEM_OP_ADD};
    struct tandem_tensor *in[2] = {vector_wrap(context, x, count),
                                   vector_wrap(context, y, count)};
    struct tandem_tensor *out = vector_wrap(context, sum, count);

    for (int64_t i = 0; i < count; i++) {
        x[i] = (float)(i % 1013 + round);
        y[i] = (float)(i % 509 * 2048);
        sum[i] = -1;
    }
    OK(tandem_run_on(context, gpu, &op, in, 2, &out, 1));
    OK(tandem_tensor_sync(out, TANDEM_FOREVER));
    for (int64_t i = 0; i < count; i++)
        ck_assert_msg(sum[i] == x[i] + y[i],
                      "round %d: element %lld of %lld is %g, not %g", round,
                      (long long)i, (long long)count, (double)sum[i],
                      (double)(x[i] + y[i]));
    tandem_tensor_destroy(in[0]);
    tandem_tensor_destroy(in[1]);
    tandem_tensor_destroy(out);
}

/* Maps of that many rounds, of both sizes or the larger one. */
static uint64_t maps_of(const char *way, int rounds, bool both)
{
    struct layer_counts before, after;
    uint32_t gpu;
    struct tandem_context *context = unified_new(way, &gpu);

    counts_fn(&before);
    for (int i = 0; i < rounds; i++) {
        if (both)
            add_round(context, gpu, SMALL, i);
        add_round(context, gpu, LARGE, i);
    }
    counts_fn(&after);
    tandem_context_destroy(context);
    return after.maps - before.maps;
}

START_TEST(test_every_way_carries_what_is_right)
{
    static const char *const ways[] = {"direct", "ring", "staged", "mapped"};
    uint64_t maps = maps_of(ways[_i], 2, true);

    if (_i == 3)
        ck_assert_uint_ge(maps, 2 * TRANSFERS);
}
END_TEST

START_TEST(test_the_contest_decides)
{
    maps_of(NULL, ROUNDS, false);
    ck_assert_uint_ge(log_count(TANDEM_LOG_DEBUG, "uploads go by"), 1);
    ck_assert_uint_ge(log_count(TANDEM_LOG_DEBUG, "downloads go by"), 1);
}
END_TEST

START_TEST(test_maps_that_lose_writes_are_found_out)
{
    uint64_t maps;

    setenv("TANDEM_LAYER_STALE", "1", 1);
    maps = maps_of("mapped", 2, true);
    /* The round trip's alone. */
    ck_assert_uint_ge(maps, 1);
    ck_assert_uint_lt(maps, 2 * TRANSFERS);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("unified");
    TCase *tests = tcase_create("unified");

    tcase_set_timeout(tests, 240);
    tcase_add_unchecked_fixture(tests, plugins_setup, scratch_teardown);
    tcase_add_checked_fixture(tests, gpu_setup, NULL);
    tcase_add_loop_test(tests, test_every_way_carries_what_is_right, 0, 4);
    tcase_add_test(tests, test_the_contest_decides);
    tcase_add_test(tests, test_maps_that_lose_writes_are_found_out);
    suite_add_tcase(suite, tests);
    return suite_run(suite);
}
