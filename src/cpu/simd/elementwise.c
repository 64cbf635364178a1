/* SPDX-License-Identifier: Apache-2.0 */
/*
 * SIMD element-wise kernels and conversions of f16 and bf16.  The last, partial
 * vector uses the instructions of full vectors, so results do not depend on an
 * element's position.
 */
#include "config.h"

#include <math.h>
#include <string.h>

#include "cpu/simd/simd_kernels.h"

/* Defines row_<name>, which stores `expression` for each input vector x.  The
 * statements `setup` run once, before the loop. */
#define UNARY(name, setup, expression)                                         \
    static void row_##name(const struct row *row)                              \
    {                                                                          \
        const float *in = row->in[0];                                          \
        float *out = row->out[0];                                              \
        int64_t n = row->n, i = 0;                                             \
        setup;                                                                 \
        for (; i + LANES <= n; i += LANES) {                                   \
            vf x = vf_load(in + i);                                            \
            vf_store(out + i, expression);                                     \
        }                                                                      \
        if (i < n) {                                                           \
            vf x = vf_load_part(in + i, n - i, vf_set(0));                     \
            vf_store_part(out + i, n - i, expression);                         \
        }                                                                      \
    }

#define NOTHING (void)0
#define F(i) vf_set(row->params->f[i])

static inline vf sign(vf x)
{
    vf zero = vf_set(0);
    vf y = vf_select(vf_compare(x, zero, GT_OQ), vf_set(1), x);
    return vf_select(vf_compare(x, zero, LT_OQ), vf_set(-1), y);
}

/* If the second operand of vf_max_raw or vf_min_raw is NaN, the result is NaN.
 * relu and clip pass `x` as the second operand to return NaN if `x` is NaN. */
static inline vf relu(vf x)
{
    return vf_max_raw(vf_set(0), x);
}

static inline vf clip(vf x, vf low, vf high)
{
    return vf_min_raw(high, vf_max_raw(low, x));
}

static inline vf leaky_relu(vf x, vf alpha)
{
    return vf_select(vf_compare(x, vf_set(0), GE_OQ), x, alpha * x);
}

/* Returns e^x - 1 for x < 0.  If x > -1/2, computes x + x^2 p(x) with a
 * polynomial p.  Otherwise computes vf_exp(x) - 1, which loses at most one
 * bit. */
static inline vf expm1_below(vf x)
{
    vf p = vf_set(0.001125923f);
    p = vf_fma(p, x, vf_set(0.0081932964f));
    p = vf_fma(p, x, vf_set(0.04163205f));
    p = vf_fma(p, x, vf_set(0.16666289f));
    p = vf_fma(p, x, vf_set(0.49999985f));
    vf near = vf_fma(x * x, p, x);
    return vf_select(vf_compare(x, vf_set(-0.5f), GT_OQ), near,
                     vf_exp(x) - vf_set(1));
}

static inline vf elu(vf x, vf alpha)
{
    return vf_select(vf_compare(x, vf_set(0), GE_OQ), x,
                     alpha * expm1_below(x));
}

/* Returns 1 + e^-x. */
static inline vf logistic_denominator(vf x)
{
    return vf_set(1) + vf_exp(-x);
}

/* GELU is x * gate.  If x >= 0, the gate is 1 - erfc(|x| / sqrt(2)) / 2.  If x
 * < 0, it is erfc(|x| / sqrt(2)) / 2, which avoids cancellation. */
static inline vf gelu_erf(vf x)
{
    vf half = vf_set(0.5f) * vf_erfc_tail(vf_abs(x * vf_set(0.70710678f)));
    vf gate =
        vf_select(vf_compare(x, vf_set(0), GE_OQ), vf_set(1) - half, half);
    return x * gate;
}

/* Tanh form of GELU.  Uses (1 + tanh v) / 2 = 1 / (1 + e^-u), where u = 2v. */
static inline vf gelu_tanh(vf x)
{
    vf cube = x * x * (x * vf_set(0.044715f));
    vf u = vf_set(1.5957691f) * (x + cube);
    return x * (vf_set(1) / logistic_denominator(u));
}

/* Returns max(x, 0) + ln(1 + e), where e = e^-|x|.  A polynomial p
 * approximates ln(1 + e) / e. */
static inline vf softplus(vf x)
{
    vf e = vf_exp(-vf_abs(x));
    vf p = vf_set(0.0020302644f);
    p = vf_fma(p, e, vf_set(-0.013407651f));
    p = vf_fma(p, e, vf_set(0.0414785f));
    p = vf_fma(p, e, vf_set(-0.0824421f));
    p = vf_fma(p, e, vf_set(0.12418462f));
    p = vf_fma(p, e, vf_set(-0.16105704f));
    p = vf_fma(p, e, vf_set(0.19890751f));
    p = vf_fma(p, e, vf_set(-0.24987271f));
    p = vf_fma(p, e, vf_set(0.3333256f));
    p = vf_fma(p, e, vf_set(-0.49999982f));
    p = vf_fma(p, e, vf_set(1.0f));
    return vf_fma(e, p, relu(x));
}

