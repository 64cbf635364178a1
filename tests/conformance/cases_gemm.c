/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gemm: shapes with 0, 1 and primes, transposes, leading dimensions, batches,
 * alpha and beta, bias and activation, dtypes. Elements that must not be read
 * are NaN.
 */
#include "gemm_case.h"

static const struct gemm_form forms[] = {
    {SIZES(64, 64, 64), .always = true},
    {SIZES(1, 1, 1), .always = true},
    {SIZES(9, 10, 11), .bias = COLUMN, .version_1_0 = true, .always = true},
    {SIZES(31, 37, 41), .always = true},
    {SIZES(31, 37, 41), .flags = TA, .always = true},
    {SIZES(31, 37, 41), .flags = TB, .always = true},
    {SIZES(31, 37, 41), .flags = TA | TB, .always = true},
    {SIZES(0, 5, 7), .always = true},
    {SIZES(5, 0, 7)},
    {SIZES(5, 6, 0), .always = true},
    {SIZES(5, 6, 0), .beta = 0.5, .bias = COLUMN, .activation = TANDEM_OP_RELU},
    {SIZES(5, 6, 0), .batch = 3, .bias = ROW, .pad = {0, 0, 2}},
    {SIZES(1, 97, 53), .always = true},
    {SIZES(97, 1, 53), .always = true},
    {SIZES(97, 1, 53), .flags = TA},
    {SIZES(1, 97, 53), .flags = TB},
    {SIZES(1, 1, 1), .invalid_strides = true, .always = true},
    {SIZES(1, 97, 53), .flags = TB, .bias = COLUMN, .invalid_strides = true,
     .always = true},
    {SIZES(40, 37, 1), .flags = TA, .invalid_strides = true, .always = true},
    {SIZES(5, 6, 0), .batch = 3, .invalid_strides = true},
    {SIZES(0, 5, 7), .batch = 3, .invalid_strides = true},
    {SIZES(1, 1, 1021)},
    {SIZES(53, 61, 1)},
    {SIZES(6, 1, 35), .always = true},
    {SIZES(1, 40, 64), .flags = TB, .pad = {0, 1, 0}, .always = true},
    {SIZES(1, 70, 33), .batch = 3, .flags = TB, .beta = 1, .always = true},
    {SIZES(3, 700, 601), .flags = TA, .bias = COLUMN, .always = true},
    {SIZES(900, 2, 700), .pad = {4, 3, 1}, .always = true},
    {SIZES(3, 5, 7), .alpha = -0.5, .beta = 2, .pad = {3, 1, 4}, .lead = 3,
     .always = true},
    {SIZES(33, 65, 17), .alpha = 0.75, .beta = 1, .pad = {5, 0, 7}, .lead = 1},
    {SIZES(33, 65, 17), .flags = TA | TB, .alpha = 0.75, .beta = -1,
     .pad = {5, 6, 7}, .lead = 7},
    {SIZES(16, 16, 16), .alpha = ZERO, .beta = 0.25},
    {SIZES(16, 16, 16), .alpha = ZERO},
    {SIZES(16, 16, 16), .alpha = ZERO, .beta = 0.25, .special = true},
    {SIZES(17, 1, 18), .alpha = ZERO, .bias = ROW, .special = true},
    {SIZES(16, 16, 16), .alpha = TO_ZERO, .bias = COLUMN, .special = true,
     .always = true},
    {SIZES(1, 35, 36), .alpha = TO_ZERO, .beta = -1, .special = true},
    {SIZES(18, 19, 20), .beta = TO_ZERO, .bias = ROW, .always = true},
    {SIZES(1, 21, 22), .batch = 3, .flags = TB, .beta = TO_ZERO},
    {SIZES(20, 24, 28), .bias = COLUMN, .always = true},
    {SIZES(20, 24, 28), .beta = 1, .bias = ROW, .always = true},
    {SIZES(23, 29, 31), .bias = COLUMN, .activation = TANDEM_OP_RELU,
     .always = true},
    {SIZES(23, 29, 31), .bias = ROW, .activation = TANDEM_OP_LEAKY_RELU,
     .activation_parameter = 0.25},
    {SIZES(23, 29, 31), .alpha = 0.2, .bias = COLUMN,
     .activation = TANDEM_OP_SIGMOID},
    {SIZES(23, 29, 31), .alpha = 0.2, .activation = TANDEM_OP_TANH,
     .pad = {0, 0, 3}},
    {SIZES(23, 29, 31), .alpha = 0.3, .bias = ROW,
     .activation = TANDEM_OP_GELU},
    {SIZES(23, 29, 31), .alpha = 0.3, .beta = 0.5, .activation = TANDEM_OP_GELU,
     .activation_parameter = 1},
    {SIZES(23, 29, 31), .alpha = 0.3, .bias = COLUMN,
     .activation = TANDEM_OP_SWISH},
    {SIZES(7, 9, 11), .batch = 5, .always = true},
    {SIZES(7, 9, 11), .batch = 5, .flags = TB, .beta = 0.5, .pad = {1, 2, 3},
     .lead = 5},
    {SIZES(7, 9, 11), .batch = 4, .repeat = 1, .always = true},
    {SIZES(7, 9, 11), .batch = 4, .repeat = 2, .bias = COLUMN},
    {SIZES(7, 9, 11), .batch = 4, .repeat = 3, .bias = ROW,
     .activation = TANDEM_OP_RELU},
    {SIZES(12, 12, 12), .batch = 3, .flags = TA, .alpha = 2, .bias = COLUMN,
     .activation = TANDEM_OP_SIGMOID},
    {SIZES(12, 13, 14), .special = true, .always = true},
    {SIZES(12, 13, 14), .special = true, .bias = COLUMN,
     .activation = TANDEM_OP_RELU},
    {SIZES(128, 10, 256), .bias = COLUMN, .activation = TANDEM_OP_RELU,
     .always = true},
    /* Several matrices with k large enough for a split along k. */
    {SIZES(5, 7, 4103), .batch = 3, .pad = {1, 0, 2}, .always = true},
    {SIZES(7, 5, 5120), .batch = 2, .beta = -0.5, .repeat = 2, .always = true},
    {SIZES(33, 17, 8195), .flags = TA, .bias = ROW, .beta = 1},
    {SIZES(64, 256, 128), .flags = TA},
    {SIZES(129, 127, 131), .beta = 1},
    {SIZES(300, 257, 301)},
    {SIZES(300, 257, 301), .flags = TA | TB, .full_only = true},
    {SIZES(511, 509, 513), .flags = TB, .bias = COLUMN, .full_only = true},
    {SIZES(17, 2049, 19), .full_only = true},
    {SIZES(2049, 17, 19), .full_only = true},
    {SIZES(9, 11, 20011), .full_only = true},
    {SIZES(4, 4, 4), .batch = 1001, .full_only = true},
};
#define FORM_COUNT (sizeof(forms) / sizeof(forms[0]))

