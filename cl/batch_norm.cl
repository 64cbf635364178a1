/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Computes (x - mean) / sqrt(variance + epsilon) * scale + bias, where the
 * channel of x has the other four values.
 *
 * A work-item computes a vector of four elements if the input and the output
 * are aligned to vectors. If not, it computes four elements that are GROUP_SIZE
 * apart.
 */
#include "common/params.cl"

/* Offsets and channel strides are in elements. The members scale to variance
 * have the order of the inputs. */
struct batch_norm_params {
    uint64_t items; /* number of vectors if VECTOR is 1, else of elements */
    uint32_t rank;
    float epsilon;
    uint64_t out_offset, in_offset;
    uint64_t offset[4]; /* of scale, bias, mean and variance */
    int64_t channel_stride[4];
    struct fast_divmod space;
    int64_t out_strides[MAX_AXES], in_strides[MAX_AXES];
    int64_t channel_steps[MAX_AXES]; /* difference of the channel number */
};
PARAMS_SIZE(batch_norm_params, 416);

#ifdef __OPENCL_C_VERSION__
#include "common/indexing.cl"
#include "common/rescaled_sum.cl"

/* 1 if the work-item computes an aligned vector of four elements. */
#ifndef VECTOR
#define VECTOR 0
#endif
/* 1 if the elements of a vector belong to consecutive channels, 0 if they
 * belong to one channel. */
#ifndef VECTOR_OF_CHANNELS
#define VECTOR_OF_CHANNELS 0
#endif
#if VECTOR
#define ITEMS 1
#else
#define ITEMS 4
#endif

/* Differences and normalized values of at least this size are exact. */
#define MIN_EXACT 0x1p-100f

struct channel {
    float scale, bias, mean, factor;
};

static inline struct channel channel_of(float scale, float bias, float mean,
                                        float variance, float epsilon)
{
    float radicand = variance + epsilon;
    float factor = rsqrt(radicand);
    if (isinf(radicand))
        factor = 0.5f * rsqrt(0.25f * variance + 0.25f * epsilon);
    return (struct channel){scale, bias, mean, factor};
}

/* Computes the result of one element even if an intermediate value leaves the
 * range of normal numbers. */
static inline float normalize_exact(float x, const struct channel *c)
{
    bool is_large = fabs(x) > 0x1p100f || fabs(c->mean) > 0x1p100f;
    float unit = is_large ? 0.25f : 0x1p24f;
    int n = is_large ? 2 : -24;
    float d = x * unit - c->mean * unit;
    float h = multiply3_scaled(d, c->factor, 1.0f, n);
    if (fabs(h) < MIN_EXACT)
        return multiply3_scaled(d, c->factor, c->scale, n) + c->bias;
    if (isinf(h)) {
        /* The limit keeps the scale finite, but the product overflows. */
        bool is_huge = isfinite(c->scale) && fabs(c->scale) > 0x1p60f;
        float scale = is_huge ? copysign(0x1p60f, c->scale) : c->scale;
        h = multiply3_scaled(d, c->factor, 1.0f, n - 66);
        return fma(h, scale * 0x1p66f, c->bias);
    }
    return fma(h, c->scale, c->bias);
}

static inline float normalize_one(float x, struct channel c)
{
    float d = x - c.mean, h = d * c.factor;
    if (UNLIKELY(!isfinite(h) ||
                 (x != c.mean && fmin(fabs(d), fabs(h)) < MIN_EXACT)))
        return normalize_exact(x, &c);
    return fma(h, c.scale, c.bias);
}

#define LOAD_VEC4(buffer, i) (*(__global const float4 *)((buffer) + (i)))
/* Value k (0 to 3) of the channel, or of four consecutive channels. */
#define VALUE(buffer, k)                                                       \
    buffer[(long)p.offset[k] + (long)channel * p.channel_stride[k]]
#define VALUES(buffer, k) LOAD_VEC4(buffer, (long)p.offset[k] + (long)channel)
#define CHANNEL_AT(component)                                                  \
    channel_of(scales component, biases component, means component,            \
               variances component, p.epsilon)

KERNEL void batch_norm(__global float *restrict out,
                       __global const float *restrict in,
                       __global const float *restrict scale,
                       __global const float *restrict bias,
                       __global const float *restrict mean,
                       __global const float *restrict variance,
                       const struct batch_norm_params p)
{
    index_t first = (index_t)get_group_id(0) * (ITEMS * GROUP_SIZE) +
                    (index_t)get_local_id(0);
    REPEAT(item, ITEMS)
    {
        index_t left = first + item * GROUP_SIZE;
        long to = (long)p.out_offset, from = (long)p.in_offset, channel = 0;
        if (left >= (index_t)p.items)
            continue;
        REPEAT(axis, MAX_AXES)
        {
            if (axis >= p.rank)
                continue;
            long at = (long)left;
            if (axis + 1 < p.rank)
                DIVMOD(left, p.space, axis, at);
            to += at * p.out_strides[axis];
            from += at * p.in_strides[axis];
            channel += at * p.channel_steps[axis];
        }
#if VECTOR && VECTOR_OF_CHANNELS
        float4 x = LOAD_VEC4(in, from);
        float4 scales = VALUES(scale, 0), biases = VALUES(bias, 1);
        float4 means = VALUES(mean, 2), variances = VALUES(variance, 3);
        *(__global float4 *)(out + to) =
            (float4)(normalize_one(x.s0, CHANNEL_AT(.s0)),
                     normalize_one(x.s1, CHANNEL_AT(.s1)),
                     normalize_one(x.s2, CHANNEL_AT(.s2)),
                     normalize_one(x.s3, CHANNEL_AT(.s3)));
#else
        struct channel c =
            channel_of(VALUE(scale, 0), VALUE(bias, 1), VALUE(mean, 2),
                       VALUE(variance, 3), p.epsilon);
#if VECTOR
        float4 x = LOAD_VEC4(in, from);
        *(__global float4 *)(out + to) =
            (float4)(normalize_one(x.s0, c), normalize_one(x.s1, c),
                     normalize_one(x.s2, c), normalize_one(x.s3, c));
#else
        out[to] = normalize_one(in[from], c);
#endif
#endif
    }
}

#endif
