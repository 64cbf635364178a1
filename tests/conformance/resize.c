/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Resize: each mode with each transformation of coordinates, over shapes and
 * layouts.
 */
#include "row_case.h"
#include "tolerance.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { MODE, COORDINATES, NEAREST_MODE, EXCLUDE_OUTSIDE, ANTIALIAS };
enum { CUBIC_COEFF_A, EXTRAPOLATION_VALUE, SCALES };
enum { NEAREST, LINEAR, CUBIC };
#define COORDINATE_MODES 6
#define NEAREST_MODES 4
#define TF_CROP_AND_RESIZE 5

/* Larger than rounding errors, less than any other distance of coordinates. */
#define COORDINATE_ERROR 1e-12L
/* A partial sum may leave the range of f32 above this magnitude. */
#define MAX_MAGNITUDE 0x1p126
/* An infinite tap with a weight below this may have the weight 0. */
#define MIN_WEIGHT 1e-5
/* The minimum sum of the weights inside with exclude_outside. */
#define MIN_WEIGHT_SUM 0x1p-10

/* ---- reference ---- */

/* One axis of a call. */
struct axis {
    int64_t in, out;
    long double scale, start, end;
    bool resized;
};

static struct axis axis_of(const struct call *call, uint32_t i)
{
    const uint32_t rank = call->operands[0].desc.rank;
    const double *floats = call->floats;
    struct axis axis = {.in = call->operands[0].desc.shape[i],
                        .out = call->operands[1].desc.shape[i],
                        .end = 1};
    bool given = call->float_count > SCALES && floats[SCALES + i] != 0;

    axis.scale = given ? (long double)(float)floats[SCALES + i]
                       : (long double)axis.out / (long double)axis.in;
    if (call->float_count >= SCALES + 3 * rank &&
        call->ints[COORDINATES] == TF_CROP_AND_RESIZE) {
        axis.start = (long double)(float)floats[SCALES + rank + i];
        axis.end = (long double)(float)floats[SCALES + 2 * rank + i];
    }
    axis.resized = axis.in != axis.out || axis.scale != 1 || axis.start != 0 ||
                   axis.end != 1;
    return axis;
}

/* Returns the coordinate of output element i in the input. */
static long double coordinate_of(const struct call *call,
                                 const struct axis *axis, int64_t i)
{
    const long double in = axis->in, out = axis->out, x = i;
    const long double half_pixel = (x + 0.5L) / axis->scale - 0.5L;
    const long double width = axis->scale * in;

    switch (call->ints[COORDINATES]) {
    case 0:
        return half_pixel;
    case 1:
        return half_pixel + in / 2 * (1 - out / width);
    case 2:
        return axis->out > 1 ? half_pixel : 0;
    case 3:
        return fabsl(width - 1) < 1e-6L ? 0 : x * (in - 1) / (width - 1);
    case 4:
        return x / axis->scale;
    default:
        return axis->out > 1
                   ? axis->start * (in - 1) +
                         x * (axis->end - axis->start) * (in - 1) / (out - 1)
                   : (axis->start + axis->end) / 2 * (in - 1);
    }
}

static bool is_outside(const struct call *call, const struct axis *axis,
                       long double x)
{
    const long double error = COORDINATE_ERROR * axis->in;

    return call->ints[COORDINATES] == TF_CROP_AND_RESIZE && axis->resized &&
           (x < -error || x > axis->in - 1 + error);
}

static int64_t clamped(int64_t i, int64_t length)
{
    return i < 0 ? 0 : i < length ? i : length - 1;
}

static int64_t nearest_index(const struct call *call, const struct axis *axis,
                             long double x)
{
    const long double half = roundl(2 * x) / 2;
    int64_t index;

    if (fabsl(x - half) < COORDINATE_ERROR * (axis->in + 1))
        x = half;
    switch (call->ints[NEAREST_MODE]) {
    case 0:
        index = (int64_t)ceill(x - 0.5L);
        break;
    case 1:
        index = (int64_t)floorl(x + 0.5L);
        break;
    case 2:
        index = (int64_t)floorl(x);
        break;
    default:
        index = (int64_t)ceill(x);
        break;
    }
    return clamped(index, axis->in);
}

