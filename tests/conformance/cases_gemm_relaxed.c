/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gemm of f32 if the caller allows TF32 or a normwise error: sizes at the
 * boundaries of tiles and k-slices, and elements that are not finite, tiny or
 * huge.
 */
#include "gemm_case.h"

static const struct gemm_form forms[] = {
    {SIZES(64, 64, 64), .always = true},
    {SIZES(31, 37, 41), .always = true},
    {SIZES(132, 260, 100), .always = true},
    {SIZES(132, 260, 100), .flags = TA},
    {SIZES(132, 260, 100), .flags = TB},
    {SIZES(132, 260, 100), .flags = TA | TB},
    {SIZES(133, 131, 301), .flags = TB, .alpha = 0.75, .beta = -1,
     .bias = COLUMN, .activation = TANDEM_OP_RELU, .pad = {5, 6, 7}, .lead = 7,
     .always = true},
    {SIZES(140, 72, 300), .batch = 3, .alpha = 0.5, .beta = 1, .bias = ROW,
     .activation = TANDEM_OP_GELU, .pad = {4, 0, 8}, .repeat = 2},
    {SIZES(7, 9, 11), .batch = 4, .flags = TB, .repeat = 1, .always = true},
    {SIZES(140, 144, 64), .special = true, .always = true},
    {SIZES(45, 33, 300), .special = true},
    {SIZES(40, 44, 300), .scale = 1e17},
    {SIZES(40, 44, 300), .scale = 1e-18},
    {SIZES(40, 44, 300), .scale = 1e-40},
    {SIZES(300, 520, 1000), .flags = TB, .full_only = true},
    {SIZES(1024, 1024, 1024), .full_only = true},
};
#define FORM_COUNT (sizeof(forms) / sizeof(forms[0]))

void gemm_relaxed_run(struct suite *suite)
{
    static const uint32_t flags[] = {TANDEM_GEMM_ALLOW_TF32,
                                     TANDEM_GEMM_ALLOW_NORMWISE_ERROR};
    bool full = suite->options->full, smoke = suite->options->smoke;

    for (uint32_t i = 0; i < FORM_COUNT * 2; i++) {
        struct gemm_form form = forms[i / 2];

        form.flags |= flags[i % 2];
        if (full ||
            (!form.full_only &&
             (form.always || (suite->options->filter != NULL && !smoke))))
            gemm_form_run(suite, &form);
    }
}
