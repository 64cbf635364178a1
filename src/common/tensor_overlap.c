/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Detects overlap of strided tensors by solving a bounded linear Diophantine
 * equation:
 *     sum of stride[i] * v[i] + slack = distance, low[i] <= v[i] <= high[i]
 *
 * Tensors `a` and `b` overlap if a solution exists. Each tensor consists of
 * contiguous runs of bytes. `distance` is the address of the first run of `b`
 * minus that of `a`. `slack` is the offset of a byte in a run of `a` minus that
 * of a byte in a run of `b`. Each axis of `a` adds a term, and each axis of `b`
 * adds one with the opposite sign. Terms with the same stride are merged.
 *
 * The search assigns values to terms from the largest stride to the smallest.
 * If a stride exceeds the range of the sum of all smaller terms, few values are
 * possible. Two terms can be assigned together by their sum, which is a
 * multiple of the gcd of their strides.
 */
#include "common/tensor_overlap.h"

#include <stdlib.h>

#include "common/tensor_extent.h"

#define TERMS (2u * TANDEM_MAX_RANK)
/* Maximum number of values that a search tries before it gives up. */
#define STEPS 256u
/* Maximum span of a tensor, and maximum distance between two tensors, in bytes.
 * Prevents integer overflow. */
#define REACH_MAX (INT64_MAX / 8)

struct term {
    int64_t stride, low, high;
};

struct search {
    uint32_t count, steps;
    struct term terms[TERMS]; /* strides are positive and decreasing */
    /* Bounds of the sum of slack and of all terms from number i on. */
    int64_t least[TERMS + 1], most[TERMS + 1];
};

/* ---- arithmetic ---- */

/* Two functions that divide by a positive divisor and round down and up,
 * respectively. They avoid the slow division if the quotient is 0. */
static int64_t divide_down(int64_t value, int64_t divisor)
{
    if (value >= 0 && value < divisor)
        return 0;
    return value / divisor - (value % divisor < 0);
}

static int64_t divide_up(int64_t value, int64_t divisor)
{
    if (value <= 0 && value > -divisor)
        return 0;
    return value / divisor + (value % divisor > 0);
}

static int64_t gcd(int64_t a, int64_t b)
{
    while (b != 0) {
        int64_t rest = a % b;
        a = b;
        b = rest;
    }
    return a;
}

/* Returns x with value * x = 1 modulo modulus, for coprime arguments. */
static int64_t inverse(int64_t value, int64_t modulus)
{
    int64_t r = modulus, next_r = value % modulus, x = 0, next_x = 1;
    while (next_r != 0) {
        int64_t quotient = r / next_r, rest = r % next_r;
        int64_t other = x - quotient * next_x;
        r = next_r;
        next_r = rest;
        x = next_x;
        next_x = other;
    }
    return x < 0 ? x + modulus : x;
}

/* ---- the search ---- */

/* Adds a term with low <= 0 <= high. Later terms have no larger stride. */
static void term_add(struct search *search, int64_t stride, int64_t low,
                     int64_t high)
{
    struct term *term = &search->terms[search->count];
    if (search->count > 0 && term[-1].stride == stride) {
        term[-1].low += low;
        term[-1].high += high;
        return;
    }
    *term = (struct term){stride, low, high};
    search->count++;
}

/* Computes the bounds least[i] and most[i] for the terms i >= first. */
static void reach_find(struct search *search, uint32_t first, int64_t least,
                       int64_t most)
{
    search->least[search->count] = least;
    search->most[search->count] = most;
    for (uint32_t i = search->count; i-- > first;) {
        const struct term *term = &search->terms[i];
        search->least[i] = search->least[i + 1] + term->stride * term->low;
        search->most[i] = search->most[i + 1] + term->stride * term->high;
    }
}

/* Returns true if the terms p and q can sum to multiple * divisor, where
 * divisor is the gcd of their strides, or if the computation would overflow. */