/* The formulas of Keys for the weight of an element at this distance. */
static long double weight_of(const struct call *call, long double distance)
{
    const long double a = (long double)(float)call->floats[CUBIC_COEFF_A];
    const long double d = fabsl(distance);

    if (call->ints[MODE] == LINEAR)
        return d < 1 ? 1 - d : 0;
    if (d <= 1)
        return (a + 2) * d * d * d - (a + 3) * d * d + 1;
    return d < 2 ? a * d * d * d - 5 * a * d * d + 8 * a * d - 4 * a : 0;
}

/* The result of one pass: tensors with one value per element. */
struct partial {
    int64_t shape[TANDEM_MAX_RANK];
    double *value;
    double *largest;  /* The largest |x| of the taps. */
    double *weights;  /* The product of the sums of |weight|. */
    double *growth;   /* Like weights, for weights before they are divided. */
    bool *arbitrary;  /* The result is unspecified. */
    double most_taps; /* Of an axis. */
};

static void partial_allocate(struct partial *partial, int64_t elements)
{
    partial->value = must_allocate((uint64_t)elements * sizeof(double));
    partial->largest = must_allocate((uint64_t)elements * sizeof(double));
    partial->weights = must_allocate((uint64_t)elements * sizeof(double));
    partial->growth = must_allocate((uint64_t)elements * sizeof(double));
    partial->arbitrary = must_allocate((uint64_t)elements * sizeof(bool));
}

static void partial_finish(struct partial *partial)
{
    free(partial->value);
    free(partial->largest);
    free(partial->weights);
    free(partial->growth);
    free(partial->arbitrary);
}

/* Element i of an axis: where it comes from. */
struct source {
    bool outside;
    int64_t first, count; /* Taps; some may be outside. */
    long double x, scale, sum, sum_magnitude;
};

static long double tap_weight(const struct call *call, const struct axis *axis,
                              const struct source *source, int64_t index)
{
    if (call->ints[MODE] == NEAREST)
        return 1;
    if (call->ints[EXCLUDE_OUTSIDE] != 0 && (index < 0 || index >= axis->in))
        return 0;
    return weight_of(call, ((long double)index - source->x) * source->scale);
}

static struct source source_of(const struct call *call, const struct axis *axis,
                               int64_t i)
{
    struct source source = {.x = coordinate_of(call, axis, i), .scale = 1};
    long double reach = call->ints[MODE] == CUBIC ? 2 : 1;

    source.outside = is_outside(call, axis, source.x);
    if (call->ints[MODE] == NEAREST) {
        source.first = nearest_index(call, axis, source.x);
        source.count = 1;
    } else {
        if (call->ints[ANTIALIAS] != 0 && axis->scale < 1)
            source.scale = axis->scale;
        source.first = (int64_t)floorl(source.x - reach / source.scale);
        source.count =
            (int64_t)ceill(source.x + reach / source.scale) + 1 - source.first;
    }
    for (int64_t k = 0; k < source.count; k++) {
        long double weight = tap_weight(call, axis, &source, source.first + k);

        source.sum += weight;
        source.sum_magnitude += fabsl(weight);
    }
    return source;
}

