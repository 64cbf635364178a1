/* SPDX-License-Identifier: Apache-2.0 */
/* Expected values of the element-wise classes; see elementwise_reference.h. */
#include "elementwise_reference.h"

#include "element_value.h"
#include "tolerance.h"

#include <math.h>

static long double sigmoid(long double x)
{
    return 1.0L / (1.0L + expl(-x));
}

static long double softplus(long double x)
{
    return x > 0.0L ? x + log1pl(expl(-x)) : log1pl(expl(x));
}

static long double gelu(long double x, bool tanh_form)
{
    /*
     * (1 + tanh u) / 2 is sigmoid(2 u), and (1 + erf u) / 2 is erfc(-u) / 2.
     * These forms lose no precision in the tail.
     */
    if (tanh_form) {
        long double u = 0.797884560802865355879892119868763737L *
                        (x + 0.044715L * x * x * x);

        return x * sigmoid(2.0L * u);
    }
    return x * erfcl(-x * 0.707106781186547524400844362104849039L) / 2.0L;
}

static double sign_of(double x)
{
    if (isnan(x))
        return x;
    return x > 0.0 ? 1.0 : x < 0.0 ? -1.0 : 0.0;
}

static double clip(double x, double low, double high)
{
    if (isnan(x) || isnan(low) || isnan(high))
        return (double)NAN;
    x = x < low ? low : x;
    return x > high ? high : x;
}

static double unary_simple(uint32_t id, double x, const double *floats)
{
    switch (id) {
    case TANDEM_OP_NEG:
        return -x;
    case TANDEM_OP_ABS:
        return fabs(x);
    case TANDEM_OP_SIGN:
        return sign_of(x);
    case TANDEM_OP_FLOOR:
        return floor(x);
    case TANDEM_OP_CEIL:
        return ceil(x);
    case TANDEM_OP_ROUND:
        return rint(x);
    case TANDEM_OP_RELU:
        return x <= 0.0 ? 0.0 : x;
    case TANDEM_OP_LEAKY_RELU:
        return x >= 0.0 ? x : reference_attribute(floats[0]) * x;
    case TANDEM_OP_CLIP:
        return clip(x, (double)(float)floats[0], (double)(float)floats[1]);
    case TANDEM_OP_HARDSWISH:
        return x * clip(x / 6.0 + 0.5, 0.0, 1.0);
    case TANDEM_OP_HARDSIGMOID:
        return clip(reference_attribute(floats[0]) * x +
                        reference_attribute(floats[1]),
                    0.0, 1.0);
    case TANDEM_OP_SOFTSIGN:
        return x / (1.0 + fabs(x));
    case TANDEM_OP_THRESHOLDED_RELU:
        return x <= reference_attribute(floats[0]) ? 0.0 : x;
    default:
        return (double)NAN;
    }
}

static double negative_exponential(double factor, double x)
{
    return (double)((long double)reference_attribute(factor) *
                    expm1l((long double)x));
}

static double trigonometric(uint32_t id, long double x)
{
    switch (id) {
    case TANDEM_OP_SIN:
        return (double)sinl(x);
    case TANDEM_OP_COS:
        return (double)cosl(x);
    case TANDEM_OP_TAN:
        return (double)tanl(x);
    case TANDEM_OP_ASIN:
        return (double)asinl(x);
    case TANDEM_OP_ACOS:
        return (double)acosl(x);
    case TANDEM_OP_ATAN:
        return (double)atanl(x);
    case TANDEM_OP_SINH:
        return (double)sinhl(x);
    case TANDEM_OP_COSH:
        return (double)coshl(x);
    case TANDEM_OP_TANH:
        return (double)tanhl(x);
    case TANDEM_OP_ASINH:
        return (double)asinhl(x);
    case TANDEM_OP_ACOSH:
        return (double)acoshl(x);
    default:
        return (double)atanhl(x);
    }
}

