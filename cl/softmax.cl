/* SPDX-License-Identifier: Apache-2.0 */
/*
 * softmax, log_softmax, and cross-entropy with its gradient, over one axis.
 * Every row has lanes work-items of one group (across as in reduce.cl): long
 * rows a group each, short ones many to a group.  The first pass finds the
 * largest x and the sum of e^(x - largest), the second writes.
 */
#ifndef TANDEM_EMBEDDED
#include "common.cl"
#endif

#define SOFTMAX 1
#define LOG_SOFTMAX 2
#define LOSS 3
#define GRADIENT 4
#ifndef FORM
#define FORM SOFTMAX
#endif
/* The type of labels. */
#ifndef LABEL
#define LABEL int
#endif

struct softmax {
    ulong rows, count;
    uint lanes_log2, across;
    uint vector, kept_rank;
    ulong out_offset, in_offset, label_offset;
    long in_stride, out_stride, label_stride;
    float scale;
    uint reserved;
    struct extents kept;
    long out_strides[AXES], in_strides[AXES];
};

/* The largest so far and the compensated sum of e^(x - largest). */
struct lane {
    float largest, sum, lost;
};

/* e^(x - largest); 0 where both are -infinity, 1 where both are infinity. */
static inline float term_of(float x, float largest)
{
    return x != largest ? exp(x - largest) : x == -INFINITY ? 0.0f : 1.0f;
}

/* Raises the largest to at least x, which may be NaN. */
static inline void lane_raise(struct lane *l, float x)
{
    if (x > l->largest) {
        float shrink = exp(l->largest - x);
        l->sum *= shrink;
        l->lost *= shrink;
        l->largest = x;
    }
}

static inline void lane_add(struct lane *l, float term)
{
    float y = term - l->lost;
    float next = l->sum + y;
    l->lost = (next - l->sum) - y;
    l->sum = next;
}

static inline void lane_take(struct lane *l, float x)
{
    lane_raise(l, x);
    lane_add(l, term_of(x, l->largest));
}

static inline void lane_take4(struct lane *l, float4 x)
{
    lane_raise(l, fmax(fmax(x.s0, x.s1), fmax(x.s2, x.s3)));
    float m = l->largest;
    lane_add(l, (term_of(x.s0, m) + term_of(x.s1, m)) +
                    (term_of(x.s2, m) + term_of(x.s3, m)));
}

static inline float2 join(float2 a, float2 b)
{
    float largest = fmax(a.x, b.x);
    return (float2)(largest,
                    (a.x == largest ? a.y : a.y * exp(a.x - largest)) +
                        (b.x == largest ? b.y : b.y * exp(b.x - largest)));
}

static inline float result(float x, float2 row, float log_sum)
{
#if FORM == LOG_SOFTMAX
    return (x - row.x) - log_sum;
#else
    return exp(x - row.x) / row.y;
#endif
}

#define ALONG(j) in[from + (long)(j)*p.in_stride]

KERNEL void softmax(__global float *out, __global const float *in,
#if FORM == LOSS || FORM == GRADIENT
                    __global const LABEL *labels,
#endif
                    const struct softmax p)
{
    __local float2 parts[GROUP];
    uint id = get_local_id(0), lanes = 1u << p.lanes_log2;
    uint rows = GROUP / lanes;
    uint lane = p.across ? id / rows : id & (lanes - 1);
    uint within = p.across ? id & (rows - 1) : id >> p.lanes_log2;
    uint step = p.across ? rows : 1;
    ulong row = (ulong)get_group_id(0) * rows + within;
    long from = (long)p.in_offset, to = (long)p.out_offset;
    struct lane sum;
    sum.largest = -INFINITY;
    sum.sum = sum.lost = 0.0f;
    if (row < p.rows) {
        WALK(from, (index_t)row, p.kept, p.kept_rank, p.in_strides);
        WALK(to, (index_t)row, p.kept, p.kept_rank, p.out_strides);
        ulong j = lane;
        if (p.vector) {
            for (ulong i = lane * 4; i + 4 <= p.count; i += lanes * 4)
                lane_take4(&sum, *(__global const float4 *)(in + from + i));
            j = p.count / 4 * 4 + lane;
        }
        /* Four loads under way at a time. */
        for (; j + 3 * lanes < p.count; j += 4 * lanes)
            lane_take4(&sum, (float4)(ALONG(j), ALONG(j + lanes),
                                      ALONG(j + 2 * lanes),
                                      ALONG(j + 3 * lanes)));
        for (; j < p.count; j += lanes)
            lane_take(&sum, ALONG(j));
    }
    parts[id] = (float2)(sum.largest, sum.sum);
    for (uint half_ = lanes >> 1; half_ > 0; half_ >>= 1) {
        barrier(CLK_LOCAL_MEM_FENCE);
        if (lane < half_)
            parts[id] = join(parts[id], parts[id + half_ * step]);
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    if (row >= p.rows)
        return;
    float2 all = parts[p.across ? within : within << p.lanes_log2];
    /* Infinity less infinity is in every element's sum. */
    if (all.x == INFINITY)
        all.y = NAN;
    float log_sum = log(all.y);
#if FORM == LOSS
    if (lane != 0)
        return;
    long label = (long)labels[p.label_offset + (long)row * p.label_stride];
    float loss = NAN;
    if ((ulong)label < p.count)
        loss = log_sum - (in[from + label * p.in_stride] - all.x);
    out[to] = loss;
#else
#if FORM == GRADIENT
    long label = (long)labels[p.label_offset + (long)row * p.label_stride];
    bool valid = (ulong)label < p.count;
#define RESULT(x, j)                                                           \
    (valid ? p.scale * (result(x, all, log_sum) -                              \
                        ((long)(j) == label ? 1.0f : 0.0f))                    \
           : NAN)
#else
#define RESULT(x, j) result(x, all, log_sum)
#endif
    ulong j = lane;
    if (p.vector) {
        for (ulong i = lane * 4; i + 4 <= p.count; i += lanes * 4) {
            float4 x = *(__global const float4 *)(in + from + i);
            *(__global float4 *)(out + to + i) =
                (float4)(RESULT(x.s0, i), RESULT(x.s1, i + 1),
                         RESULT(x.s2, i + 2), RESULT(x.s3, i + 3));
        }
        j = p.count / 4 * 4 + lane;
    }
    for (; j < p.count; j += lanes)
        out[to + (long)j * p.out_stride] =
            RESULT(ALONG(j), j);
#endif
}
