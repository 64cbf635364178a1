/* SPDX-License-Identifier: Apache-2.0 */
/* Expected values of layer_norm and rms_norm; see reference.h. */
#include "reference.h"

#include <math.h>

/* Statistics of a row of count elements that starts at begin. */
struct moments {
    long double mean, magnitude, divisor;
};

static struct moments moments_of(const struct dense *in, int64_t begin,
                                 int64_t count, bool centered, double epsilon)
{
    struct moments row = {0, 0, 0};
    long double square = 0;

    for (int64_t i = begin; i < begin + count; i++) {
        row.mean += dense_real(in, i);
        row.magnitude += fabs(dense_real(in, i));
    }
    row.mean = centered ? row.mean / count : 0;
    row.magnitude /= count;
    for (int64_t i = begin; i < begin + count; i++) {
        long double d = dense_real(in, i) - row.mean;

        square += d * d;
    }
    row.divisor =
        sqrtl(square / count + (long double)(float)reference_epsilon(epsilon));
    return row;
}

static void layer_element(const struct reference *call,
                          const struct moments *row, int64_t i, int64_t within,
                          struct expected *out)
{
    double x = dense_real(&call->inputs[0], i);
    double scale = dense_real(&call->inputs[1], within);
    double bias = dense_real(&call->inputs[2], within);
    long double h = (x - row->mean) / row->divisor;
    long double size = (fabs(x) + row->magnitude) / row->divisor;

    out->real[i] = (double)(h * scale + bias);
    out->tolerance[i] =
        call->row->tolerance * REFERENCE_2EPS *
        (double)(fabs(scale) * (1 + fabsl(h)) * size + fabs(bias));
}

void reference_norm(const struct reference *call, struct expected *out)
{
    const struct dense *in = &call->inputs[0];
    bool layer = call->row->id == TANDEM_OP_LAYER_NORM;
    int64_t axis = call->ints[0] < 0 ? call->ints[0] + in->rank : call->ints[0];
    int64_t count = 1;

    for (int64_t i = axis; i < in->rank; i++)
        count *= in->shape[i];
    expected_init(out, EXPECTED_REAL, in->elements);
    out->subnormal_tolerance = REFERENCE_SUBNORMAL;
    for (int64_t begin = 0; begin < in->elements; begin += count) {
        struct moments row =
            moments_of(in, begin, count, layer, call->floats[0]);

        for (int64_t i = begin; i < begin + count; i++) {
            if (layer) {
                layer_element(call, &row, i, i - begin, out);
                continue;
            }
            out->real[i] = (double)(dense_real(in, i) / row.divisor *
                                    dense_real(&call->inputs[1], i - begin));
            out->tolerance[i] =
                call->row->tolerance * REFERENCE_2EPS * fabs(out->real[i]);
        }
    }
}