/* Computes one element of a pass. from: the element at index 0 of the axis. */
static void element_compute(const struct call *call, const struct axis *axis,
                            const struct source *source,
                            const struct partial *in, int64_t from,
                            int64_t step, struct partial *out, int64_t to)
{
    bool divided =
        call->ints[EXCLUDE_OUTSIDE] != 0 || call->ints[ANTIALIAS] != 0;
    long double sum = 0, divisor = divided ? source->sum : 1;

    if (fabsl(divisor) < MIN_WEIGHT_SUM) {
        out->arbitrary[to] = true;
        divisor = 1;
    }
    for (int64_t k = 0; k < source->count; k++) {
        int64_t index = source->first + k;
        int64_t at = from + clamped(index, axis->in) * step;
        long double weight = tap_weight(call, axis, source, index) / divisor;

        out->arbitrary[to] |= in->arbitrary[at];
        if (!isfinite(in->value[at]) && fabsl(weight) < MIN_WEIGHT)
            out->arbitrary[to] = true;
        if (weight != 0)
            sum += weight * (long double)in->value[at];
        out->largest[to] = fmax(out->largest[to], in->largest[at]);
        out->weights[to] = fmax(out->weights[to], in->weights[at]);
        out->growth[to] = fmax(out->growth[to], in->growth[at]);
    }
    out->weights[to] *= (double)(source->sum_magnitude / fabsl(divisor));
    out->growth[to] *= (double)fmaxl(source->sum_magnitude, 1);
    out->value[to] = (double)sum;
    if (source->outside) {
        out->value[to] = (double)(float)call->floats[EXTRAPOLATION_VALUE];
        out->largest[to] = fabs(out->value[to]);
        out->weights[to] = out->growth[to] = 1;
        out->arbitrary[to] = false;
    }
    out->most_taps = fmax(out->most_taps, (double)source->count);
}

static void pass_compute(const struct call *call, uint32_t number,
                         const struct partial *in, struct partial *out)
{
    const uint32_t rank = call->operands[0].desc.rank;
    const struct axis axis = axis_of(call, number);
    const int64_t outer = shape_count(number, in->shape);
    const int64_t inner =
        shape_count(rank - number - 1, &in->shape[number + 1]);

    *out = (struct partial){.most_taps = in->most_taps};
    memcpy(out->shape, in->shape, sizeof(out->shape));
    out->shape[number] = axis.out;
    partial_allocate(out, shape_count(rank, out->shape));
    for (int64_t i = 0; inner > 0 && i < axis.out; i++) {
        const struct source source = source_of(call, &axis, i);

        for (int64_t j = 0; j < outer * inner; j++) {
            int64_t before = j / inner, after = j % inner;

            element_compute(call, &axis, &source, in,
                            before * axis.in * inner + after, inner, out,
                            (before * axis.out + i) * inner + after);
        }
    }
}

static void reference(const struct call *call, const struct dense *in,
                      struct expected *out)
{
    struct partial now = {.most_taps = 1}, next;
    const bool nearest = call->ints[MODE] == NEAREST;

    expected_init(out, EXPECTED_REAL, call->operands[1].elements);
    expected_allow_unspecified(out);
    if (out->elements == 0)
        return;
    out->subnormal_tolerance = nearest ? 0 : TOLERANCE_SUBNORMAL;
    memcpy(now.shape, in->shape, sizeof(now.shape));
    partial_allocate(&now, in->elements);
    for (int64_t i = 0; i < in->elements; i++) {
        now.value[i] = dense_real(in, i);
        now.largest[i] = isfinite(now.value[i]) ? fabs(now.value[i]) : 0;
        now.weights[i] = now.growth[i] = 1;
    }
    for (uint32_t i = 0; i < in->rank; i++) {
        if (!axis_of(call, i).resized)
            continue;
        pass_compute(call, i, &now, &next);
        partial_finish(&now);
        now = next;
    }
    for (int64_t i = 0; i < out->elements; i++) {
        out->real[i] = now.value[i];
        if (nearest)
            continue;
        out->tolerance[i] = call->row->tolerance * TOLERANCE_2EPS *
                            now.weights[i] * now.weights[i] *
                            (1 + now.most_taps / 16) * now.largest[i];
        if (now.arbitrary[i] ||
            now.growth[i] * now.weights[i] * now.largest[i] > MAX_MAGNITUDE)
            out->unspecified[i] = UNSPECIFIED;
    }
    partial_finish(&now);
}

