/* SPDX-License-Identifier: Apache-2.0 */
/* Measures GEMM; see gemm_case.h. */
#include <config.h>

#include "gemm_case.h"

#include "common/argument_check.h"
#include "common/gemm_operator.h"

#ifdef BENCH_CBLAS
#include <cblas.h>
#endif

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { A, B, BIAS, C, OPERANDS };

/* ---- implementations ---- */

/* Writes the first element of a, without changing its value. */
static bool touch(struct gemm_case *p)
{
    struct device_session *session = &p->bench->session;

    return session->backend->fill(session->stream, p->buffers[A], 0,
                                  sizeof *p->a, p->a,
                                  sizeof *p->a) == TANDEM_OK;
}

static bool run_plain(void *argument)
{
    struct gemm_case *p = argument;
    struct device_session *session = &p->bench->session;

    return session->backend->gemm(session->stream, &p->plain) == TANDEM_OK;
}

static bool run_whole(void *argument)
{
    struct gemm_case *p = argument;
    struct device_session *session = &p->bench->session;

    return (!p->packed || touch(p)) &&
           session->backend->gemm(session->stream, &p->gemm) == TANDEM_OK;
}

/* Launches an element-wise operator on c, in place. */
static bool launch_after(struct gemm_case *p, uint32_t id, bool bias)
{
    struct device_session *session = &p->bench->session;
    const struct tandem_op op = {.struct_size = sizeof op, .id = id};
    const struct tandem_tensor_desc c = {.buffer = p->buffers[C],
                                         .dtype = p->dtype,
                                         .rank = 2,
                                         .shape = {p->gemm.m, p->gemm.n},
                                         .strides = {p->gemm.n, 1}};
    const struct tandem_tensor_desc row = {.buffer = p->buffers[BIAS],
                                           .dtype = p->dtype,
                                           .rank = 1,
                                           .shape = {p->gemm.n},
                                           .strides = {1}};
    const struct tandem_tensor_desc *const in[] = {&c, &row};

    struct tandem_prepared **prepared = &p->after[bias ? 1 : 0];
    struct tensor_call call;

    tensor_call_init(&call, in, bias ? 2 : 1, in, 1, 64);
    if (*prepared == NULL &&
        tensor_call_prepare(&call, session->backend, session->device, &op, 0,
                            prepared) != TANDEM_OK)
        return false;
    return session->backend->launch(session->stream, *prepared, call.memory,
                                    bias ? 3 : 2, NULL, 0) == TANDEM_OK;
}

static bool run_three(void *argument)
{
    return run_plain(argument) && launch_after(argument, TANDEM_OP_ADD, true) &&
           launch_after(argument, TANDEM_OP_RELU, false);
}

static bool gemm_wait(void *argument)
{
    struct gemm_case *p = argument;

    return device_session_synchronize(&p->bench->session) == TANDEM_OK;
}

static BENCH_FN(runs_whole, run_whole, gemm_wait);
static BENCH_FN(runs_plain, run_plain, gemm_wait);
static BENCH_FN(runs_three, run_three, gemm_wait);

#ifdef BENCH_CBLAS
static bool run_cblas(void *argument)
{
    struct gemm_case *p = argument;
    const struct tandem_gemm *g = &p->plain;
    int m = (int)g->m, n = (int)g->n, k = (int)g->k;

    for (int64_t batch = 0; batch < g->batch; batch++)
        cblas_sgemm(
            CblasRowMajor,
            g->flags & TANDEM_GEMM_TRANSPOSE_A ? CblasTrans : CblasNoTrans,
            g->flags & TANDEM_GEMM_TRANSPOSE_B ? CblasTrans : CblasNoTrans, m,
            n, k, 1, p->a + batch * g->m * g->k, (int)g->a.ld,
            p->b + batch * g->k * g->n, (int)g->b.ld, 0,
            p->c + batch * g->m * g->n, n);
    return true;
}
static BENCH_FN(runs_cblas, run_cblas, NULL);
#endif

