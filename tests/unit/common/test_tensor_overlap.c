/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Compares the overlap check of views with the sets of their bytes. Views that
 * the check calls disjoint must be disjoint; for views of one tensor the
 * reverse must also hold.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/argument_check.h"
#include "common/tensor_overlap.h"
#include "support/test_list.h"
#include "../../support/seed.h"

#define BYTES 16384u
#define MIDDLE 8192
#define BASE_BYTES 1024
#define ROUNDS 50000u

static uint64_t state;

/* Returns a random number below limit. */
static int64_t draw(int64_t limit)
{
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (int64_t)((state >> 33) % (uint64_t)limit);
}

static uint32_t draw_dtype(void)
{
    static const uint32_t dtypes[] = {TANDEM_U8, TANDEM_BF16, TANDEM_F32,
                                      TANDEM_I64};
    return dtypes[draw(4)];
}

/* ---- bytes ---- */

static unsigned char marks[BYTES];

/* Marks the bytes of a view. Returns how many were already marked. */
static uint32_t mark(const struct tandem_tensor_desc *view, int64_t at,
                     unsigned bit, unsigned seen)
{
    uint32_t bytes = TANDEM_DTYPE_BYTES(view->dtype), met = 0;
    int64_t elements = shape_elements(view->rank, view->shape);

    for (int64_t i = 0; i < elements; i++) {
        int64_t rest = i, place = at + (int64_t)view->byte_offset;

        for (uint32_t k = view->rank; k-- > 0; rest /= view->shape[k])
            place += rest % view->shape[k] * view->strides[k] * bytes;
        for (uint32_t k = 0; k < bytes; k++) {
            if (place + k < 0 || place + k >= BYTES)
                abort();
            met += (marks[place + k] & seen) != 0;
            marks[place + k] |= (unsigned char)bit;
        }
    }
    return met;
}

static bool share_bytes(const struct tandem_tensor_desc *a,
                        const struct tandem_tensor_desc *b, int64_t at)
{
    memset(marks, 0, sizeof(marks));
    mark(a, at, 1, 0);
    return mark(b, at, 2, 1) != 0;
}

static bool repeats_bytes(const struct tandem_tensor_desc *a, int64_t at)
{
    memset(marks, 0, sizeof(marks));
    return mark(a, at, 1, 1) != 0;
}

/* ---- views ---- */

static void permute(struct tandem_tensor_desc *view)
{
    for (uint32_t i = view->rank; i > 1; i--) {
        uint32_t k = (uint32_t)draw(i);
        int64_t shape = view->shape[i - 1], stride = view->strides[i - 1];

        view->shape[i - 1] = view->shape[k];
        view->strides[i - 1] = view->strides[k];
        view->shape[k] = shape;
        view->strides[k] = stride;
    }
}

/* Slices each axis at random, also backwards, and permutes the axes. */
static void slice(struct tandem_tensor_desc *view)
{
    int64_t bytes = TANDEM_DTYPE_BYTES(view->dtype);

    for (uint32_t i = 0; i < view->rank; i++) {
        int64_t size = view->shape[i], start, step, count;

        if (size == 0 || draw(3) == 0)
            continue;
        start = draw(size);
        step = 1 + draw(draw(2) == 0 ? 3 : size);
        count = (size - start + step - 1) / step;
        count = draw(40) == 0 ? 0 : 1 + draw(count);
        if (draw(4) == 0 && count > 0) {
            start += step * (count - 1);
            step = -step;
        }
        view->byte_offset += (uint64_t)(start * view->strides[i] * bytes);
        view->shape[i] = count;
        view->strides[i] *= step;
    }
    permute(view);
}

/* Creates a dense tensor whose last axis has whole elements of each dtype. */
static void base_make(struct tandem_tensor_desc *a,
                      struct tandem_tensor_desc *b)
{
    uint32_t wide = TANDEM_DTYPE_BYTES(a->dtype);
    uint32_t other = TANDEM_DTYPE_BYTES(b->dtype);
    int64_t most = wide > other ? wide : other;

    a->rank = b->rank = (uint32_t)draw(7);
    for (uint32_t i = 0; i < a->rank; i++)
        a->shape[i] = b->shape[i] = 1 + draw(a->rank > 4 ? 4 : 8);
    if (a->rank > 0) {
        a->shape[a->rank - 1] *= most / wide;
        b->shape[b->rank - 1] *= most / other;
    }
    for (uint32_t i = 0; i + 1 < a->rank &&
                         shape_elements(a->rank, a->shape) * wide > BASE_BYTES;
         i++)
        a->shape[i] = b->shape[i] = 1;
    shape_strides(a->rank, a->shape, a->strides);
    shape_strides(b->rank, b->shape, b->strides);
}

static void any_make(struct tandem_tensor_desc *view)
{
    view->dtype = draw_dtype();
    view->rank = (uint32_t)draw(7);
    view->byte_offset = (uint64_t)draw(100) * TANDEM_DTYPE_BYTES(view->dtype);
    for (uint32_t i = 0; i < view->rank; i++) {
        view->shape[i] = draw(30) == 0 ? 0 : 1 + draw(4);
        view->strides[i] = draw(81) - 40;
    }
}

/* ---- tests ---- */

/* Counts of disjoint pairs (or valid views), and of the rejected ones. */
struct rejection_counts {
    uint32_t apart, rejected;
};

static void views_compare(const struct tandem_tensor_desc *a,
                          const struct tandem_tensor_desc *b, int64_t at,
                          struct rejection_counts *pairs,
                          struct rejection_counts *own)
{
    bool share = share_bytes(a, b, at), repeats = repeats_bytes(a, at);
    int64_t distance = (int64_t)a->byte_offset - (int64_t)b->byte_offset;
    bool disjoint = tensors_disjoint(a, b, distance);
    bool overlaps = tensor_overlaps_itself(a);