/*
 * Long sums whose rounding errors have the same sign, in the shapes of all
 * kernels: one result, few rows or columns, small and large matrices, with and
 * without a split along k.
 */
static const struct gemm_form long_sums[] = {
    {SIZES(1, 1, 1024), .always = true},
    {SIZES(1, 1, 16384), .always = true},
    {SIZES(1, 1, 262144)},
    {SIZES(1, 33, 16384)},
    {SIZES(1, 67, 2048), .always = true},
    {SIZES(1, 64, 65536), .flags = TB},
    {SIZES(33, 1, 16384), .flags = TA},
    {SIZES(3, 5, 65536), .full_only = true},
    {SIZES(4, 300, 8192), .full_only = true},
    {SIZES(300, 16, 8192), .flags = TA, .full_only = true},
    {SIZES(16, 17, 1048575), .flags = TB, .full_only = true},
    {SIZES(33, 35, 1024), .always = true},
    {SIZES(33, 35, 4097), .flags = TA | TB, .beta = 1},
    {SIZES(130, 257, 2048), .flags = TB},
    {SIZES(7, 5, 16384), .batch = 3, .full_only = true},
    {SIZES(65, 66, 16384), .full_only = true},
    {SIZES(130, 70, 4096), .dtype = TANDEM_F16, .c_dtype = TANDEM_F32,
     .full_only = true},
    {SIZES(1, 70, 16384), .dtype = TANDEM_BF16, .c_dtype = TANDEM_F32,
     .full_only = true},
};
#define LONG_SUM_COUNT (sizeof(long_sums) / sizeof(long_sums[0]))