/* Mish is x * tanh(ln(1 + e)) = x * n / (n + 2), where n = e (e + 2) and e =
 * e^x.  If x > 20, the result is x, because n / (n + 2) is 1 in f32. */
static inline vf mish(vf x)
{
    vf e = vf_exp(x);
    vf n = e * (e + vf_set(2));
    vf y = x * (n / (n + vf_set(2)));
    return vf_select(vf_compare(x, vf_set(20), GT_OQ), x, y);
}

static inline vf hardswish(vf x)
{
    vf gate = x / vf_set(6) + vf_set(0.5f);
    return x * clip(gate, vf_set(0), vf_set(1));
}

static inline vf selu(vf x, vf factor, vf gamma)
{
    return vf_select(vf_compare(x, vf_set(0), GE_OQ), gamma * x,
                     factor * expm1_below(x));
}

/* If x / alpha is small, it can be subnormal, and celu rounds to x. */
static inline vf celu(vf x, vf alpha)
{
    vf z = x / alpha;
    vf y = vf_select(vf_compare(vf_abs(z), vf_set(0x1p-25f), LT_OQ), x,
                     alpha * expm1_below(z));
    return vf_select(vf_compare(x, vf_set(0), GE_OQ), x, y);
}

static inline vf thresholded_relu(vf x, vf alpha)
{
    return vf_select(vf_compare(x, alpha, LE_OQ), vf_set(0), x);
}

/* SLEEF returns infinity for some |x| above 88 whose result is finite.  These
 * inputs use (e^(|x| / 2))^2 / 2. */
static inline vf half_exp(vf x)
{
    vf e = vf_exp(vf_set(0.5f) * vf_abs(x));
    return vf_set(0.5f) * e * e;
}

static inline vf sinh_all(vf x)
{
    vm large = vf_compare(vf_abs(x), vf_set(88), GT_OQ);
    vf y = SLEEF1(sinh)(x);
    if (vm_bits(large) != 0)
        y = vf_select(large, vf_copy_sign(half_exp(x), x), y);
    return y;
}

static inline vf cosh_all(vf x)
{
    vm large = vf_compare(vf_abs(x), vf_set(88), GT_OQ);
    vf y = SLEEF1(cosh)(x);
    if (vm_bits(large) != 0)
        y = vf_select(large, half_exp(x), y);
    return y;
}

/* SLEEF's asinh and acosh return infinity for some large inputs.  Above 1e18,
 * the result is ln(2 |x|) in f32. */
static inline vf log_double(vf x)
{
    return SLEEF1(log)(vf_abs(x)) + vf_set(0.693147181f);
}

static inline vf asinh_all(vf x)
{
    vm large = vf_compare(vf_abs(x), vf_set(1e18f), GT_OQ);
    vf y = SLEEF1(asinh)(x);
    if (vm_bits(large) != 0)
        y = vf_select(large, vf_copy_sign(log_double(x), x), y);
    return y;
}

static inline vf acosh_all(vf x)
{
    vm large = vf_compare(x, vf_set(1e18f), GT_OQ);
    vf y = SLEEF1(acosh)(x);
    if (vm_bits(large) != 0)
        y = vf_select(large, log_double(x), y);
    return y;
}

/* The operators of one input: X(id, attributes, result), where x is a vector of
 * elements.  An operator that is not in this list has the generic kernel. */
#define UNARY_OPERATORS(X) \
X(NEG, NOTHING, -x) \
X(ABS, NOTHING, vf_abs(x)) \
X(SIGN, NOTHING, sign(x)) \
X(FLOOR, NOTHING, vf_floor(x)) \
X(CEIL, NOTHING, vf_ceil(x)) \
X(ROUND, NOTHING, vf_round(x)) \
X(SQRT, NOTHING, vf_sqrt(x)) \
X(RSQRT, NOTHING, vf_set(1) / vf_sqrt(x)) \
X(RECIPROCAL, NOTHING, vf_set(1) / x) \
X(EXP, NOTHING, vf_exp(x)) \
X(EXPM1, NOTHING, SLEEF1(expm1)(x)) \
X(LOG, NOTHING, SLEEF1(log)(x)) \
X(LOG1P, NOTHING, vf_log1p(x)) \
X(SIN, NOTHING, SLEEF1(sin)(x)) \
X(COS, NOTHING, SLEEF1(cos)(x)) \
X(TANH, NOTHING, vf_tanh(x)) \
X(ERF, NOTHING, vf_erf(x)) \
X(SIGMOID, NOTHING, vf_set(1) / logistic_denominator(x)) \
X(RELU, NOTHING, relu(x)) \
X(LEAKY_RELU, vf alpha = F(0), leaky_relu(x, alpha)) \
X(ELU, vf alpha = F(0), elu(x, alpha)) \
X(SWISH, NOTHING, x / logistic_denominator(x)) \
X(SOFTPLUS, NOTHING, softplus(x)) \
X(MISH, NOTHING, mish(x)) \
X(HARDSWISH, NOTHING, hardswish(x)) \
X(HARDSIGMOID, vf alpha = F(0); vf beta = F(1), \
  clip(alpha * x + beta, vf_set(0), vf_set(1))) \