double reference_unary(uint32_t id, double x, const int64_t *ints,
                       const double *floats)
{
    long double y = x;

    switch (id) {
    case TANDEM_OP_SQRT:
        return (double)sqrtl(y);
    case TANDEM_OP_RSQRT:
        return (double)(1.0L / sqrtl(y));
    case TANDEM_OP_RECIPROCAL:
        return (double)(1.0L / y);
    case TANDEM_OP_EXP:
        return (double)expl(y);
    case TANDEM_OP_EXPM1:
        return (double)expm1l(y);
    case TANDEM_OP_LOG:
        return (double)logl(y);
    case TANDEM_OP_LOG1P:
        return (double)log1pl(y);
    case TANDEM_OP_EXP2:
        return (double)exp2l(y);
    case TANDEM_OP_LOG2:
        return (double)log2l(y);
    case TANDEM_OP_SIN:
    case TANDEM_OP_COS:
    case TANDEM_OP_TAN:
    case TANDEM_OP_ASIN:
    case TANDEM_OP_ACOS:
    case TANDEM_OP_ATAN:
    case TANDEM_OP_SINH:
    case TANDEM_OP_COSH:
    case TANDEM_OP_TANH:
    case TANDEM_OP_ASINH:
    case TANDEM_OP_ACOSH:
    case TANDEM_OP_ATANH:
        return trigonometric(id, y);
    case TANDEM_OP_ERF:
        return (double)erfl(y);
    case TANDEM_OP_SIGMOID:
        return (double)sigmoid(y);
    case TANDEM_OP_ELU:
        return x >= 0.0 ? x : negative_exponential(floats[0], x);
    case TANDEM_OP_SELU:
        return x >= 0.0 ? reference_attribute(floats[1]) * x
                        : negative_exponential(floats[0] * floats[1], x);
    case TANDEM_OP_CELU:
        return x >= 0.0 ? x
                        : negative_exponential(
                              floats[0], x / reference_attribute(floats[0]));
    case TANDEM_OP_SWISH:
        return (double)(y * sigmoid(y));
    case TANDEM_OP_GELU:
        return (double)gelu(y, ints[0] == 1);
    case TANDEM_OP_SOFTPLUS:
        return (double)softplus(y);
    case TANDEM_OP_MISH:
        return (double)(y * tanhl(softplus(y)));
    default:
        return unary_simple(id, x, floats);
    }
}

static double floored_mod(double a, double b)
{
    double remainder = fmod(a, b);

    if (remainder != 0.0 && signbit(remainder) != signbit(b))
        remainder += b;
    return remainder;
}

static double binary(uint32_t id, double a, double b)
{
    switch (id) {
    case TANDEM_OP_ADD:
        return a + b;
    case TANDEM_OP_SUB:
        return a - b;
    case TANDEM_OP_MUL:
        return a * b;
    case TANDEM_OP_DIV:
        return (double)((long double)a / (long double)b);
    case TANDEM_OP_POW:
        return (double)powl((long double)a, (long double)b);
    case TANDEM_OP_PRELU:
        return a >= 0.0 ? a : b * a;
    case TANDEM_OP_MOD:
        return floored_mod(a, b);
    case TANDEM_OP_FMOD:
        return fmod(a, b);
    case TANDEM_OP_RELU_GRAD:
        return b <= 0.0 ? 0.0 : a;
    default:
        break;
    }
    if (isnan(a) || isnan(b))
        return (double)NAN;
    if (id == TANDEM_OP_MIN)
        return a < b ? a : b;
    return a > b ? a : b;
}

static bool compare(uint32_t id, double a, double b)
{
    switch (id) {
    case TANDEM_OP_EQUAL:
        return a == b;
    case TANDEM_OP_NOT_EQUAL:
        return a != b;
    case TANDEM_OP_LESS:
        return a < b;
    case TANDEM_OP_LESS_EQUAL:
        return a <= b;
    case TANDEM_OP_GREATER:
        return a > b;
    default:
        return a >= b;
    }
}

static bool predicate(uint32_t id, double x, const int64_t *ints)
{
    if (id == TANDEM_OP_IS_NAN)
        return isnan(x);
    return isinf(x) && ints[x > 0.0 ? 1 : 0] != 0;
}

static bool logical(uint32_t id, bool a, bool b)
{
    switch (id) {
    case TANDEM_OP_AND:
        return a && b;
    case TANDEM_OP_OR:
        return a || b;
    case TANDEM_OP_XOR:
        return a != b;
    default:
        return !a;
    }
}

