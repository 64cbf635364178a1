/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Suite "layers": GEMM, convolutions and attention with the sizes of published
 * networks, and their layers that are limited by memory, which are compared
 * with a copy of as many bytes.  tools/bench/layer_case.h describes the details
 * of a row.
 */
#include <config.h>

#include "bench.h"
#include "layer_case.h"

#include <stdio.h>
#include <string.h>

/* Convolutions of ResNet-50 (He et al., 2016; with the stride in the window of
 * 3 x 3): channels, length of a side, and the detail. */
static const struct {
    int channels, side;
    const char *detail;
} resnet50[] = {
    {3, 224, "m64 k7 s2 p3"},   {64, 56, "m64 k1"},
    {64, 56, "m64 k3 p1"},      {64, 56, "m256 k1"},
    {256, 56, "m64 k1"},        {256, 56, "m128 k1"},
    {128, 56, "m128 k3 s2 p1"}, {128, 28, "m512 k1"},
    {256, 56, "m512 k1 s2"},    {512, 28, "m128 k1"},
    {128, 28, "m128 k3 p1"},    {512, 28, "m256 k1"},
    {256, 28, "m256 k3 s2 p1"}, {256, 14, "m1024 k1"},
    {512, 28, "m1024 k1 s2"},   {1024, 14, "m256 k1"},
    {256, 14, "m256 k3 p1"},    {1024, 14, "m512 k1"},
    {512, 14, "m512 k3 s2 p1"}, {512, 7, "m2048 k1"},
    {1024, 14, "m2048 k1 s2"},  {2048, 7, "m512 k1"},
    {512, 7, "m512 k3 p1"},
};

/* Depthwise convolutions of MobileNet v2 (Sandler et al., 2018): channels,
 * length of a side, and stride. */
static const int mobilenet[][3] = {
    {32, 112, 1}, {96, 112, 2}, {144, 56, 1}, {144, 56, 2}, {192, 28, 1},
    {192, 28, 2}, {384, 14, 1}, {576, 14, 1}, {576, 14, 2}, {960, 7, 1},
};

static const struct {
    const char *op, *shape, *detail;
} others[] = {
    {"conv", "1x3x12x10", "m8 k3 p1"},
    {"conv", "1x8x9x9", "m8 k3 s2 p1 g8"},
    {"attention", "1x2x12x8", "causal"},
    {"attention", "8x12x1024x64", ""},
    {"attention", "8x12x1024x64", "causal"},
    {"attention", "1x32x4096x128", ""},
    {"attention", "1x32x4096x128", "causal"},
    {"attention", "1x32x1x128", "keys4096"},
    {"max_pool", "2x3x12x10", ""},
    {"max_pool", "32x64x112x112", ""},
    {"average_pool", "2x3x12x10", ""},
    {"average_pool", "32x64x112x112", ""},
    {"batch_norm", "2x8x6x5", ""},
    {"batch_norm", "32x64x112x112", ""},
    {"instance_norm", "2x8x6x5", ""},
    {"instance_norm", "32x64x112x112", ""},
    {"group_norm", "2x8x6x5", ""},
    {"group_norm", "32x256x56x56", ""},
    {"resize", "2x8x6x5", "nearest"},
    {"resize", "32x64x56x56", "nearest"},
    {"resize", "2x8x6x5", "linear"},
    {"resize", "32x64x56x56", "linear"},
    {"concat", "2x8x6x5", "axis1"},
    {"concat", "32x128x40x40", "axis1"},
};

/* Rows of GEMM's A: one token, a batch of tokens, a short text, the 197 tokens
 * of a ViT for images of 224 x 224, and a long text. */
static const int64_t tokens[] = {1, 8, 32, 128, 197, 384};

/* GEMM of BERT-base, GPT-2 and ViT-Base: columns of B, and the depth. The last
 * one gives GPT-2's logits. */
static const struct {
    int64_t n, k;
    const char *detail;
} linear_layers[] = {
    {768, 768, ""},  {2304, 768, ""},    {3072, 768, ""},
    {768, 3072, ""}, {50257, 768, "tb"},
};

static void add_image(struct list *list, int batch, int channels, int side,
                      const char *detail)
{
    const int64_t shape[] = {batch, channels, side, side};

    list_add_shape(list, "conv", 4, shape, detail, "stream");
}

static void add_gemm(struct list *list)
{
    for (size_t i = 0; i < COUNT(linear_layers); i++)
        for (size_t j = 0; j < COUNT(tokens); j++)
            list_add_shape(
                list, "gemm", 3,
                (int64_t[]){tokens[j], linear_layers[i].n, linear_layers[i].k},
                linear_layers[i].detail, "stream");
}

void layers_list(struct list *list)
{
    add_gemm(list);
    for (int batch = 1; batch <= 32; batch += 31) {
        for (size_t i = 0; i < COUNT(resnet50); i++) {
            char detail[48];

            snprintf(detail, sizeof detail, "%s tf32", resnet50[i].detail);
            add_image(list, batch, resnet50[i].channels, resnet50[i].side,
                      resnet50[i].detail);
            add_image(list, batch, resnet50[i].channels, resnet50[i].side,
                      detail);
        }
        for (size_t i = 0; i < COUNT(mobilenet); i++) {
            char detail[48];

            snprintf(detail, sizeof detail, "m%d k3 s%d p1 g%d",
                     mobilenet[i][0], mobilenet[i][2], mobilenet[i][0]);
            add_image(list, batch, mobilenet[i][0], mobilenet[i][1], detail);
        }
    }
    for (size_t i = 0; i < COUNT(others); i++)
        list_add(list, others[i].op, others[i].shape, others[i].detail,
                 "stream");
}

void layers_run(struct bench *bench)
{
    struct comparison comparison = {.unit = "GFLOP/s"};
    struct resident_op work;

    if (strcmp(bench->row->op, "gemm") == 0) {
        gemm_run(bench);
        return;
    }
    if (!bench_resident_op(bench, &work))
        return;
    comparison.work_amount = layer_operations(&work.c);
    if (check_resident_op(bench, &work)) {
        comparison_add(&comparison, "Tandem", resident_op_run, &work);
        if (comparison.work_amount > 0) {
            bench_compare(bench, &comparison);
        } else {
            comparison.unit = "GB/s";
            comparison.work_amount = work.c.bytes;
            comparison.upper_bound = copy_baseline_name(bench);
            copy_baseline_comparison(bench, &comparison, work.c.bytes);
        }
    }
    resident_op_destroy(&work);
}