X(SOFTSIGN, NOTHING, x / (vf_set(1) + vf_abs(x))) \
X(SELU, vf factor = F(0); vf gamma = F(1), selu(x, factor, gamma)) \
X(CELU, vf alpha = F(0), celu(x, alpha)) \
X(THRESHOLDED_RELU, vf alpha = F(0), thresholded_relu(x, alpha)) \
X(TAN, NOTHING, SLEEF1(tan)(x)) \
X(ASIN, NOTHING, SLEEF1(asin)(x)) \
X(ACOS, NOTHING, SLEEF1(acos)(x)) \
X(ATAN, NOTHING, SLEEF1(atan)(x)) \
X(SINH, NOTHING, sinh_all(x)) \
X(COSH, NOTHING, cosh_all(x)) \
X(ASINH, NOTHING, asinh_all(x)) \
X(ACOSH, NOTHING, acosh_all(x)) \
X(ATANH, NOTHING, SLEEF1(atanh)(x)) \
X(EXP2, NOTHING, SLEEF1(exp2)(x)) \
X(LOG2, NOTHING, SLEEF1(log2)(x))

UNARY_OPERATORS(UNARY)
UNARY(clip_within, vf low = F(0); vf high = F(1), clip(x, low, high))
UNARY(gelu_erf, NOTHING, gelu_erf(x))
UNARY(gelu_tanh, NOTHING, gelu_tanh(x))

static void row_gelu(const struct row *row)
{
    if (row->params->flag)
        row_gelu_tanh(row);
    else
        row_gelu_erf(row);
}

/* If a bound of clip is NaN, all results are NaN.  This case is handled here,
 * because vf_max_raw and vf_min_raw can ignore a NaN bound. */
static void row_clip(const struct row *row)
{
    float *out = row->out[0];
    if (!isnan(row->params->f[0]) && !isnan(row->params->f[1])) {
        row_clip_within(row);
        return;
    }
    for (int64_t i = 0; i < row->n; i++)
        out[i] = NAN;
}

/* ---- two inputs --------------------------------------------------------- */

#define BINARY_LOOP(load_a, load_b, part_a, part_b, expression)                \
    for (; i + LANES <= n; i += LANES) {                                       \
        vf a = load_a, b = load_b;                                             \
        vf_store(out + i, expression);                                         \
    }                                                                          \
    if (i < n) {                                                               \
        vf a = part_a, b = part_b;                                             \
        vf_store_part(out + i, n - i, expression);                             \
    }
#define LOAD(p) vf_load((p) + i)
#define PART(p) vf_load_part((p) + i, n - i, vf_set(0))

#define BINARY(name, expression)                                               \
    static void row_##name(const struct row *row)                              \
    {                                                                          \
        const float *pa = row->in[0], *pb = row->in[1];                        \
        float *out = row->out[0];                                              \
        int64_t n = row->n, i = 0;                                             \
        vf a0 = vf_set(*pa), b0 = vf_set(*pb);                                 \
        switch (row->constants & 3u) {                                         \
        case 0:                                                                \
            BINARY_LOOP(LOAD(pa), LOAD(pb), PART(pa), PART(pb), expression)    \
            break;                                                             \
        case 1:                                                                \
            BINARY_LOOP(a0, LOAD(pb), a0, PART(pb), expression)                \
            break;                                                             \
        case 2:                                                                \
            BINARY_LOOP(LOAD(pa), b0, PART(pa), b0, expression)                \
            break;                                                             \
        default:                                                               \
            BINARY_LOOP(a0, b0, a0, b0, expression)                            \
        }                                                                      \
    }

BINARY(add, a + b)
BINARY(sub, a - b)
BINARY(mul, (a * b))
BINARY(div, a / b)
BINARY(pow, SLEEF_POW(a, b))
BINARY(min, vf_min(a, b))
BINARY(max, vf_max(a, b))
BINARY(prelu, leaky_relu(a, b))
/* For relu_grad, `a` is the incoming gradient and `b` is the input of relu. */
BINARY(relu_grad, vf_select(vf_compare(b, vf_set(0), LE_OQ), vf_set(0), a))

