/* SPDX-License-Identifier: Apache-2.0 */
/* Element-wise kernels in plain C, which run on every machine, with f32
 * inputs and outputs.  The kernels call the C library in f64, so nearly
 * every result is correctly rounded.  Higher instruction set levels replace
 * these kernels. */
#include "config.h"

#include <float.h>
#include <math.h>

#include "cpu/kernels/binary_rows.h"

#define SQRT1_2 0.70710678118654752440
#define SQRT_2_OVER_PI 0.79788456080286535588

static double sigmoid(double x)
{
    return 1.0 / (1.0 + exp(-x));
}

static double softplus(double x)
{
    return x > 0 ? x + log1p(exp(-x)) : log1p(exp(x));
}

static double gelu(double x, bool tanh_form)
{
    if (tanh_form)
        return 0.5 * x *
               (1.0 + tanh(SQRT_2_OVER_PI * (x + 0.044715 * x * x * x)));
    return 0.5 * x * (1.0 + erf(x * SQRT1_2));
}

static double sign(double x)
{
    return x > 0 ? 1.0 : x < 0 ? -1.0 : x == 0 ? 0.0 : x;
}

static double clip(double x, double low, double high)
{
    double at_least = x >= low || isnan(x) ? x : low;
    return at_least <= high || isnan(at_least) ? at_least : high;
}

static double hardswish(double x)
{
    double gate = x / 6.0 + 0.5;
    return x * (gate < 0 ? 0.0 : gate > 1 ? 1.0 : gate);
}

static double celu(double x, double alpha)
{
    return x >= 0 ? x : alpha * expm1(x / alpha);
}

static float smaller(float a, float b)
{
    return a < b || isnan(a) ? a : b;
}

static float larger(float a, float b)
{
    return a > b || isnan(a) ? a : b;
}

/* Returns the remainder of a / b with the sign of b. */
static float floored_mod(float a, float b)
{
    float r = fmodf(a, b);
    return r != 0 && (r < 0) != (b < 0) ? r + b : r;
}

/* ---- rows --------------------------------------------------------------- */

/* Stride of input i: 0 if the input is one element that repeats, else 1. */
#define STEP(row, i) (((row)->constants >> (i)&1u) == 0)

#define UNARY(id, expression)                                                  \
    static void row_##id(const struct row *row)                                \
    {                                                                          \
        const float *in = row->in[0];                                          \
        const float *f = row->params != NULL ? row->params->f : NULL;          \
        float *out = row->out[0];                                              \
        (void)f;                                                               \
        for (int64_t i = 0; i < row->n; i++) {                                 \
            double x = in[i];                                                  \
            out[i] = (float)(expression);                                      \
        }                                                                      \
    }

/* The operators of one input: X(id, result).  x is the element, and f holds the
 * float attributes. */
#define UNARY_OPERATORS(X) \
X(NEG, -x) \
X(ABS, fabs(x)) \
X(SIGN, sign(x)) \
X(FLOOR, floor(x)) \
X(CEIL, ceil(x)) \
X(ROUND, rint(x)) \
X(SQRT, sqrt(x)) \
X(RSQRT, 1.0 / sqrt(x)) \
X(RECIPROCAL, 1.0 / x) \
X(EXP, exp(x)) \
X(EXPM1, expm1(x)) \
X(LOG, log(x)) \
X(LOG1P, log1p(x)) \
X(SIN, sin(x)) \
X(COS, cos(x)) \
X(TANH, tanh(x)) \
X(ERF, erf(x)) \
X(SIGMOID, sigmoid(x)) \
X(RELU, x <= 0 ? 0.0 : x) \
X(LEAKY_RELU, x >= 0 ? x : f[0] * x) \
X(ELU, x >= 0 ? x : f[0] * expm1(x)) \
X(CLIP, clip(x, f[0], f[1])) \
X(SWISH, x / (1.0 + exp(-x))) \
X(GELU, gelu(x, row->params->flag)) \
X(SOFTPLUS, softplus(x)) \
X(MISH, x * tanh(softplus(x))) \
X(HARDSWISH, hardswish(x)) \
X(HARDSIGMOID, clip((double)f[0] * x + (double)f[1], 0, 1)) \
X(SOFTSIGN, x / (1 + fabs(x))) \
X(SELU, x >= 0 ? f[1] * x : f[0] * expm1(x)) \
X(CELU, celu(x, f[0])) \
X(THRESHOLDED_RELU, x <= f[0] ? 0.0 : x) \
X(TAN, tan(x)) \
X(ASIN, asin(x)) \
X(ACOS, acos(x)) \
X(ATAN, atan(x)) \
X(SINH, sinh(x)) \
X(COSH, cosh(x)) \
X(ASINH, asinh(x)) \
X(ACOSH, acosh(x)) \
X(ATANH, atanh(x)) \
X(EXP2, exp2(x)) \
X(LOG2, log2(x))