    ck_assert_msg(!disjoint || !share, "bytes that are shared");
    ck_assert_msg(overlaps || !repeats, "elements that coincide");
    ck_assert_msg(tensors_disjoint(b, a, -distance) == disjoint, "one way");
    pairs->apart += !share;
    pairs->rejected += !share && !disjoint;
    own->apart += !repeats;
    own->rejected += !repeats && overlaps;
}

static void
rejection_counts_print(const char *what,
                       const struct rejection_counts *rejection_counts)
{
    printf("%s: %u apart, %u of them refused\n", what, rejection_counts->apart,
           rejection_counts->rejected);
}

TEST(slices_of_one_tensor_are_compared_exactly)
{
    struct rejection_counts pairs = {0, 0}, own = {0, 0};

    for (uint32_t i = 0; i < ROUNDS; i++) {
        struct tandem_tensor_desc a = {.dtype = draw_dtype()}, b = a;

        if (draw(2) == 0)
            b.dtype = draw_dtype();
        base_make(&a, &b);
        slice(&a);
        slice(&b);
        views_compare(&a, &b, 0, &pairs, &own);
    }
    rejection_counts_print("views of one tensor", &pairs);
    rejection_counts_print("one view of a tensor", &own);
    ck_assert_uint_gt(pairs.apart, ROUNDS / 4);
    ck_assert_uint_eq(pairs.rejected, 0);
    ck_assert_uint_eq(own.rejected, 0);
}

TEST(accepted_views_are_disjoint)
{
    struct rejection_counts pairs = {0, 0}, own = {0, 0};

    for (uint32_t i = 0; i < ROUNDS; i++) {
        struct tandem_tensor_desc a = {0}, b = {0};

        any_make(&a);
        any_make(&b);
        views_compare(&a, &b, MIDDLE, &pairs, &own);
    }
    rejection_counts_print("views of any strides", &pairs);
    rejection_counts_print("one view of any strides", &own);
    ck_assert_uint_lt(pairs.rejected, pairs.apart / 100 + 1);
    ck_assert_uint_lt(own.rejected, own.apart / 100 + 1);
}

/* Returns a view of f32 with two axes. */
static struct tandem_tensor_desc matrix(int64_t first, int64_t rows,
                                        int64_t columns, int64_t row_stride,
                                        int64_t column_stride)
{
    return (struct tandem_tensor_desc){.byte_offset = (uint64_t)first * 4,
                                       .dtype = TANDEM_F32,
                                       .rank = 2,
                                       .shape = {rows, columns},
                                       .strides = {row_stride, column_stride}};
}

static bool apart(const struct tandem_tensor_desc *a,
                  const struct tandem_tensor_desc *b)
{
    return tensors_disjoint(a, b, (int64_t)(a->byte_offset - b->byte_offset));
}

/* These views are too large for marking their bytes. */
TEST(large_disjoint_views_are_accepted)
{
    const int64_t n = 1000003;
    struct tandem_tensor_desc even = matrix(0, n, n / 2, n, 2);
    struct tandem_tensor_desc odd = matrix(1, n, n / 2, n, 2);
    struct tandem_tensor_desc thirds = matrix(2, n / 3, n / 6, 3 * n, 6);
    struct tandem_tensor_desc left = matrix(0, n, 700001, n, 1);
    struct tandem_tensor_desc right =
        matrix(700001, n / 2, n - 700001, 2 * n, 1);
    struct tandem_tensor_desc over = matrix(700000, n / 2, 7, 2 * n, 1);
    struct tandem_tensor_desc column = matrix(5, 1, n, 0, n);
    struct tandem_tensor_desc row = matrix(5 * n + 6, 1, n - 6, 0, 1);
    struct tandem_tensor_desc flipped = matrix(n * n - 1, n, n / 2, -n, -2);

    ck_assert(apart(&even, &odd));
    ck_assert(!apart(&even, &thirds));
    ck_assert(apart(&odd, &thirds));
    ck_assert(apart(&left, &right));
    ck_assert(!apart(&left, &over));
    ck_assert(apart(&column, &row));
    ck_assert(!apart(&column, &left));
    ck_assert(!apart(&even, &flipped));
    ck_assert(apart(&odd, &flipped));
}

/* Views that are too large for the search count as overlapping. */
TEST(distant_views_overlap)
{
    struct tandem_tensor_desc far = matrix(0, 3, 2, INT64_MAX / 16, 1);
    struct tandem_tensor_desc near = matrix(7, 1, 1, 0, 0), none = near;

    none.shape[0] = 0;
    ck_assert(!apart(&far, &near));
    ck_assert(apart(&far, &none) && apart(&none, &far));
}

/* The views share bytes, but not where the search starts, so it gives up. */
TEST(undecided_views_overlap)
{
    struct tandem_tensor_desc a = {.byte_offset = 84,
                                   .dtype = TANDEM_BF16,
                                   .rank = 2,
                                   .shape = {31, 39},
                                   .strides = {64, -79}};
    struct tandem_tensor_desc b = {.byte_offset = 92,
                                   .dtype = TANDEM_U8,
                                   .rank = 2,
                                   .shape = {12, 30},
                                   .strides = {-68, 15}};

    ck_assert(share_bytes(&a, &b, MIDDLE));
    ck_assert(!apart(&a, &b));
}

int main(void)
{
    state = test_seed();
    return tests_run("overlap");
}