/* ---- three inputs ------------------------------------------------------- */

static vm condition_load_part(const uint8_t *p, int64_t n)
{
    uint8_t bytes[LANES] = {0};
    for (int64_t i = 0; i < n; i++)
        bytes[i] = p[i];
    return vm_load_bytes(bytes);
}

static void row_where(const struct row *row)
{
    const uint8_t *condition = row->in[0];
    const float *pa = row->in[1], *pb = row->in[2];
    float *out = row->out[0];
    int64_t n = row->n, i = 0;
    bool repeats = (row->constants & 1u) != 0;
    bool a_repeats = (row->constants & 2u) != 0;
    bool b_repeats = (row->constants & 4u) != 0;
    vf a = vf_set(*pa), b = vf_set(*pb);
    vm mask = vf_compare(vf_set(*condition), vf_set(0), NEQ_UQ);
    for (; i + LANES <= n; i += LANES) {
        mask = repeats ? mask : vm_load_bytes(condition + i);
        a = a_repeats ? a : vf_load(pa + i);
        b = b_repeats ? b : vf_load(pb + i);
        vf_store(out + i, vf_select(mask, a, b));
    }
    if (i < n) {
        mask = repeats ? mask : condition_load_part(condition + i, n - i);
        a = a_repeats ? a : PART(pa);
        b = b_repeats ? b : PART(pb);
        vf_store_part(out + i, n - i, vf_select(mask, a, b));
    }
}

static void row_fma(const struct row *row)
{
    const float *pa = row->in[0], *pb = row->in[1], *pc = row->in[2];
    float *out = row->out[0];
    int64_t n = row->n, i = 0;
    bool a_repeats = (row->constants & 1u) != 0;
    bool b_repeats = (row->constants & 2u) != 0;
    bool c_repeats = (row->constants & 4u) != 0;
    vf a = vf_set(*pa), b = vf_set(*pb), c = vf_set(*pc);
    for (; i + LANES <= n; i += LANES) {
        a = a_repeats ? a : vf_load(pa + i);
        b = b_repeats ? b : vf_load(pb + i);
        c = c_repeats ? c : vf_load(pc + i);
        vf_store(out + i, vf_fma(a, b, c));
    }
    if (i < n) {
        a = a_repeats ? a : PART(pa);
        b = b_repeats ? b : PART(pb);
        c = c_repeats ? c : PART(pc);
        vf_store_part(out + i, n - i, vf_fma(a, b, c));
    }
}

/* ---- f16 and bf16 ------------------------------------------------------- */

/* Converts the last, partial vector in a buffer that holds a full vector. */
#define WIDEN(name)                                                            \
    static void name##_widen(float *y, const uint16_t *x, int64_t n)           \
    {                                                                          \
        uint16_t part[LANES] = {0};                                            \
        float wide[LANES];                                                     \
        int64_t i = 0;                                                         \
        for (; i + LANES <= n; i += LANES)                                     \
            vf_store(y + i, vf_load_##name(x + i));                            \
        if (i == n)                                                            \
            return;                                                            \
        memcpy(part, x + i, (size_t)(n - i) * sizeof *x);                      \
        vf_store(wide, vf_load_##name(part));                                  \
        memcpy(y + i, wide, (size_t)(n - i) * sizeof *y);                      \
    }
#define NARROW(name)                                                           \
    static void name##_narrow(uint16_t *y, const float *x, int64_t n)          \
    {                                                                          \
        uint16_t part[LANES];                                                  \
        int64_t i = 0;                                                         \
        for (; i + LANES <= n; i += LANES)                                     \
            vf_store_##name(y + i, vf_load(x + i));                            \
        if (i == n)                                                            \
            return;                                                            \
        vf_store_##name(part, vf_load_part(x + i, n - i, vf_set(0)));          \
        memcpy(y + i, part, (size_t)(n - i) * sizeof *y);                      \
    }

WIDEN(f16)
WIDEN(bf16)
NARROW(f16)
NARROW(bf16)

void ISA(elementwise_kernels)(struct kernels *table)
{
    row_fn *rows = table->rows;
#define UNARY_FILL(id, attributes, expression) rows[TANDEM_OP_##id] = row_##id;
    UNARY_OPERATORS(UNARY_FILL)
    rows[TANDEM_OP_CLIP] = row_clip;
    rows[TANDEM_OP_GELU] = row_gelu;
    ROWS_OF_ALL_LEVELS(ROW_FILL)
    table->f16_widen = f16_widen;
    table->f16_narrow = f16_narrow;
    table->bf16_widen = bf16_widen;
    table->bf16_narrow = bf16_narrow;
}