/* ---- operands ---- */

static float *values_create(const struct gemm_case *p, char operand)
{
    uint64_t count = gemm_case_elements(p, operand);
    float *values = aligned_alloc(64, (count * sizeof(float) + 127) / 64 * 64);

    for (uint64_t i = 0; values != NULL && i < count; i++)
        values[i] = operand == 'c' ? 0 : gemm_case_value(p, operand, i);
    return values;
}

static enum tandem_status buffers_open(struct gemm_case *p)
{
    static const char operands[OPERANDS] = {'a', 'b', '+', 'c'};
    const float *values[OPERANDS] = {p->a, p->b, p->bias_values, NULL};
    struct device_session *session = &p->bench->session;
    enum tandem_status status = TANDEM_OK;

    for (int i = 0; i < OPERANDS && status == TANDEM_OK; i++) {
        uint64_t count = gemm_case_elements(p, operands[i]);

        status = session->backend->alloc(
            session->device, TANDEM_BYTES(count * TANDEM_DTYPE_BYTES(p->dtype)),
            &p->buffers[i]);
        if (status == TANDEM_OK && values[i] != NULL)
            status = operand_upload(p, p->buffers[i], values[i], count);
    }
    return status;
}

static void gemm_fill(struct gemm_case *p, struct tandem_gemm *g)
{
    bool ta = (g->flags & TANDEM_GEMM_TRANSPOSE_A) != 0;
    bool tb = (g->flags & TANDEM_GEMM_TRANSPOSE_B) != 0;

    g->a =
        (struct tandem_matrix){p->buffers[A], 0, ta ? g->m : g->k, g->m * g->k};
    g->b =
        (struct tandem_matrix){p->buffers[B], 0, tb ? g->k : g->n, g->k * g->n};
    g->c = (struct tandem_matrix){p->buffers[C], 0, g->n, g->m * g->n};
    g->bias = NULL;
    g->bias_kind = TANDEM_BIAS_NONE;
    g->activation = TANDEM_OP_INVALID;
    p->plain = *g;
    if (p->bias) {
        g->bias = p->buffers[BIAS];
        g->bias_kind = TANDEM_BIAS_PER_COLUMN;
    }
    if (p->relu)
        g->activation = TANDEM_OP_RELU;
}

static void gemm_read_row(struct gemm_case *p, const struct row *row)
{
    static const struct {
        const char *word;
        enum inputs inputs;
    } inputs[] = {{"positive", POSITIVE},
                  {"rowscale", ROWSCALE},
                  {"columnscale", COLUMNSCALE},
                  {"depthscale", DEPTHSCALE},
                  {"extreme", EXTREME}};
    static const struct {
        const char *word;
        uint32_t flag;
    } flags[] = {{"ta", TANDEM_GEMM_TRANSPOSE_A},
                 {"tb", TANDEM_GEMM_TRANSPOSE_B},
                 {"tf32", TANDEM_GEMM_ALLOW_TF32},
                 {"normwise", TANDEM_GEMM_ALLOW_NORMWISE_ERROR}};
    const int64_t *mnk = row->shape + (row->rank == 4 ? 1 : 0);

    p->inputs = UNIFORM;
    for (size_t i = 0; i < COUNT(inputs); i++)
        if (row_has(row, inputs[i].word))
            p->inputs = inputs[i].inputs;
    p->bias = row_has(row, "bias");
    p->relu = row_has(row, "relu");
    p->packed = row_has(row, "packed");
    p->dtype = row_has(row, "f16")    ? TANDEM_F16
               : row_has(row, "bf16") ? TANDEM_BF16
                                      : TANDEM_F32;
    p->gemm = (struct tandem_gemm){
        .struct_size = sizeof p->gemm,
        .dtype = p->dtype,
        .m = mnk[0],
        .n = mnk[1],
        .k = mnk[2],
        .batch = row->rank == 4 ? row->shape[0] : 1,
        .alpha = 1,
    };
    for (size_t i = 0; i < COUNT(flags); i++)
        if (row_has(row, flags[i].word))
            p->gemm.flags |= flags[i].flag;
}