/* Draws a region of interest for each axis. */
static void roi_draw(struct call *call, uint32_t rank)
{
    static const double places[] = {0, 0.25, 0.4, 1, 0.75, -0.5, 1.5, 0.1};

    call->float_count = SCALES + 3 * rank;
    for (uint32_t i = 0; i < rank; i++) {
        bool whole = random_once_in(call->random, 3);
        double start = places[random_below(call->random, COUNT_OF(places))];
        double end = places[random_below(call->random, COUNT_OF(places))];

        call->floats[SCALES + rank + i] = whole ? 0 : start;
        call->floats[SCALES + 2 * rank + i] = whole ? 1 : end;
    }
}

/*
 * Draws the float attributes. given: each axis has the scale output length /
 * input length, or one that differs a little, as if the output length were
 * rounded.
 */
static void floats_draw(struct call *call, const struct shape *in,
                        const struct shape *out, bool given)
{
    static const double coefficients[] = {-0.75, -0.5, -1, 0.5};
    const uint32_t rank = in->rank;

    call->floats[CUBIC_COEFF_A] =
        coefficients[random_below(call->random, COUNT_OF(coefficients))];
    call->floats[EXTRAPOLATION_VALUE] =
        random_once_in(call->random, 2) ? -7 : 0;
    call->float_count = SCALES;
    if (!given && !random_once_in(call->random, 3))
        return;
    call->float_count = SCALES + rank;
    for (uint32_t i = 0; i < rank; i++) {
        double scale = in->at[i] > 0 && out->at[i] > 0
                           ? (double)out->at[i] / (double)in->at[i]
                           : 0;

        if (random_once_in(call->random, 2))
            scale *= (double)(out->at[i] + 0.4) / (double)(out->at[i] + 0.01);
        call->floats[SCALES + i] =
            given && in->at[i] != out->at[i] ? (double)(float)scale : 0;
    }
    if (call->ints[COORDINATES] == TF_CROP_AND_RESIZE &&
        !random_once_in(call->random, 4))
        roi_draw(call, rank);
}

/* ---- random calls ---- */

static void draw_call(struct call *call, const struct block *block)
{
    struct random *random = call->random;
    struct shape in, out;
    int64_t room;

    /* Kernels depend on the mode and on antialias. */
    call->ints[MODE] = (int64_t)(block->numbers[0] % 3);
    if (call->ints[MODE] != NEAREST) {
        call->ints[ANTIALIAS] = block->numbers[1] % 3 == 0;
        call->ints[EXCLUDE_OUTSIDE] = random_once_in(random, 3);
    }
    call->ints[COORDINATES] = random_between(random, 0, COORDINATE_MODES - 1);
    call->ints[NEAREST_MODE] = random_between(random, 0, NEAREST_MODES - 1);
    shape_draw(&in, random, 0, TANDEM_MAX_RANK);
    out = in;
    room = 4 * shape_storage(&in) + 100;
    for (uint32_t i = 0; i < in.rank; i++) {
        int64_t longest = out.at[i] + room / (shape_storage(&out) + 1);

        if (random_once_in(random, 2) || in.at[i] == 0)
            continue;
        out.at[i] =
            random_once_in(random, 3) && 2 * in.at[i] <= longest ? 2 * in.at[i]
            : random_once_in(random, 4)                          ? 1
                                        : random_between(random, 1, longest);
        if (shape_storage(&out) > room)
            out.at[i] = in.at[i];
    }
    floats_draw(call, &in, &out,
                call->ints[COORDINATES] == TF_CROP_AND_RESIZE ||
                    random_once_in(random, 2));
    operand_draw(call, 0, TANDEM_F32, &in);
    operand_draw(call, 1, TANDEM_F32, &out);
}

static bool draw_invalid_attribute(struct call *call)
{
    static const int64_t largest[] = {CUBIC, COORDINATE_MODES - 1,
                                      NEAREST_MODES - 1, 1, 1};
    uint64_t number = random_below(call->random, COUNT_OF(largest));

    call->ints[number] = invalid_number_draw(call->random, 0, largest[number]);
    return true;
}

