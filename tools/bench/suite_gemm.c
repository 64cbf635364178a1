/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Rows of the suite "gemm": GEMM compared with CLBlast, or with CBLAS on the
 * CPU, and the errors of both against float64.  gemm_case.c measures them.
 */
#include <config.h>

#include "bench.h"

#define MAX_SIZES 17

static const struct {
    const char *detail;
    int64_t sizes[MAX_SIZES]; /* of square matrices; 0 ends the list */
} squares[] = {
    {"",
     {64, 100, 128, 200, 256, 333, 500, 512, 777, 1000, 1024, 1500, 2048, 3000,
      4096, 5000, 8192}},
    {"bias+relu", {64, 128, 256, 512, 1024, 2048, 4096}},
    /* Values for which reduced precision gives large errors. */
    {"positive", {64, 1024, 4096}},
    {"rowscale", {64, 1024, 4096}},
    {"columnscale", {64, 1024, 4096}},
    {"depthscale", {64, 1024, 4096}},
    {"extreme", {64, 1024, 4096}},
    {"normwise+positive", {2048}},
    {"normwise+rowscale", {2048}},
    {"normwise+columnscale", {2048}},
    {"normwise+depthscale", {2048}},
    {"normwise+extreme", {2048}},
    {"normwise+packed", {1024, 2048, 4096}},
    {"normwise", {256, 1024, 2048, 4096, 8192}},
    {"tf32", {256, 1024, 2048, 4096, 8192}},
    {"f16", {256, 1024, 2048, 4096, 8192}},
    {"bf16", {256, 1024, 2048, 4096, 8192}},
};

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

void gemm_list(struct list *list)
{
    for (size_t i = 0; i < COUNT(squares); i++)
        for (size_t j = 0; j < MAX_SIZES && squares[i].sizes[j] > 0; j++) {
            int64_t n = squares[i].sizes[j];

            list_add_shape(list, "gemm", 3, (int64_t[]){n, n, n},
                           squares[i].detail, "stream");
        }
    for (size_t i = 0; i < COUNT(others); i++)
        list_add(list, "gemm", others[i].shape, others[i].detail, "stream");
}