static void gemm_case_close(struct gemm_case *p)
{
    struct device_session *session = &p->bench->session;

    device_session_synchronize(session);
#ifdef BENCH_OPENCL
    clblast_destroy(p->clblast);
#endif
    for (int i = 0; i < 2; i++)
        session->backend->prepared_release(p->after[i]);
    for (int i = 0; i < OPERANDS; i++)
        session->backend->free(p->buffers[i]);
    free(p->a);
    free(p->b);
    free(p->bias_values);
    free(p->c);
}

static bool gemm_case_open(struct gemm_case *p, struct bench *bench)
{
    const struct tandem_backend *backend = bench->session.backend;
    struct tandem_gemm normalized;
    struct gemm_operator call;
    enum tandem_status status;

    memset(p, 0, sizeof *p);
    p->bench = bench;
    gemm_read_row(p, bench->row);
    gemm_fill(p, &p->gemm);
    gemm_args_normalize(&normalized, &p->gemm);
    gemm_operator_make(&call, &normalized);
    status = backend->prepare(
        bench->session.device, &call.op, call.pointers, call.input_count,
        &call.pointers[call.input_count], 1, TANDEM_PREPARE_QUERY, NULL, NULL);
    if (status != TANDEM_OK) {
        bench_unavailable(bench, "%s", backend->last_error());
        return false;
    }
    p->a = values_create(p, 'a');
    p->b = values_create(p, 'b');
    p->bias_values = values_create(p, '+');
    status = p->a == NULL || p->b == NULL || p->bias_values == NULL
                 ? TANDEM_OUT_OF_MEMORY
                 : buffers_open(p);
    if (status == TANDEM_OK) {
        gemm_fill(p, &p->gemm);
        samples_fill(p, &p->samples);
        return true;
    }
    bench_unavailable(bench, "no memory for it: %s", backend->last_error());
    gemm_case_close(p);
    return false;
}

/* ---- errors ---- */

/* Adds the errors of an implementation's last result to the row.  Returns the
 * componentwise error, or a negative value on failure. */
static double add_error(struct gemm_case *p, struct comparison *comparison,
                        const char *name, bool theirs)
{
    size_t n = (size_t)p->gemm.n;
    float *rows = malloc(SAMPLE_SIDE * n * sizeof *rows);
    double componentwise = -1, max_relative;
    bool ok = rows != NULL;

    for (uint32_t i = 0; i < p->samples.row_count && ok; i++) {
        float *row = rows + i * n;

        if (!theirs)
            ok = operand_row(p, p->buffers[C], p->samples.rows[i], row);
        else if (p->c != NULL)
            memcpy(row, p->c + (size_t)p->samples.rows[i] * n, n * sizeof *row);
#ifdef BENCH_OPENCL
        else
            ok = clblast_read(p->clblast, p->samples.rows[i], row);
#endif
    }
    if (ok) {
        gemm_reference_errors(&p->samples, rows, p->gemm.n, &componentwise,
                              &max_relative);
        json_object_set_new(comparison->error, name,
                            json_pack("{s:f, s:f}", "componentwise",
                                      componentwise, "max_relative",
                                      max_relative));
    }
    free(rows);
    return componentwise;
}

/* Returns the largest error allowed: for f32 the bound in the operator table,
 * for reduced precision the bound of its rounding, and for NORMWISE_ERROR the
 * bound of backend.h.  The latter uses that |a||b| is about k / 4 times the
 * operands' scales, and that depthscale has elements up to 2^10. */