static bool pair_reaches(const struct term *p, const struct term *q,
                         int64_t divisor, int64_t multiple)
{
    int64_t stride = p->stride / divisor, modulus = q->stride / divisor;
    int64_t v = 0;
    if (modulus > 1) {
        int64_t rest = multiple % modulus;
        rest = rest < 0 ? rest + modulus : rest;
        if (__builtin_mul_overflow(rest, inverse(stride, modulus), &v))
            return true;
        v %= modulus;
    }
    int64_t low = divide_up(multiple - modulus * q->high, stride);
    int64_t high = divide_down(multiple - modulus * q->low, stride);
    low = low < p->low ? p->low : low;
    high = high > p->high ? p->high : high;
    /* Find the smallest value >= low that equals v modulo `modulus`. */
    int64_t ahead = (v - low) % modulus;
    return low + (ahead < 0 ? ahead + modulus : ahead) <= high;
}

/* Values that a search tries for the next term, or for the sum of the next two
 * terms: `stride` times each integer from `low` to `high`. */
struct choice {
    int64_t stride, low, high;
    uint32_t terms;
};

static struct choice choice_make(const struct search *search, uint32_t at,
                                 uint32_t terms, int64_t distance)
{
    const struct term *term = &search->terms[at];
    struct choice choice = {.terms = terms, .stride = term->stride};
    int64_t low = term->low, high = term->high;
    if (terms == 2) {
        choice.stride = gcd(term[0].stride, term[1].stride);
        int64_t p = term[0].stride / choice.stride;
        int64_t q = term[1].stride / choice.stride;
        low = p * low + q * term[1].low;
        high = p * high + q * term[1].high;
    }
    choice.low = divide_up(distance - search->most[at + terms], choice.stride);
    choice.high =
        divide_down(distance - search->least[at + terms], choice.stride);
    if (choice.low < low)
        choice.low = low;
    if (choice.high > high)
        choice.high = high;
    return choice;
}

/* Returns true if the terms from number `at` on can sum to `distance`, or if
 * the search gives up. Tries the middle values first, because the rest of the
 * distance is then well within the bounds of the later terms. */
static bool reachable(struct search *search, uint32_t at, int64_t distance)
{
    if (distance < search->least[at] || distance > search->most[at])
        return false;
    if (at == search->count)
        return true;
    struct choice choice = choice_make(search, at, 1, distance);
    if (choice.high - choice.low > 2 && at + 1 < search->count) {
        struct choice two = choice_make(search, at, 2, distance);
        if (two.high - two.low < choice.high - choice.low)
            choice = two;
    }
    if (choice.high < choice.low)
        return false;
    int64_t middle = choice.low + (choice.high - choice.low) / 2;
    for (int64_t i = 0; i <= choice.high - choice.low; i++) {
        int64_t value = middle + (i % 2 != 0 ? (i + 1) / 2 : -(i / 2));
        if (++search->steps > STEPS)
            return true;
        if (choice.terms == 2 &&
            !pair_reaches(&search->terms[at], &search->terms[at + 1],
                          choice.stride, value))
            continue;
        if (reachable(search, at + choice.terms,
                      distance - value * choice.stride))
            return true;
    }
    return false;
}

/* ---- pairs ---- */

/* Contiguous runs of a tensor's bytes. There is one run of `bytes` bytes for
 * each combination of axis values; the lowest run is at byte offset `start`.
 * Strides are in bytes, positive and decreasing. */
struct runs {
    int64_t start, bytes;
    uint32_t count;
    struct term axes[TANDEM_MAX_RANK];
};

static void axis_add(struct runs *runs, int64_t stride, int64_t most)
{
    uint32_t at = runs->count++;
    for (; at > 0 && runs->axes[at - 1].stride < stride; at--)
        runs->axes[at] = runs->axes[at - 1];
    runs->axes[at] = (struct term){stride, 0, most};
}

/* Finds the runs. Returns false if they span more than REACH_MAX bytes. */
static bool runs_make(struct runs *out, const struct tandem_tensor_desc *tensor)
{
    int64_t bytes = TANDEM_DTYPE_BYTES(tensor->dtype), reach = 0;
    out->start = 0;
    out->count = 0;
    for (uint32_t i = 0; i < tensor->rank; i++) {
        int64_t most = tensor->shape[i] - 1, stride = 0, length = 0;
        if (most == 0 || tensor->strides[i] == 0)
            continue;
        if (__builtin_mul_overflow(tensor->strides[i], bytes, &stride) ||
            __builtin_mul_overflow(stride, most, &length) ||
            length > REACH_MAX || length < -REACH_MAX ||
            (reach += llabs(length)) > REACH_MAX)
            return false;
        out->start += length < 0 ? length : 0;
        axis_add(out, llabs(stride), most);
    }
    for (; out->count > 0 && out->axes[out->count - 1].stride <= bytes;
         out->count--)
        bytes +=
            out->axes[out->count - 1].stride * out->axes[out->count - 1].high;
    out->bytes = bytes;
    return true;
}