static void truth_fill(const struct call *call, const struct dense *in,
                       struct expected *out)
{
    uint32_t id = call->row->id;

    for (int64_t i = 0; i < out->elements; i++) {
        if (call->inputs == 1 && call->row->op_class == TANDEM_CLASS_COMPARE)
            out->integer[i] = predicate(id, dense_real(&in[0], i), call->ints);
        else if (call->row->op_class == TANDEM_CLASS_COMPARE)
            out->integer[i] =
                compare(id, dense_real(&in[0], i), dense_real(&in[1], i));
        else
            out->integer[i] =
                logical(id, dense_integer(&in[0], i) != 0,
                        call->inputs == 2 && dense_integer(&in[1], i) != 0);
    }
}

/* ---- i32 and i64 ---- */

/* Results are exact, or wrap around in the lower bits of uint64_t. */
static uint64_t integer_value(uint32_t id, int64_t a, int64_t b)
{
    bool divides = b != 0 && b != -1;

    switch (id) {
    case TANDEM_OP_NEG:
        return 0 - (uint64_t)a;
    case TANDEM_OP_ABS:
        return a < 0 ? 0 - (uint64_t)a : (uint64_t)a;
    case TANDEM_OP_SIGN:
        return a > 0 ? 1 : a < 0 ? UINT64_MAX : 0;
    case TANDEM_OP_ADD:
        return (uint64_t)a + (uint64_t)b;
    case TANDEM_OP_SUB:
        return (uint64_t)a - (uint64_t)b;
    case TANDEM_OP_MUL:
        return (uint64_t)a * (uint64_t)b;
    case TANDEM_OP_DIV:
        return divides ? (uint64_t)(a / b) : (uint64_t)a * (uint64_t)b;
    case TANDEM_OP_FMOD:
        return divides ? (uint64_t)(a % b) : 0;
    case TANDEM_OP_MOD:
        /* The second remainder is that of a sum with the sign of b. */
        return divides ? (uint64_t)((a % b + ((a < 0) == (b < 0) ? 0 : b)) % b)
                       : 0;
    case TANDEM_OP_MIN:
        return (uint64_t)(b < a ? b : a);
    case TANDEM_OP_MAX:
        return (uint64_t)(b > a ? b : a);
    case TANDEM_OP_EQUAL:
        return a == b;
    case TANDEM_OP_NOT_EQUAL:
        return a != b;
    case TANDEM_OP_LESS:
        return a < b;
    case TANDEM_OP_LESS_EQUAL:
        return a <= b;
    case TANDEM_OP_GREATER:
        return a > b;
    default:
        return a >= b;
    }
}

static void integers_fill(const struct call *call, const struct dense *in,
                          struct expected *out)
{
    uint32_t id = call->row->id;
    uint32_t dtype = call->operands[call->inputs].desc.dtype;

    expected_init(out, EXPECTED_INTEGER, in[0].elements);
    for (int64_t i = 0; i < in[0].elements; i++) {
        int64_t first = dense_integer(&in[0], i);
        uint64_t value;

        if (id == TANDEM_OP_WHERE)
            value = (uint64_t)dense_integer(&in[first != 0 ? 1 : 2], i);
        else
            value = integer_value(
                id, first, call->inputs > 1 ? dense_integer(&in[1], i) : 0);
        out->integer[i] = bits_integer(dtype, value);
    }
}

static double real_value(const struct call *call, const struct dense *in,
                         int64_t i)
{
    uint32_t id = call->row->id;
    double x = id == TANDEM_OP_WHERE ? 0.0 : dense_real(&in[0], i);

    if (id == TANDEM_OP_WHERE)
        return dense_integer(&in[0], i) != 0 ? dense_real(&in[1], i)
                                             : dense_real(&in[2], i);
    if (id == TANDEM_OP_FMA)
        return (double)((long double)x * (long double)dense_real(&in[1], i) +
                        (long double)dense_real(&in[2], i));
    if (call->inputs == 2)
        return binary(id, x, dense_real(&in[1], i));
    return reference_unary(id, x, call->ints, call->floats);
}

