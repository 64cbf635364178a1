/* SPDX-License-Identifier: Apache-2.0 */
/* Sums up the windows of a convolution directly, one row of the output after
 * the other.  A task computes one row.  Runs on the caller's thread and on the
 * thread pool. */
#include "config.h"

#include <string.h>

#include "cpu/conv/conv.h"
#include "cpu/kernels/elementwise.h"

/* Outputs of a row that are computed together, and terms per call of
 * weighted_sum, which adds them up in f32. */
#define CHUNK 512
#define TERMS 32

/* Up to TERMS elements of a window row: for output x of the row, element t is
 * x[t][x * stride], and only valid for first[t] <= x < end[t]. */
struct terms {
    int64_t count;
    const float *x[TERMS];
    float w[TERMS];
    int64_t first[TERMS], end[TERMS];
};

/* For each tap along the innermost axis, the outputs of a row that it is valid
 * for, as in struct terms.  Computed once, because this needs divisions. */
struct taps {
    int64_t first[TERMS], end[TERMS];
};

static void tap_range(const struct window_axis *axis, int64_t tap,
                      int64_t *out_first, int64_t *out_end)
{
    int64_t shift = tap * axis->dilation - axis->begin;
    *out_first = window_first(shift, axis->stride);
    *out_end = window_end(shift, axis->stride, axis->out, axis->in);
}

static void taps_init(struct taps *out, const struct window_axis *axis)
{
    for (int64_t k = 0; k < min64(axis->kernel, TERMS); k++)
        tap_range(axis, k, &out->first[k], &out->end[k]);
}

/* Adds the terms to outputs `begin` to `begin + n` - 1 of the row. */
static void terms_add(const struct conv *conv, struct terms *terms, float *y,
                      int64_t begin, int64_t n)
{
    const struct window_axis *axis = &conv->problem.window.axis[0];
    int64_t step = axis->stride * conv->problem.x.axis[0];
    int64_t first = begin, end = begin + n; /* all terms are valid inside */
    const float *x[TERMS];
    for (int64_t t = 0; t < terms->count; t++) {
        first = max64(first, terms->first[t]);
        end = min64(end, terms->end[t]);
    }
    end = max64(end, first);
    for (int64_t t = 0; t < terms->count; t++) {
        const float *from = terms->x[t];
        for (int64_t i = max64(terms->first[t], begin);
             i < min64(terms->end[t], begin + n); i++) {
            if (i == first)
                i = end;
            if (i < min64(terms->end[t], begin + n))
                y[i - begin] += terms->w[t] * from[i * step];
        }
        x[t] = from + first * step;
    }
    if (end > first)
        conv->kernels->weighted_sum(y + first - begin, x, terms->w,
                                    terms->count, end - first, step);
    terms->count = 0;
}

/* Adds the part of the window in line `line` of the input's innermost axis. */
static void line_add(const struct conv *conv, const struct taps *taps,
                     struct terms *terms, const float *line,
                     const float *weight, float *y, int64_t begin, int64_t n)
{
    const struct conv_problem *problem = &conv->problem;
    const struct window_axis *axis = &problem->window.axis[0];
    for (int64_t k = 0; k < axis->kernel; k++) {
        int64_t shift = k * axis->dilation - axis->begin;
        int64_t t = terms->count++;
        terms->x[t] = line + shift * problem->x.axis[0];
        terms->w[t] = weight[k * problem->weight_tap[0]];
        if (k < TERMS) {
            terms->first[t] = taps->first[k];
            terms->end[t] = taps->end[k];
        } else {
            tap_range(axis, k, &terms->first[t], &terms->end[t]);
        }
        if (terms->count == TERMS)
            terms_add(conv, terms, y, begin, n);
    }
}

/* A row of the output. */
struct output_row {
    int64_t image, channel, z, y;
};

/* Sums up outputs `begin` to `begin + n` - 1 of the row. */
static void row_sum(const struct conv *conv, const struct taps *taps,
                    const struct output_row *row, float *y, int64_t begin,
                    int64_t n)
{
    const struct conv_problem *problem = &conv->problem;
    const struct window_axis *axes = problem->window.axis;
    int64_t group = row->channel / problem->rows;
    const float *weight = conv->weight + group * problem->weight_group +
                          row->channel % problem->rows * problem->weight_row;
    const float *image = conv->x + row->image * problem->x.batch +
                         group * problem->channels * problem->x.channel;
    struct terms terms = {.count = 0};
    memset(y, 0, (size_t)n * sizeof *y);
    for (int64_t c = 0; c < problem->channels; c++)
        for (int64_t i = 0; i < axes[2].kernel; i++)
            for (int64_t j = 0; j < axes[1].kernel; j++) {
                int64_t in_z = conv_input_position(&axes[2], false, row->z, i);
                int64_t in_y = conv_input_position(&axes[1], false, row->y, j);
                if (in_z < 0 || in_y < 0)
                    continue;
                line_add(
                    conv, taps, &terms,
                    image + c * problem->x.channel + in_z * problem->x.axis[2] +
                        in_y * problem->x.axis[1],
                    weight + c * problem->weight_channel +
                        i * problem->weight_tap[2] + j * problem->weight_tap[1],
                    y, begin, n);
            }
    terms_add(conv, &terms, y, begin, n);
}

/* Thread-pool function.  Each task computes one row of the output. */
static void rows_sum(const void *context, int64_t first, int64_t end)
{
    const struct conv *conv = context;
    const struct conv_problem *problem = &conv->problem;
    const int64_t *lengths = conv->out_lengths;
    int64_t channels = problem->groups * problem->rows;
    float y[CHUNK], space[CHUNK];
    struct taps taps;
    taps_init(&taps, &problem->window.axis[0]);
    for (int64_t task = first; task < end; task++) {
        int64_t plane = task / (lengths[1] * lengths[2]);
        const struct output_row row = {plane / channels, plane % channels,
                                       task / lengths[1] % lengths[2],
                                       task % lengths[1]};
        float *channel = conv->out + row.image * problem->out.batch +
                         row.channel * problem->out.channel;
        for (int64_t x = 0; x < lengths[0]; x += CHUNK) {
            int64_t n = min64(CHUNK, lengths[0] - x);
            int64_t at = (row.z * lengths[1] + row.y) * lengths[0] + x;
            row_sum(conv, &taps, &row, y, x, n);
            conv_epilogue(conv, y, row.image, row.channel, at, n, space);
            conv_copy(conv, CONV_SCATTER, y, channel, &problem->out, at, n);
        }
    }
}

void conv_direct_run(const struct conv *conv)
{
    const struct conv_problem *problem = &conv->problem;
    int64_t planes = problem->batch * problem->groups * problem->rows;
    pool_run(conv->pool, conv->op, rows_sum, conv,
             planes * conv->out_lengths[1] * conv->out_lengths[2],
             conv->out_lengths[0] * (problem->depth + 1));
}
