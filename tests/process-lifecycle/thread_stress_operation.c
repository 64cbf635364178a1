/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The operations of the thread stress test; see thread_stress.h. Each has a
 * float64 reference and a bound for the error of the f32 result, given the
 * errors of its inputs.
 */
#include <config.h>

#include <math.h>
#include <string.h>

#include "thread_stress.h"

/* Relative error of one f32 operation, at most 16 ULP. */
#define ROUNDING 2e-6
/* Larger values are not added or multiplied. */
#define LARGEST 64.0

#define MUST(call)                                                           \
    do {                                                                     \
        if ((call) != TANDEM_OK)                                             \
            return worker_fail(worker, #call);                               \
    } while (0)

/* Runs the operator on a device, or on the one that the library selects. */
static bool operator_run(struct worker *worker, const struct tandem_op *op,
                         struct tandem_tensor *const *inputs, uint32_t count,
                         struct tandem_tensor *output)
{
    const uint32_t device = random_below(worker, worker->devices + 1);

    MUST(tandem_run_on(worker->context,
                       device < worker->devices ? device : TANDEM_ANY_DEVICE,
                       op, inputs, count, &output, 1));
    return true;
}

static struct slot *own(struct worker *worker)
{
    return &worker->slots[random_below(worker, SLOTS)];
}

/* Returns an input, one of the worker's slots or a shared one. */
static const struct slot *input(struct worker *worker)
{
    const uint32_t i = random_below(worker, SLOTS + SHARED);

    return i < SLOTS ? &worker->slots[i] : &worker->shared[i - SLOTS];
}

/* ---- element-wise, in place too ---- */

static double sigmoid(double x)
{
    return 1 / (1 + exp(-x));
}

static double relu(double x)
{
    return x > 0 ? x : 0;
}

static double negate(double x)
{
    return -x;
}

static const struct {
    uint32_t id;
    double (*f)(double); /* Has a slope of at most 1. */
} unaries[] = {{TANDEM_OP_NEG, negate},
               {TANDEM_OP_ABS, fabs},
               {TANDEM_OP_RELU, relu},
               {TANDEM_OP_TANH, tanh},
               {TANDEM_OP_SIGMOID, sigmoid}};

static bool unary(struct worker *worker)
{
    const uint32_t kind =
        random_below(worker, sizeof unaries / sizeof *unaries);
    const struct slot *x = input(worker);
    struct slot *y = own(worker);
    const struct tandem_op op = {.struct_size = sizeof op,
                                 .id = unaries[kind].id};

    if (!operator_run(worker, &op, &x->tensor, 1, y->tensor))
        return false;
    y->error = x->error + ROUNDING * (1 + slot_largest(x));
    for (int i = 0; i < ELEMENTS; i++)
        y->expected[i] = unaries[kind].f(x->expected[i]);
    return true;
}

static bool binary(struct worker *worker)
{
    const struct slot *a = input(worker), *b = input(worker);
    const double largest_a = slot_largest(a), largest_b = slot_largest(b);
    const bool gemm = random_below(worker, 2);
    const struct tandem_op op = {.struct_size = sizeof op,
                                 .id = gemm ? TANDEM_OP_MUL : TANDEM_OP_SUB};
    struct tandem_tensor *const inputs[2] = {a->tensor, b->tensor};
    struct slot *y = own(worker);
    double error;

    if (largest_a > LARGEST || largest_b > LARGEST)
        return slot_write(worker, y);
    if (!operator_run(worker, &op, inputs, 2, y->tensor))
        return false;
    error = gemm ? a->error * largest_b + b->error * largest_a +
                       ROUNDING * largest_a * largest_b
                 : a->error + b->error + ROUNDING * (largest_a + largest_b);
    for (int i = 0; i < ELEMENTS; i++)
        y->expected[i] = gemm ? a->expected[i] * b->expected[i]
                              : a->expected[i] - b->expected[i];
    y->error = error;
    return true;
}

/* ---- strided ---- */

/* Transposes through a view that exists during the operation. */
static bool strided(struct worker *worker)
{
    static const int64_t shape[2] = {SIDE, SIDE}, strides[2] = {1, SIDE};
    const struct tandem_op op = {.struct_size = sizeof op,
                                 .id = random_below(worker, 2)
                                           ? TANDEM_OP_NEG
                                           : TANDEM_OP_COPY};
    const double sign = op.id == TANDEM_OP_NEG ? -1 : 1;
    const struct slot *x = input(worker);
    struct slot *y = own(worker);
    struct tandem_tensor *view = NULL;
    double expected[ELEMENTS];
    bool good;

    if (x == y)
        return true;
    MUST(tandem_tensor_view(x->tensor, 0, 2, shape, strides, &view));
    good = operator_run(worker, &op, &view, 1, y->tensor);
    tandem_tensor_destroy(view);
    for (int i = 0; i < ELEMENTS; i++)
        expected[i] = sign * x->expected[i % SIDE * SIDE + i / SIDE];
    memcpy(y->expected, expected, sizeof expected);
    y->error = x->error;
    return good;
}

/* ---- reductions, softmax ---- */

/*
 * Writes the mean of each row to the first column through a view. The other
 * columns are unchanged.
 */
static bool reduction(struct worker *worker)
{
    static const int64_t shape[2] = {SIDE, 1}, strides[2] = {SIDE, 1};
    const int64_t ints[2] = {2, 1};
    const struct tandem_op op = {.struct_size = sizeof op,
                                 .id = TANDEM_OP_MEAN,
                                 .int_count = 2,
                                 .ints = ints};
    const struct slot *x = input(worker);
    struct slot *y = own(worker);
    struct tandem_tensor *view = NULL;
    double error = x->error + ROUNDING * (1 + slot_largest(x));
    bool good;

    if (x == y)
        return true;
    MUST(tandem_tensor_view(y->tensor, 0, 2, shape, strides, &view));
    good = operator_run(worker, &op, &x->tensor, 1, view);
    tandem_tensor_destroy(view);
    for (int i = 0; i < SIDE; i++) {
        double sum = 0;

        for (int j = 0; j < SIDE; j++)
            sum += x->expected[i * SIDE + j];
        y->expected[i * SIDE] = sum / SIDE;
    }
    y->error = fmax(y->error, error);
    return good;
}

static void row_softmax(double *out, const double *in)
{
    double largest = in[0], sum = 0;

    for (int j = 1; j < SIDE; j++)
        largest = fmax(largest, in[j]);
    for (int j = 0; j < SIDE; j++)
        sum += exp(in[j] - largest);
    for (int j = 0; j < SIDE; j++)
        out[j] = exp(in[j] - largest) / sum;
}

static bool softmax(struct worker *worker)
{
    const int64_t axis = 1;
    const struct tandem_op op = {.struct_size = sizeof op,
                                 .id = TANDEM_OP_SOFTMAX,
                                 .int_count = 1,
                                 .ints = &axis};
    const struct slot *x = input(worker);
    struct slot *y = own(worker);
    double expected[ELEMENTS];

    if (x == y || slot_largest(x) > LARGEST)
        return true;
    if (!operator_run(worker, &op, &x->tensor, 1, y->tensor))
        return false;
    for (int i = 0; i < SIDE; i++)
        row_softmax(expected + i * SIDE, x->expected + i * SIDE);
    memcpy(y->expected, expected, sizeof expected);
    /* The relative error of exp(x) is the absolute error of x. */
    y->error = 2 * expm1(x->error) + 1e-4;
    return true;
}

/* ---- GEMM ---- */

static void gemm_reference(double *out, const double *a, const double *b,
                           bool transpose)
{
    for (int i = 0; i < SIDE; i++)
        for (int j = 0; j < SIDE; j++) {
            double sum = 0;

            for (int k = 0; k < SIDE; k++)
                sum += a[i * SIDE + k] *
                       (transpose ? b[j * SIDE + k] : b[k * SIDE + j]);
            out[i * SIDE + j] = sum / SIDE;
        }
}

/* Computes c = a b / SIDE, with or without a transposed b. */
static bool gemm(struct worker *worker)
{
    static const int64_t shape[2] = {SIDE, SIDE}, strides[2] = {1, SIDE};
    const bool transpose = random_below(worker, 2);
    const uint32_t device = random_below(worker, worker->devices + 1);
    const struct tandem_matmul_options options = {
        .struct_size = sizeof options,
        .alpha = 1.0 / SIDE,
        .device = device < worker->devices ? device : TANDEM_ANY_DEVICE};
    const struct slot *a = input(worker), *b = input(worker);
    const double largest_a = slot_largest(a), largest_b = slot_largest(b);
    struct tandem_tensor *view = NULL;
    struct slot *c = own(worker);
    double expected[ELEMENTS];
    enum tandem_status status;

    if (c == a || c == b || largest_a > LARGEST || largest_b > LARGEST)
        return true;
    if (transpose)
        MUST(tandem_tensor_view(b->tensor, 0, 2, shape, strides, &view));
    status = tandem_matmul(worker->context, &options, a->tensor,
                           transpose ? view : b->tensor, c->tensor);
    if (status != TANDEM_OK)
        return worker_fail(worker, "tandem_matmul");
    tandem_tensor_destroy(view);
    gemm_reference(expected, a->expected, b->expected, transpose);
    memcpy(c->expected, expected, sizeof expected);
    c->error = a->error * largest_b + b->error * largest_a +
               16 * ROUNDING * (largest_a * largest_b + 1);
    return true;
}

/* ---- other operations ---- */

static bool read_own(struct worker *worker)
{
    return slot_check(worker, own(worker));
}

static bool read_shared(struct worker *worker)
{
    struct slot copy = worker->shared[random_below(worker, SHARED)];

    return slot_check(worker, &copy);
}

static bool write_own(struct worker *worker)
{
    return slot_write(worker, own(worker));
}

static bool make_anew(struct worker *worker)
{
    const uint32_t i = random_below(worker, SLOTS);
    struct slot *slot = &worker->slots[i];

    /* Wrapped memory may be freed only when nothing writes to it. */
    if (slot->memory)
        MUST(tandem_tensor_sync(slot->tensor, TANDEM_TIMEOUT_INFINITE));
    slot_destroy(slot);
    return slot_make(worker, slot,
                     random_below(worker, 2) ? worker->memory[i] : NULL);
}

static bool explain(struct worker *worker)
{
    const struct tandem_op op = {.struct_size = sizeof op,
                                 .id = TANDEM_OP_EXP};
    struct tandem_explanation e = {.struct_size = sizeof e};
    const struct slot *x = input(worker);
    struct slot *y = own(worker);

    MUST(tandem_explain_op(worker->context, &op, &x->tensor, 1, &y->tensor, 1,
                           &e));
    if (e.op != TANDEM_OP_EXP || e.candidate_count == 0)
        return worker_fail(worker, "another operator is explained");
    tandem_explain_last(worker->context, &e);
    return true;
}

static bool ask(struct worker *worker)
{
    uint32_t mask = 0;

    MUST(tandem_tensor_residency(input(worker)->tensor, &mask));
    if (mask == 0)
        return worker_fail(worker, "a tensor that was written is nowhere");
    return true;
}

static bool prefetch(struct worker *worker)
{
    MUST(tandem_tensor_prefetch(input(worker)->tensor,
                                random_below(worker, worker->devices)));
    return true;
}

static uint64_t observed;

static void observe(void *user, const struct tandem_explanation *explanation,
                    bool after)
{
    (void)user;
    __atomic_fetch_add(&observed, explanation->candidate_count + after,
                       __ATOMIC_RELAXED);
}

/* Changes settings that affect all threads. */
static bool context_change(struct worker *worker)
{
    switch (random_below(worker, 8)) {
    case 0:
        MUST(tandem_context_synchronize(worker->context,
                                        TANDEM_TIMEOUT_INFINITE));
        break;
    case 1:
        MUST(tandem_context_set_observer(
            worker->context, random_below(worker, 2) ? observe : NULL, NULL));
        break;
    case 2:
        MUST(tandem_context_set_timing(worker->context,
                                    random_below(worker, 8) == 0));
        break;
    default:
        break;
    }
    return true;
}

bool operation_run(struct worker *worker)
{
    static bool (*const mix[])(struct worker *) = {
        unary,     unary,    unary,     binary,      binary,
        strided,   strided,  reduction, softmax,     gemm,
        gemm,      read_own, read_own,  read_shared, write_own,
        make_anew, explain,  ask,       prefetch,    context_change};

    worker->operations++;
    return mix[random_below(worker, sizeof mix / sizeof *mix)](worker);
}
