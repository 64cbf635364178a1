/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Suite "gemm": GEMM compared with CLBlast, or with CBLAS on the CPU, and the
 * errors of both against float64.
 */
#include <config.h>

#include "gemm_case.h"

#include <stddef.h>
#include <stdio.h>

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

static const int64_t squares[] = {
    64,   100,  128,  200,  256,  333,  500,  512,  777,
    1000, 1024, 1500, 2048, 3000, 4096, 5000, 8192,
};
static const int64_t reduced[] = {256, 1024, 2048, 4096, 8192};
static const int64_t linear[] = {64, 128, 256, 512, 1024, 2048, 4096};
static const struct {
    const char *shape, *detail;
} others[] = {
    /* One small or one large extent. */
    {"1x64x64", ""},
    {"1x4096x4096", ""},
    {"4096x1x4096", ""},
    {"16x4096x4096", ""},
    {"4096x16x4096", ""},
    {"4096x4096x16", ""},
    {"64x64x65536", ""},
    {"65536x64x64", ""},
    {"1023x1025x1027", ""},
    /* Transposed. */
    {"64x64x64", "ta"},
    {"1024x1024x1024", "ta"},
    {"1024x1024x1024", "tb"},
    {"4096x4096x4096", "tb"},
    {"4096x4096x4096", "ta+tb"},
    /* Batched. */
    {"4x32x32x32", ""},
    {"1024x64x64x64", ""},
    {"128x128x128x128", ""},
    {"64x197x197x64", ""},
    {"16x512x512x512", ""},
};
static const char *const narrow[] = {"normwise", "tf32", "f16", "bf16"};
/* Values for which reduced precision gives large errors. */
static const char *const inputs[] = {"positive", "rowscale", "columnscale",
                                     "depthscale", "extreme"};
static const int64_t packed_sizes[] = {1024, 2048, 4096};
static const int64_t hard[] = {64, 1024, 4096};

static void add_square(struct list *list, int64_t n, const char *detail)
{
    const int64_t shape[] = {n, n, n};

    list_add_shape(list, "gemm", 3, shape, detail, "stream");
}

void gemm_list(struct list *list)
{
    for (size_t i = 0; i < COUNT(squares); i++)
        add_square(list, squares[i], "");
    for (size_t i = 0; i < COUNT(others); i++)
        list_add(list, "gemm", others[i].shape, others[i].detail, "stream");
    for (size_t i = 0; i < COUNT(linear); i++)
        add_square(list, linear[i], "bias+relu");
    for (size_t i = 0; i < COUNT(inputs); i++)
        for (size_t j = 0; j < COUNT(hard); j++)
            add_square(list, hard[j], inputs[i]);
    for (size_t i = 0; i < COUNT(inputs); i++) {
        char detail[32];

        snprintf(detail, sizeof detail, "normwise+%s", inputs[i]);
        add_square(list, 2048, detail);
    }
    for (size_t i = 0; i < COUNT(packed_sizes); i++)
        add_square(list, packed_sizes[i], "normwise+packed");
    for (size_t i = 0; i < COUNT(narrow); i++)
        for (size_t j = 0; j < COUNT(reduced); j++)
            add_square(list, reduced[j], narrow[i]);
}

void gemm_run(struct bench *bench)
{
    gemm_case_measure(bench);
}
