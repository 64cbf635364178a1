/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Usage: attention-emulation DIRECTORY COMPILER OPTION...
 *
 * Plans attention for an NVIDIA GPU, compiles the kernels for the host CPU into
 * DIRECTORY, with tensor-core instructions and warp shuffles as functions, and
 * compares the results with a float64 reference.
 */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ptx_emulator.h"
#include "opencl/memory/buffer.h"
#include "host_compiled_kernel.h"

#define GROUP_LOG2 8u
/* Relative to 1 + a, where a is the largest magnitude of a score. */
#define TOLERANCE 0x1p-19

enum mask_kind { NO_MASK, FLOAT_MASK, BOOL_MASK };

static const struct attention_case {
    int64_t heads, key_heads, queries, keys, width, value_width;
    bool causal;
    int64_t past;
    enum mask_kind mask;
    double softcap;
    bool infinite; /* One key has an infinite element. */
} cases[] = {
    {1, 1, 70, 100, 64, 64, false, 0, NO_MASK, 0, false},
    {2, 1, 65, 140, 40, 48, true, 75, FLOAT_MASK, 0, false},
    {1, 1, 40, 70, 128, 100, true, -10, NO_MASK, 2, false},
    {2, 2, 17, 33, 100, 12, false, 0, BOOL_MASK, 0, false},
    {1, 1, 30, 130, 96, 72, true, 100, NO_MASK, 0, false},
    {1, 1, 66, 66, 32, 32, true, 0, NO_MASK, 0, true},
    {2, 1, 3, 300, 64, 64, true, 297, NO_MASK, 0, false},
    {4, 2, 1, 700, 128, 80, false, 0, FLOAT_MASK, 0, false},
};
#define CASES (sizeof(cases) / sizeof(cases[0]))

enum { Q, K, V, MASK, OUT, TENSORS };
static const uint32_t slots[TENSORS] = {
    SLOT_INPUT, SLOT_INPUT + 1, SLOT_INPUT + 2, SLOT_INPUT + 3, SLOT_OUTPUT};

struct run {
    const struct attention_case *of;
    float *data[TENSORS];
    struct tandem_tensor_desc tensors[TENSORS];
};

static const struct platform_device hardware = {.correct_divide = true,
                                                .nvidia = true,
                                                .tensor_cores = true,
                                                .info = {.compute_units = 132}};

static bool tensor_make(struct run *run, uint32_t i, int64_t heads,
                        int64_t rows, int64_t columns)
{
    size_t count = (size_t)(heads * rows * columns);
    struct tandem_tensor_desc *tensor = &run->tensors[i];
    run->data[i] = aligned_alloc(256, (count * 4 + 511) / 256 * 256);
    if (run->data[i] == NULL)
        return false;
    *tensor = (struct tandem_tensor_desc){
        slot_buffer(slots[i], MAX_SLOT_ALIGNMENT),
        0,
        TANDEM_F32,
        4,
        {1, heads, rows, columns},
        {heads * rows * columns, rows * columns, columns, 1}};
    for (size_t j = 0; j < count; j++)
        run->data[i][j] = i == OUT ? NAN : 2 * random_next();
    return true;
}

/* Every third entry masks a key. */
static void mask_fill(struct run *run)
{
    const struct attention_case *of = run->of;
    int64_t count = of->heads * of->queries * of->keys;
    unsigned char *bools = (unsigned char *)run->data[MASK];
    for (int64_t i = 0; i < count; i++) {
        bool visible = i % 3 != 1;
        if (of->mask == BOOL_MASK)
            bools[i] = visible;
        else
            run->data[MASK][i] = visible ? random_next() : -INFINITY;
    }
    if (of->mask == BOOL_MASK)
        run->tensors[MASK].dtype = TANDEM_BOOL;
}

static bool run_make(struct run *run, const struct attention_case *of)
{
    memset(run, 0, sizeof(*run));
    run->of = of;
    if (!tensor_make(run, Q, of->heads, of->queries, of->width) ||
        !tensor_make(run, K, of->key_heads, of->keys, of->width) ||
        !tensor_make(run, V, of->key_heads, of->keys, of->value_width) ||
        !tensor_make(run, MASK, of->heads, of->queries, of->keys) ||
        !tensor_make(run, OUT, of->heads, of->queries, of->value_width))
        return false;
    mask_fill(run);
    if (of->infinite)
        run->data[K][(of->keys - 1) * of->width + 3] = INFINITY;
    return true;
}

static void run_free(struct run *run)
{
    for (uint32_t i = 0; i < TENSORS; i++)
        free(run->data[i]);
}

