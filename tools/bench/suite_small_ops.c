/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Suite "small-ops": operators through the CPU plugin compared with a C loop.
 * Additions also run through the library, which chooses the device.
 */
#include <config.h>

#include "library_run.h"

#include <string.h>

#define MAX_ELEMENTS 65536

static _Alignas(64) float x[MAX_ELEMENTS], y[MAX_ELEMENTS], z[MAX_ELEMENTS];

/* Compiles the loops with vectorisation, as users would. */
#if defined(__GNUC__) && !defined(__clang__)
#define OPTIMIZED __attribute__((noinline, optimize("O3")))
#else
#define OPTIMIZED __attribute__((noinline))
#endif

typedef void (*loop_fn)(const void *a, const void *b, void *c, int64_t n);

#ifdef __x86_64__
#define AVX2 __attribute__((target("avx2")))
#define HAS_AVX2 __builtin_cpu_supports("avx2")
#else
#define AVX2
#define HAS_AVX2 false
#endif

#define VARIANT(name, type, out_type, statement)                               \
    static void name(const type *restrict a, const type *restrict b,           \
                     out_type *restrict c, int64_t n)                          \
    {                                                                          \
        (void)b;                                                               \
        statement;                                                             \
    }
#define LOOP(name, type, out_type, statement)                                  \
    OPTIMIZED VARIANT(name##_plain, type, out_type, statement)                 \
    OPTIMIZED AVX2 VARIANT(                                                    \
        name##_avx2, type, out_type,                                           \
        statement) static void loop_##name(const void *a, const void *b,       \
                                           void *c, int64_t n)                 \
    {                                                                          \
        if (HAS_AVX2)                                                          \
            name##_avx2(a, b, c, n);                                           \
        else                                                                   \
            name##_plain(a, b, c, n);                                          \
    }
#define EACH(expression)                                                       \
    for (int64_t i = 0; i < n; i++)                                            \
    c[i] = (expression)

LOOP(add, float, float, EACH(a[i] + b[i]))
LOOP(equal, float, uint8_t, EACH(a[i] == b[i]))
LOOP(and, uint8_t, uint8_t, EACH((a[i] != 0) & (b[i] != 0)))
LOOP(cast, float, int32_t, EACH((int32_t)a[i]))

/* Index of the maximum of each column of a square matrix. */
LOOP(argmax, float, int64_t, {
    float best[256];
    for (int64_t j = 0; j < n; j++) {
        best[j] = a[j];
        c[j] = 0;
    }
    for (int64_t i = 1; i < n; i++)
        for (int64_t j = 0; j < n; j++)
            if (a[i * n + j] > best[j]) {
                best[j] = a[i * n + j];
                c[j] = i;
            }
})

static const struct {
    const char *op, *shape, *detail;
    loop_fn loop;
} cases[] = {
    {"add", "16", "", loop_add},
    {"add", "1024", "", loop_add},
    {"add", "65536", "", loop_add},
    {"equal", "65536", "", loop_equal},
    {"and", "65536", "", loop_and},
    {"cast", "65536", "", loop_cast},
    {"argmax", "256x256", "axis=0", loop_argmax},
};

struct reference_loop {
    loop_fn loop;
    int64_t elements;
};

static bool loop_run(void *argument)
{
    const struct reference_loop *reference = argument;

    reference->loop(x, y, z, reference->elements);
    /* Keeps the compiler from removing the loop. */
    __asm__ volatile("" : : "r"(z) : "memory");
    return true;
}
static BENCH_FN(loop_runs, loop_run, NULL);

void small_ops_list(struct list *list)
{
    for (size_t i = 0; i < COUNT(cases); i++) {
        list_add(list, cases[i].op, cases[i].shape, cases[i].detail, "stream");
        if (cases[i].loop == loop_add)
            list_add(list, cases[i].op, cases[i].shape, cases[i].detail,
                     "library");
    }
}

static bool download(struct device_session *session,
                     const struct tandem_tensor_desc *from, void *to)
{
    return session->backend->download(session->stream, from->buffer, 0, to,
                                      (uint64_t)desc_bytes(from), 0,
                                      TANDEM_TIMEOUT_INFINITE) == TANDEM_OK;
}

/* Compares the operator's result with that of the loop on the same inputs. */
static bool loop_check(struct bench *bench, struct resident_op *work,
                       const struct reference_loop *reference)
{
    static _Alignas(64) float inputs[2][MAX_ELEMENTS], result[MAX_ELEMENTS];
    const struct op_case *c = &work->c;
    struct device_session *session = work->session;
    uint64_t ns;
    bool ok = true;

    for (uint32_t i = 0; i < c->inputs; i++)
        ok = ok && download(session, &c->in[i], inputs[i]);
    if (!ok || resident_op_stream(work, 1, &ns) != TANDEM_OK ||
        !download(session, &c->out[0], result)) {
        bench_fail(bench, "%s", session->backend->last_error());
        return false;
    }
    reference->loop(inputs[0], inputs[1], z, reference->elements);
    if (memcmp(result, z, (size_t)desc_bytes(&c->out[0])) == 0)
        return true;
    bench_fail(bench, "wrong: the result is not that of a C loop");
    return false;
}

/* Measures the library without a named device, so its time contains the choice.
 */
static void compare_library(struct bench *bench, struct comparison *comparison)
{
    struct library_run library_run;

    if (library_run_open(&library_run, bench, bench->row, TANDEM_ANY_DEVICE) &&
        library_run_check(&library_run)) {
        comparison->implementations[0] = (struct implementation){
            "Tandem", library_run_resident, &library_run};
        bench_compare(bench, comparison);
    }
    library_run_close(&library_run);
}

void small_ops_run(struct bench *bench)
{
    struct comparison comparison = {
        .unit = "ns", .upper_bound = "C loop", .max_iterations = 20000};
    struct reference_loop reference = {.elements = bench->row->shape[0]};
    struct resident_op work;

    for (size_t i = 0; i < COUNT(cases); i++)
        if (strcmp(cases[i].op, bench->row->op) == 0)
            reference.loop = cases[i].loop;
    for (uint32_t i = 0; i < MAX_ELEMENTS; i++) {
        x[i] = seed_value(i);
        y[i] = seed_value(i + 1);
    }
    comparison_add(&comparison, "Tandem", resident_op_run, &work);
    comparison_add(&comparison, "C loop", loop_runs, &reference);
    if (strcmp(bench->row->mode, "library") == 0) {
        compare_library(bench, &comparison);
    } else if (bench_resident_op(bench, &work)) {
        if (loop_check(bench, &work, &reference))
            bench_compare(bench, &comparison);
        resident_op_destroy(&work);
    }
}