/* ---- invalid calls ---- */

static void make_valid(struct mistaken_call *p)
{
    p->ints[MODE] = LINEAR;
    p->op.float_count = SCALES + 6;
    mistaken_tensor_set(&p->outs[0], TANDEM_F32, 2, 5, 4);
}

#define RESIZE_MISTAKES(X)                                                     \
    X(resize_mode, RESIZE, "mode 3", 0, p->ints[MODE] = 3)                     \
    X(resize_mode_negative, RESIZE, "mode -1", 0, p->ints[MODE] = -1)          \
    X(resize_coordinates, RESIZE, "coordinate_transformation_mode 6", 0,       \
      p->ints[COORDINATES] = 6)                                                \
    X(resize_nearest_mode, RESIZE, "nearest_mode 4", 0,                        \
      p->ints[NEAREST_MODE] = 4)                                               \
    X(resize_exclude, RESIZE, "exclude_outside 2", 0,                          \
      p->ints[EXCLUDE_OUTSIDE] = 2)                                            \
    X(resize_antialias, RESIZE, "antialias -1", 0, p->ints[ANTIALIAS] = -1)    \
    X(resize_nearest_antialias, RESIZE, "nearest with antialias", 0,           \
      (p->ints[MODE] = NEAREST, p->ints[ANTIALIAS] = 1))                       \
    X(resize_nearest_exclude, RESIZE, "nearest with exclude_outside", 0,       \
      (p->ints[MODE] = NEAREST, p->ints[EXCLUDE_OUTSIDE] = 1))                 \
    X(resize_cubic_infinite, RESIZE, "an infinite cubic_coeff_a", 0,           \
      p->floats[CUBIC_COEFF_A] = (double)INFINITY)                             \
    X(resize_extrapolation_nan, RESIZE, "a NaN extrapolation_value", 0,        \
      p->floats[EXTRAPOLATION_VALUE] = (double)NAN)                            \
    X(resize_scale_negative, RESIZE, "a negative scale", 0,                    \
      p->floats[SCALES] = -1)                                                  \
    X(resize_scale_small, RESIZE, "a scale too small", 0,                      \
      p->floats[SCALES + 1] = 0x1p-25)                                         \
    X(resize_scale_large, RESIZE, "a scale too large", 0,                      \
      p->floats[SCALES + 1] = 0x1p25)                                          \
    X(resize_scale_nan, RESIZE, "a NaN scale", 0,                              \
      p->floats[SCALES] = (double)NAN)                                         \
    X(resize_roi_large, RESIZE, "a roi too large", 0,                          \
      p->floats[SCALES + 5] = 0x1p21)                                          \
    X(resize_roi_nan, RESIZE, "a NaN in roi", 0,                               \
      p->floats[SCALES + 2] = (double)NAN)                                     \
    X(resize_scales_few, RESIZE, "one scale for two axes", 0,                  \
      p->op.float_count = SCALES + 1)                                          \
    X(resize_roi_short, RESIZE, "a roi without ends", 0,                       \
      p->op.float_count = SCALES + 4)                                          \
    X(resize_ints_few, RESIZE, "no antialias", 0, p->op.int_count--)           \
    X(resize_floats_few, RESIZE, "no extrapolation_value", 0,                  \
      p->op.float_count = 1)                                                   \
    X(resize_output_rank, RESIZE, "another output rank", 0,                    \
      p->outs[0].rank = 1)                                                     \
    X(resize_empty, RESIZE, "an empty input", 0, p->ins[0].shape[0] = 0)
MISTAKE_TABLE(resize_mistakes, RESIZE_MISTAKES)

const struct suite_class suite_resize = {
    .rules = FREE_OUTPUT_SHAPE,
    .reference = reference,
    .draw = draw_call,
    .draw_invalid_attribute = draw_invalid_attribute,
    .weight = 6,
    .make_valid = make_valid,
    CLASS_MISTAKES(resize_mistakes),
};