UNARY_OPERATORS(UNARY)

BINARY(add, float, float, x + y)
BINARY(sub, float, float, x - y)
BINARY(mul, float, float, x *y)
BINARY(div, float, float, x / y)
BINARY(pow, float, float, pow(x, y))
BINARY(min, float, float, smaller(x, y))
BINARY(max, float, float, larger(x, y))
BINARY(prelu, float, float, x >= 0 ? x : y * x)
BINARY(mod, float, float, floored_mod(x, y))
BINARY(fmod, float, float, fmodf(x, y))
/* For relu_grad, `x` is the incoming gradient and `y` is the input of relu. */
BINARY(relu_grad, float, float, y <= 0 ? 0.0f : x)

static void row_where(const struct row *row)
{
    const uint8_t *condition = row->in[0];
    const float *a = row->in[1], *b = row->in[2];
    float *out = row->out[0];
    int64_t step = STEP(row, 0), a_step = STEP(row, 1), b_step = STEP(row, 2);
    int64_t n = row->n;
    for (int64_t i = 0; row->constants == 0 && i < n; i++) {
        float x = a[i], y = b[i];
        out[i] = condition[i] != 0 ? x : y;
    }
    for (int64_t i = 0; row->constants != 0 && i < n; i++) {
        float x = a[i * a_step], y = b[i * b_step];
        out[i] = condition[i * step] != 0 ? x : y;
    }
}

static void row_fma(const struct row *row)
{
    const float *a = row->in[0], *b = row->in[1], *c = row->in[2];
    float *out = row->out[0];
    int64_t a_step = STEP(row, 0), b_step = STEP(row, 1), c_step = STEP(row, 2);
    for (int64_t i = 0; i < row->n; i++)
        out[i] = fmaf(a[i * a_step], b[i * b_step], c[i * c_step]);
}

/* params->f holds lr, momentum, 1 - dampening, weight_decay, in this order. */
static void row_sgd(const struct row *row)
{
    const float *w = row->in[0], *g = row->in[1], *m = row->in[2];
    const float *f = row->params->f;
    float *out_w = row->out[0], *out_m = row->out[1];
    for (int64_t i = 0; i < row->n; i++) {
        double old = w[i];
        double d = g[i] + (double)f[3] * old;
        double velocity = (double)f[1] * m[i] + (double)f[2] * d;
        double step = row->params->flag ? d + f[1] * velocity : velocity;
        out_m[i] = (float)velocity;
        out_w[i] = (float)(old - f[0] * step);
    }
}

/* Rounds Adam's mean square of gradients to f32.  Limits finite values to
 * FLT_MAX, so that finite gradients cannot make the mean square infinite. */
static float square_store(double square)
{
    return square > FLT_MAX && !isinf(square) ? FLT_MAX : (float)square;
}

/* params->f holds, in this order, lr, beta1, 1 - beta1, beta2, 1 - beta2, eps,
 * weight_decay, lr / (1 - beta1^step), 1 / (1 - beta2^step). */
static void row_adam(const struct row *row)
{
    const float *w = row->in[0], *g = row->in[1], *m = row->in[2],
                *v = row->in[3];
    const float *f = row->params->f;
    float *out_w = row->out[0], *out_m = row->out[1], *out_v = row->out[2];
    bool decoupled = row->params->flag;
    for (int64_t i = 0; i < row->n; i++) {
        double weight = w[i], gradient = g[i];
        if (decoupled)
            weight -= (double)f[0] * f[6] * weight;
        else
            gradient += f[6] * weight;
        double mean = (double)f[1] * m[i] + f[2] * gradient;
        double square = (double)f[3] * v[i] + f[4] * gradient * gradient;
        double step = mean * f[7] / (sqrt(square * f[8]) + f[5]);
        out_m[i] = (float)mean;
        out_v[i] = square_store(square);
        out_w[i] = (float)(weight - step);
    }
}

/* ---- the table ---------------------------------------------------------- */

void generic_elementwise_kernels(row_fn *rows)
{
#define UNARY_FILL(id, expression) rows[TANDEM_OP_##id] = row_##id;
    UNARY_OPERATORS(UNARY_FILL)
    ROWS_OF_ALL_LEVELS(ROW_FILL)
    rows[TANDEM_OP_MOD] = row_mod;
    rows[TANDEM_OP_FMOD] = row_fmod;
    rows[TANDEM_OP_SGD] = row_sgd;
    rows[TANDEM_OP_ADAM] = row_adam;
}