/*
 * Returns an argument in [low, high] where the operator has its smallest value
 * or a jump, or `low` if it is monotonic there. The minima are rounded; the
 * values near a minimum differ by less than 1e-6.
 */
static double turning_point(uint32_t id, const double *parameters, double low,
                            double high)
{
    double point = 0.0;

    if (id == TANDEM_OP_SWISH)
        point = -1.2785;
    else if (id == TANDEM_OP_GELU)
        point = parameters[0] == 1.0 ? -0.7525 : -0.7518;
    else if (id == TANDEM_OP_MISH)
        point = -1.1924;
    else if (id == TANDEM_OP_HARDSWISH)
        point = -1.5;
    else if (id == TANDEM_OP_THRESHOLDED_RELU)
        point = nextafter(reference_attribute(parameters[0]), INFINITY);
    return low <= point && point <= high ? point : low;
}

/* Returns true if the operator has a pole in [low, high]. */
static bool pole_between(uint32_t id, double low, double high)
{
    if (id == TANDEM_OP_RECIPROCAL)
        return low <= 0.0 && high >= 0.0;
    return id == TANDEM_OP_TAN && (high - low >= 3.14 || tan(low) > tan(high));
}

bool reference_activation(uint32_t id, const double *parameters, double x,
                          double error, double *out_real, double *out_tolerance)
{
    const struct op_row *row = op_find(id);
    const int64_t tanh_form = parameters[0] == 1.0;
    const double low = x - error, high = x + error;
    double difference = 0.0;

    *out_real = x;
    *out_tolerance = error;
    if (id == TANDEM_OP_INVALID)
        return true;
    *out_real = reference_unary(id, x, &tanh_form, parameters);
    if (id == TANDEM_OP_SIN || id == TANDEM_OP_COS) {
        difference = isfinite(x) ? fmin(error, 2.0) : 0.0;
    } else if (isfinite(x)) {
        const double others[] = {low, high,
                                 turning_point(id, parameters, low, high)};

        if (pole_between(id, low, high))
            return false;
        for (int i = 0; i < 3; i++) {
            double other =
                reference_unary(id, others[i], &tanh_form, parameters);

            if (isnan(other) != isnan(*out_real))
                return false;
            difference = fmax(difference, fabs(other - *out_real));
        }
    }
    *out_tolerance = difference;
    if (row->metric != TANDEM_METRIC_EXACT)
        *out_tolerance += tolerance_unary(row, *out_real, x, parameters);
    return true;
}

void elementwise_reference(const struct call *call, const struct dense *in,
                           struct expected *out)
{
    const struct op_row *row = call->row;
    int64_t n = in[0].elements;

    if (in[call->inputs - 1].dtype == TANDEM_I32 ||
        in[call->inputs - 1].dtype == TANDEM_I64) {
        integers_fill(call, in, out);
        return;
    }
    if (row->op_class == TANDEM_CLASS_COMPARE ||
        row->op_class == TANDEM_CLASS_LOGICAL) {
        expected_init(out, EXPECTED_INTEGER, n);
        truth_fill(call, in, out);
        return;
    }
    expected_init(out, EXPECTED_REAL, n);
    out->exact = row->metric == TANDEM_METRIC_EXACT;
    if (row->metric == TANDEM_METRIC_TERM_MAGNITUDE)
        out->subnormal_tolerance = TOLERANCE_SUBNORMAL;
    for (int64_t i = 0; i < n; i++) {
        bool relative = row->metric == TANDEM_METRIC_ULP_PLUS_INPUT ||
                        row->metric == TANDEM_METRIC_TERM_MAGNITUDE;
        double x = relative ? dense_real(&in[0], i) : 0.0;

        out->real[i] = real_value(call, in, i);
        /* The formula gives inf times 0; the limit is 0. */
        if (relative && x == (double)-INFINITY &&
            row->id != TANDEM_OP_HARDSIGMOID)
            out->real[i] = (double)NAN;
        out->tolerance[i] = tolerance_unary(row, out->real[i], x, call->floats);
    }
}