bool tensors_disjoint(const struct tandem_tensor_desc *a,
                      const struct tandem_tensor_desc *b,
                      int64_t distance_bytes)
{
    struct runs of_a, of_b;
    struct search search;
    if (!tensor_has_elements(a) || !tensor_has_elements(b))
        return true;
    if (!runs_make(&of_a, a) || !runs_make(&of_b, b) ||
        distance_bytes > REACH_MAX || distance_bytes < -REACH_MAX)
        return false;
    search.count = search.steps = 0;
    for (uint32_t i = 0, k = 0; i < of_a.count || k < of_b.count;) {
        const struct term *of = &of_a.axes[i], *other = &of_b.axes[k];
        if (k == of_b.count || (i < of_a.count && of->stride > other->stride)) {
            term_add(&search, of->stride, 0, of->high);
            i++;
        } else {
            term_add(&search, other->stride, -other->high, 0);
            k++;
        }
    }
    reach_find(&search, 0, 1 - of_b.bytes, of_a.bytes - 1);
    return !reachable(&search, 0, of_b.start - of_a.start - distance_bytes);
}

bool tensor_range_find(struct tensor_range *out,
                       const struct tandem_tensor_desc *tensor, uint64_t base,
                       uint64_t bytes)
{
    uint64_t first, end;
    if (!tensor_extent(tensor, &first, &end) || end > bytes)
        return false;
    *out = (struct tensor_range){tensor, base + first, base + end,
                                 base + tensor->byte_offset};
    return true;
}

bool tensors_overlap(const struct tensor_range *a, const struct tensor_range *b)
{
    return a->first < b->end && b->first < a->end &&
           !tensors_disjoint(a->tensor, b->tensor,
                             (int64_t)(a->origin - b->origin));
}

/* ---- one tensor ---- */

/* Returns true if any two elements have the same address. Tries each axis i as
 * the outermost one in which the indices of two such elements differ. */
static bool terms_coincide(struct search *search)
{
    for (uint32_t i = 0; i < search->count; i++) {
        int64_t low = search->terms[i].low;
        search->terms[i].low = 1;
        reach_find(search, i, 0, 0);
        if (reachable(search, i, 0))
            return true;
        search->terms[i].low = low;
    }
    return false;
}

bool tensor_overlaps_itself(const struct tandem_tensor_desc *tensor)
{
    struct runs axes;
    struct search search;
    bool nested = true;
    int64_t reach = 0;
    if (!tensor_has_elements(tensor))
        return false;
    axes.count = search.count = search.steps = 0;
    for (uint32_t i = 0; i < tensor->rank; i++)
        if (tensor->shape[i] > 1)
            axis_add(&axes, llabs(tensor->strides[i]), tensor->shape[i] - 1);
    for (uint32_t i = axes.count; i-- > 0;) {
        const struct term *axis = &axes.axes[i];
        int64_t length;
        if (axis->stride == 0 || (i > 0 && axis->stride == axis[-1].stride))
            return true;
        nested = nested && axis->stride > reach;
        if (__builtin_mul_overflow(axis->stride, axis->high, &length) ||
            length > REACH_MAX || (reach += length) > REACH_MAX)
            return true;
    }
    for (uint32_t i = 0; i < axes.count && !nested; i++)
        term_add(&search, axes.axes[i].stride, -axes.axes[i].high,
                 axes.axes[i].high);
    return !nested && terms_coincide(&search);
}

bool tensors_same(const struct tandem_tensor_desc *a,
                  const struct tandem_tensor_desc *b)
{
    if (a->buffer != b->buffer || a->byte_offset != b->byte_offset ||
        a->dtype != b->dtype || !shapes_equal(a, b))
        return false;
    for (uint32_t i = 0; i < a->rank; i++)
        if (a->shape[i] > 1 && a->strides[i] != b->strides[i])
            return false;
    return true;
}