static void long_sums_run(struct suite *suite)
{
    static const enum gemm_pattern patterns[] = {
        PATTERN_CONSTANT, PATTERN_PERIODIC, PATTERN_ALTERNATING};
    bool full = suite->options->full, smoke = suite->options->smoke;

    for (uint32_t i = 0; i < LONG_SUM_COUNT; i++) {
        if (!full &&
            (long_sums[i].full_only || (smoke && !long_sums[i].always)))
            continue;
        for (uint32_t j = 0; j < sizeof(patterns) / sizeof(patterns[0]); j++) {
            struct gemm_form form = long_sums[i];

            form.pattern = patterns[j];
            gemm_form_run(suite, &form);
        }
    }
}

/* A GEMM with one small dimension, for which there are separate kernels. */
static void narrow_form_run(struct suite *suite, struct random *random)
{
    static const int64_t narrow[] = {1, 1, 2, 3, 4, 5, 8, 10, 16, 17, 31, 32};
    static const double betas[] = {0.0, 0.0, 1.0, -0.5};
    struct gemm_form form = {0};
    int64_t thin = narrow[random_below(random, 12)], wide;

    /*
     * Some are large enough to be divided among threads, or have a k large
     * enough to be split.
     */
    switch (random_below(random, 4)) {
    case 0:
        wide = random_between(random, 1, 20);
        form.k = random_between(random, 1000, 9000);
        break;
    case 1:
        wide = random_between(random, 700, 1500);
        form.k = random_between(random, 200, 1200);
        break;
    default:
        wide = random_between(random, 1, 300);
        form.k = random_between(random, 1, 300);
        break;
    }
    /* Sometimes a size that is a multiple of the vector width. */
    if (random_once_in(random, 2)) {
        wide = (wide + 3) / 4 * 4;
        form.k = (form.k + 3) / 4 * 4;
    }
    form.flags = (uint32_t)random_u64(random) & (TA | TB);
    form.m = random_once_in(random, 2) ? thin : wide;
    form.n = form.m == thin ? wide : thin;
    form.batch = random_once_in(random, 4) && wide * form.k < 50000
                     ? random_between(random, 2, 5)
                     : 1;
    form.bias = (uint32_t)random_below(random, 3);
    form.activation = random_once_in(random, 2)   ? TANDEM_OP_INVALID
                      : random_once_in(random, 2) ? TANDEM_OP_RELU
                                                  : TANDEM_OP_GELU;
    form.alpha = random_once_in(random, 2) ? 1.0 : 0.5;
    form.beta = betas[random_below(random, 4)];
    for (uint32_t i = 0; i < 3; i++)
        form.pad[i] = random_once_in(random, 2)
                          ? 0
                          : 4 * random_between(random, 0, 2) +
                                (random_once_in(random, 2) ? 0 : 1);
    form.lead =
        random_once_in(random, 2) ? 0 : (uint32_t)random_below(random, 6);
    form.repeat = (uint32_t)random_below(random, 4);
    form.special = random_once_in(random, 12);
    gemm_form_run(suite, &form);
}

void cases_gemm(struct suite *suite)
{
    bool full = suite->options->full, smoke = suite->options->smoke;
    struct random choice;

    if (!group_selected(suite, "gemm"))
        return;
    random_seed(&choice, suite->options->seed, "gemm");
    for (uint32_t i = 0; i < FORM_COUNT; i++) {
        bool chosen = random_once_in(&choice, smoke ? 8 : 2);
        bool often = random_once_in(&choice, smoke ? 2 : 1);

        if (forms[i].full_only && !full)
            continue;
        if (full || (forms[i].always && often) || chosen ||
            (suite->options->filter != NULL && !smoke))
            gemm_form_run(suite, &forms[i]);
    }
    long_sums_run(suite);
    for (uint32_t i = 0; i < (full ? 200u : smoke ? 3u : 8u); i++)
        gemm_random_run(suite, &choice, 0, 0);
    for (uint32_t i = 0; i < (full ? 300u : smoke ? 8u : 24u); i++)
        narrow_form_run(suite, &choice);
    gemm_16bit_run(suite);
    gemm_relaxed_run(suite);
}