static bool run_plan(struct launch_plan *plan, const struct run *run)
{
    const struct attention_case *of = run->of;
    const int64_t ints[] = {of->causal, of->past};
    const double floats[] = {0.25, of->softcap};
    const struct tandem_tensor_desc *inputs[] = {
        &run->tensors[Q], &run->tensors[K], &run->tensors[V],
        &run->tensors[MASK]};
    const struct tandem_tensor_desc *outputs[] = {&run->tensors[OUT]};
    const struct tandem_op op = {.struct_size = sizeof(op),
                                 .id = TANDEM_OP_ATTENTION,
                                 .ints = ints,
                                 .int_count = 2,
                                 .floats = floats,
                                 .float_count = 2};
    const struct op_request request = {.hardware = &hardware,
                                       .group_log2 = GROUP_LOG2,
                                       .op = &op,
                                       .inputs = inputs,
                                       .outputs = outputs,
                                       .input_count =
                                           of->mask != NO_MASK ? 4 : 3,
                                       .output_count = 1};
    return launch_plan_make(plan, &request) == TANDEM_OK;
}

/* ---- float64 reference ---- */

/* Sets the scores of a query, and returns the bound of their magnitudes. */
static double scores_fill(const struct run *run, int64_t head, int64_t query,
                          double *scores)
{
    const struct attention_case *of = run->of;
    int64_t key_head = head * of->key_heads / of->heads;
    const float *q = run->data[Q] + (head * of->queries + query) * of->width;
    double largest = 0;
    for (int64_t key = 0; key < of->keys; key++) {
        const float *k = run->data[K] + (key_head * of->keys + key) * of->width;
        int64_t at = (head * of->queries + query) * of->keys + key;
        bool visible = !of->causal || key <= query + of->past;
        double sum = 0, magnitude = 0;
        for (int64_t i = 0; i < of->width; i++) {
            sum += (double)q[i] * (double)k[i];
            magnitude += fabs((double)q[i] * (double)k[i]);
        }
        sum *= 0.25;
        if (of->softcap > 0)
            sum = of->softcap * tanh(sum / of->softcap);
        if (of->mask == FLOAT_MASK)
            sum += (double)run->data[MASK][at];
        if (of->mask == BOOL_MASK)
            visible = visible && ((unsigned char *)run->data[MASK])[at] != 0;
        scores[key] = visible ? sum : -INFINITY;
        largest = visible ? fmax(largest, 0.25 * magnitude + 1) : largest;
    }
    return largest;
}

static bool query_matches(const struct run *run, int64_t head, int64_t query,
                          double *scores)
{
    const struct attention_case *of = run->of;
    int64_t key_head = head * of->key_heads / of->heads;
    double magnitude = scores_fill(run, head, query, scores);
    double most = -INFINITY, total = 0;
    for (int64_t key = 0; key < of->keys; key++)
        most = fmax(most, scores[key]);
    for (int64_t key = 0; key < of->keys; key++) {
        scores[key] = most > -INFINITY ? exp(scores[key] - most) : 0;
        total += scores[key];
    }
    for (int64_t i = 0; i < of->value_width; i++) {
        double sum = 0, sizes = 0, scale = total > 0 ? 1 / total : 0;
        for (int64_t key = 0; key < of->keys; key++) {
            double v =
                (double)
                    run->data[V][(key_head * of->keys + key) * of->value_width +
                                 i];
            sum += scores[key] * scale * v;
            sizes += scores[key] * scale * fabs(v);
        }
        double got =
            (double)run
                ->data[OUT][(head * of->queries + query) * of->value_width + i];
        if (fabs(got - sum) <= TOLERANCE * (1 + magnitude) * sizes)
            continue;
        fprintf(stderr,
                "(%" PRId64 ", %" PRId64 ", %" PRId64 ") is %.9g, not %.9g\n",
                head, query, i, got, sum);
        return false;
    }
    return true;
}

/* Compares all queries, except the last one if it has an infinite key. */
static bool run_matches(const struct run *run)
{
    const struct attention_case *of = run->of;
    double *scores = malloc((size_t)of->keys * sizeof(*scores));
    bool right = scores != NULL;
    int64_t queries = of->queries - (of->infinite ? 1 : 0);
    for (int64_t i = 0; right && i < of->heads * queries; i++)
        right = query_matches(run, i / queries, i % queries, scores);
    free(scores);
    return right;
}

static bool case_run(uint32_t number)
{
    const struct attention_case *of = &cases[number];
    struct run run;
    struct launch_plan plan;
    void *memory[SLOT_COUNT];
    bool right = run_make(&run, of) && run_plan(&plan, &run);
    for (uint32_t i = 0; i < TENSORS; i++)
        memory[slots[i]] = run.data[i];
    right = right && plan_run(&plan, memory) && run_matches(&run);
    printf("%" PRId64 " heads, %" PRId64 " queries, %" PRId64
           " keys, widths %" PRId64 " and %" PRId64 ": %s\n",
           of->heads, of->queries, of->keys, of->width, of->value_width,
           right ? "right" : "WRONG");
    fflush(stdout);
    run_free(&run);
    return right;
}

int main(int argc, char **argv)
{
    return emulation_main(argc, argv, &hardware, CASES, case_run);
}
