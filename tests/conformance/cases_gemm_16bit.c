/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gemm of f16 and bf16, in each combination with f32: the limits of rounding,
 * and each feature of gemm at least once.
 */
#include "gemm_case.h"

#include <string.h>

/*
 * For 16-bit operands: c near its largest value (if alpha is 0, alpha itself
 * is large), c and all operands subnormal in f16, NaN.
 */
static const struct gemm_form forms_16[] = {
    {SIZES(31, 37, 41), .always = true},
    {SIZES(40, 72, 64), .always = true},
    {SIZES(31, 37, 41), .flags = TA},
    {SIZES(36, 40, 44), .flags = TA},
    {SIZES(31, 37, 41), .flags = TB},
    {SIZES(36, 40, 44), .flags = TB},
    {SIZES(31, 37, 41), .flags = TA | TB},
    {SIZES(5, 6, 0), .batch = 2, .beta = 0.5, .bias = COLUMN,
     .activation = TANDEM_OP_RELU, .pad = {0, 0, 2}, .always = true},
    {SIZES(33, 65, 17), .alpha = 0.75, .beta = -1, .bias = ROW,
     .pad = {5, 6, 7}, .lead = 7, .always = true},
    {SIZES(7, 9, 11), .batch = 5, .beta = 0.5, .bias = COLUMN,
     .activation = TANDEM_OP_RELU, .pad = {1, 2, 3}, .lead = 5, .always = true},
    {SIZES(7, 9, 11), .batch = 4, .repeat = 2},
    {SIZES(16, 16, 16), .alpha = ZERO, .beta = 0.25},
    {SIZES(23, 29, 31), .alpha = 0.3, .bias = COLUMN,
     .activation = TANDEM_OP_GELU},
    {SIZES(23, 29, 31), .alpha = 0.3, .beta = 1, .activation = TANDEM_OP_SWISH},
    {SIZES(1, 97, 533), .flags = TB},
    {SIZES(97, 1, 533)},
    {SIZES(12, 13, 14), .special = true, .always = true},
    {SIZES(31, 37, 41), .alpha = NEAR_LARGEST, .always = true},
    {SIZES(31, 37, 41), .alpha = 0.25, .scale = 0x1p-8, .always = true},
    {SIZES(31, 37, 41), .alpha = 0x1p24, .scale = 0x1p-17, .always = true},
    /*
     * Sums that only grow, so that errors from truncating adders do not
     * cancel.
     */
    {SIZES(24, 64, 8192), .positive = true, .scale = 0x1p-4},
    {SIZES(24, 40, 65536), .positive = true, .scale = 0x1p-4,
     .full_only = true},
    {SIZES(64, 256, 1100), .full_only = true},
    {SIZES(20, 2100, 1100), .full_only = true},
    {SIZES(1100, 36, 130), .batch = 2, .flags = TB, .beta = 1, .repeat = 2,
     .full_only = true},
};
#define FORM_16_COUNT (sizeof(forms_16) / sizeof(forms_16[0]))

static const struct {
    uint32_t dtype, c_dtype;
    bool always;
} pairs[] = {
    {TANDEM_F16, TANDEM_F16, true},   {TANDEM_BF16, TANDEM_BF16, true},
    {TANDEM_F16, TANDEM_F32, false},  {TANDEM_BF16, TANDEM_F32, false},
    {TANDEM_F32, TANDEM_F16, false},  {TANDEM_F32, TANDEM_BF16, false},
    {TANDEM_F16, TANDEM_BF16, false}, {TANDEM_BF16, TANDEM_F16, false},
};
#define PAIR_COUNT (sizeof(pairs) / sizeof(pairs[0]))

void gemm_16bit_run(struct suite *suite)
{
    const char *filter = suite->options->filter;
    bool full = suite->options->full, smoke = suite->options->smoke;
    struct random choice;

    /*
     * A filter that other cases match too selects only the others, because
     * these cases take longer on devices that compile kernels.
     */
    if (filter != NULL && strstr(filter, "f16") == NULL)
        return;
    random_seed(&choice, suite->options->seed, "gemm of 16 bits");
    for (uint32_t i = 0; i < PAIR_COUNT; i++) {
        for (uint32_t j = 0; j < FORM_16_COUNT; j++) {
            struct gemm_form form = forms_16[j];
            bool chosen = random_once_in(&choice, pairs[i].always ? 8 : 24);
            bool often = random_once_in(&choice, smoke ? 3 : 1);
            bool told = form.positive && pairs[i].dtype != TANDEM_F32 &&
                        pairs[i].c_dtype == TANDEM_F32;

            form.dtype = pairs[i].dtype;
            form.c_dtype = pairs[i].c_dtype;
            if (form.full_only && !full)
                continue;
            if (full || chosen || told ||
                (pairs[i].always && form.always && often))
                gemm_form_run(suite, &form);
        }
        for (uint32_t j = 0; j < (full ? 30u : pairs[i].always); j++)
            gemm_random_run(suite, &choice, pairs[i].dtype, pairs[i].c_dtype);
    }
}