static double error_limit(const struct gemm_case *p)
{
    double k = (double)p->gemm.k;
    double shared = 0x1p-21 + (p->inputs == DEPTHSCALE ? 0x1p-15 : 0x1p-35);

    if (p->dtype == TANDEM_BF16)
        return 0x1p-7;
    if (p->dtype == TANDEM_F16 || p->gemm.flags & TANDEM_GEMM_ALLOW_TF32)
        return 0x1p-9;
    return (8 + 2 * sqrt(k)) * 0x1p-23 +
           (p->gemm.flags & TANDEM_GEMM_ALLOW_NORMWISE_ERROR ? shared : 0);
}

static bool gemm_case_is_correct(struct gemm_case *p,
                                 struct comparison *comparison)
{
    double error =
        runs_whole(p, 1) < 0 ? -1 : add_error(p, comparison, "Tandem", false);

    if (error < 0)
        bench_fail(p->bench, "%s", p->bench->session.backend->last_error());
    else if (error > error_limit(p))
        bench_fail(p->bench,
                   "wrong: an entry is off by %g of the sum of its terms' "
                   "magnitudes",
                   error);
    return error >= 0 && error <= error_limit(p);
}

/* ---- measuring ---- */

/* Adds the library that users would call, if it can compute the row. */
static void add_library(struct gemm_case *p, struct comparison *comparison)
{
    const char *name = NULL;
    bench_fn run = NULL;
    void *argument = p;

    if (p->dtype != TANDEM_F32 ||
        p->gemm.flags & TANDEM_GEMM_ALLOW_NORMWISE_ERROR)
        return;
#ifdef BENCH_OPENCL
    if (bench_on(p->bench, "opencl")) {
        p->clblast = clblast_create(p);
        name = p->clblast == NULL ? NULL : "CLBlast";
        argument = p->clblast;
        run = clblast_runs;
    }
#endif
#ifdef BENCH_CBLAS
    if (bench_on(p->bench, "cpu")) {
        p->c = values_create(p, 'c');
        name = p->c == NULL ? NULL : "CBLAS";
        run = runs_cblas;
    }
#endif
    if (name == NULL)
        return;
    comparison_add(comparison, name, run, argument);
    comparison->upper_bound = name;
    if (!p->bias && run(argument, 1) >= 0)
        add_error(p, comparison, name, true);
}

static void row_measure(struct bench *bench)
{
    struct gemm_case p;
    struct comparison comparison = {.unit = "GFLOP/s"};

    if (!gemm_case_open(&p, bench))
        return;
    comparison.error = json_object();
    comparison.work_amount = 2.0 * (double)p.gemm.batch * (double)p.gemm.m *
                             (double)p.gemm.n * (double)p.gemm.k;
    comparison_add(&comparison, "Tandem", runs_whole, &p);
    if (gemm_case_is_correct(&p, &comparison)) {
        if (p.bias) {
            comparison_add(&comparison, "the product alone", runs_plain, &p);
            comparison_add(&comparison, "three launches", runs_three, &p);
        }
        add_library(&p, &comparison);
        bench_compare(bench, &comparison);
    } else {
        json_decref(comparison.error);
    }
    gemm_case_close(&p);
}

/* Measures in a second context, in which the device may keep packed operands.
 */
static void packed_weights_measure(struct bench *bench)
{
    const struct tandem_context_options options = {.struct_size =
                                                       sizeof(options)};
    struct device_session aside = bench->session;
    struct tandem_context *context;

    if (!bench_on(bench, "opencl")) {
        bench_unavailable(bench, "nothing is packed here");
        return;
    }
    if (tandem_context_create(&options, &context) != TANDEM_OK) {
        bench_fail(bench, "%s", tandem_last_error());
        return;
    }
    if (device_session_open(&bench->session, context, bench->device) ==
        TANDEM_OK)
        row_measure(bench);
    else
        bench_fail(bench, "%s", tandem_last_error());
    device_session_close(&bench->session);
    bench->session = aside;
    tandem_context_destroy(context);
}

void gemm_run(struct bench *bench)
{
    if (row_has(bench->row, "packed"))
        packed_weights_measure(bench);
    else
        row_measure(bench);
}
