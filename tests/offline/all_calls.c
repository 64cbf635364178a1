/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Generates calls of each operator of the table with all dtypes and several
 * shapes, layouts and attributes. All operators share the tables `samples` and
 * `attributes`, and the plugin's own argument check skips the calls that are
 * invalid for an operator. A new operator may need new rows: the test fails if
 * none of its calls is valid.
 *
 * Four classes need code of their own. rotary_shape gives the inputs of a
 * rotary embedding their different shapes. conv_try plans a convolution with
 * each GEMM kernel, because the plan depends on the kernel that the cost model
 * selects. products_try does the same for gemm, whose operands are in a struct.
 * attention_try uses lengths for which attention has separate kernels.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/argument_check.h"
#include "common/last_error.h"
#include "common/operator_table.h"
#include "common/op_class.h"
#include "opencl/plan/gemm_selector.h"
#include "opencl/plan/operand_packing.h"
#include "opencl/plan/plan.h"
#include "opencl/device/device_enumeration.h"
#include "opencl/program/trial_launch.h"
#include "variants.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))
#define MAX_KEYS 4096u
#define INDEX_SIZE (4 * MAX_KEYS)
#define MAX_DTYPES 32u
#define HUGE_EXTENT ((int64_t)1 << 33) /* Requires 64-bit indices. */

static const struct sample {
    uint32_t rank;
    int64_t shape[4];
} samples[] = {
    {1, {64}},          {1, {1 << 22}}, /* One output element with many inputs,
                                           split over work-groups. */
    {2, {64, 64}},      {3, {4, 64, 64}},      {3, {16, 16, 8}},
    {4, {4, 8, 8, 8}},  {3, {8, 8, 8}},        {2, {64, 8}},
    {3, {64, 16, 16}},  {3, {4, 1, 8}}, /* A group of one channel. */
    {1, {HUGE_EXTENT}}, {2, {HUGE_EXTENT, 8}}, {3, {HUGE_EXTENT, 16, 16}}};

/* Some of the first samples are valid for every operator. */
#define SIMPLE_SAMPLES 6

static const int64_t attributes[][TANDEM_MAX_ATTRIBUTES] = {
    {0, 0, 0},
    {1, 0, 0},
    {1, 1, 0},
    {1, 0, 2},
    {2, 1, 0},
    {2, 0, 0},
    {1, 0, 0, 0, 1},
    {2, 0, 0, 0, 1},
    {1, 0, 0, 1, 0},
    {0, 1, 1, 1, 0},
    {0, 0, 1, 1, 1},
    {1, 0, 0, 1, 1},
    {1, TANDEM_OP_RELU, 0, 1, 1}};

enum arrangement { CONTIGUOUS, UNALIGNED, PADDED, REVERSED, ARRANGEMENTS };

/*
 * The shapes of the inputs after the first. With PAIRS or SINGLES, input 1 has
 * vectors of 2 or 1 elements, which stand for as many axes of input 0, and
 * input 2 has the other axes.
 */
enum others {
    SAME,
    LEADING_AXIS,
    SECOND_AXIS,
    TWO_ELEMENTS,
    SINGLES,
    PAIRS,
    OTHERS
};

/* Optional float attributes, one per axis: none, 0.5, or 0.5 and then a 0. */
enum axis_floats { NO_FLOATS, HALVES, OUTER_HALVES, AXIS_FLOATS };

struct search {
    struct keys *keys;
    struct op_request request;
    struct tandem_op op;
    double floats[8];
    enum axis_floats axis_floats;
    struct tandem_tensor_desc tensors[TANDEM_MAX_OPERANDS];
    struct tandem_tensor_desc results[TANDEM_MAX_OPERANDS];
    const struct tandem_tensor_desc *inputs[TANDEM_MAX_OPERANDS];
    const struct tandem_tensor_desc *outputs[TANDEM_MAX_OPERANDS];
    const struct operator_info *row;
    uint32_t input_count;
    int64_t length; /* of the output of an operator without inputs */
    bool valid;     /* Some call of the row was valid. */
};

/* ---- keys ---- */

/* Returns the index of the key, or keys->count. Sets *slot to where keys->index
 * has the index, or should have it. */
static uint32_t key_find(const struct keys *keys, const struct kernel_key *key,
                         uint32_t *slot)
{
    *slot = (uint32_t)kernel_key_hash(key) % INDEX_SIZE;
    while (keys->index[*slot] != 0) {
        uint32_t at = keys->index[*slot] - 1u;

        if (kernel_key_equal(&keys->key[at], key))
            return at;
        *slot = (*slot + 1) % INDEX_SIZE;
    }
    return keys->count;
}

static void plan_add(struct keys *keys, const struct launch_plan *plan)
{
    for (uint32_t i = 0; i < plan->step_count; i++) {
        uint32_t slot, at = key_find(keys, &plan->step[i].key, &slot);

        if (plan->step[i].key.kernel == NULL || at == MAX_KEYS)
            continue;
        if (at == keys->count) {
            keys->key[keys->count++] = plan->step[i].key;
            keys->index[slot] = (uint16_t)keys->count;
        }
        if (keys->trial[at] == NULL)
            keys->trial[at] = trial_launch_create(plan, i);
    }
}

/* Lets keys with 64-bit indices, whose calls are too large for a trial, share
 * the trial of the key with 32-bit indices. */
static void trials_share(struct keys *keys)
{
    for (uint32_t i = 0; i < keys->count; i++) {
        struct kernel_key narrow = keys->key[i];
        uint32_t slot;

        narrow.index_64bit = 0;
        uint32_t at = key_find(keys, &narrow, &slot);
        if (keys->trial[i] == NULL && at < keys->count)
            keys->trial[i] = keys->trial[at];
    }
}

void keys_free(struct keys *keys)
{
    for (uint32_t i = 0; i < keys->count; i++) {
        for (uint32_t j = i + 1; j < keys->count; j++)
            if (keys->trial[j] == keys->trial[i])
                keys->trial[j] = NULL;
        free(keys->trial[i]);
    }
    free(keys->trial);
    free(keys->key);
    free(keys->index);
}

/* ---- one call ---- */

/*
 * Returns false if the number of elements overflows, for example because
 * gather multiplies it by the number of indices.
 */
static bool tensor_arrange(struct tandem_tensor_desc *tensor,
                           enum arrangement how)
{
    int64_t step = how == PADDED ? 2 : 1;
    tensor->byte_offset =
        how == UNALIGNED ? TANDEM_DTYPE_BYTES(tensor->dtype) : 0;
    for (uint32_t i = 0; i < tensor->rank; i++) {
        uint32_t axis = how == REVERSED ? i : tensor->rank - 1 - i;
        tensor->strides[axis] = step;
        if (__builtin_mul_overflow(step, tensor->shape[axis], &step))
            return false;
    }
    return true;
}

/* Shapes an input as vectors or, if it is not input 1, without axis 1. */
static void tensor_index(struct tandem_tensor_desc *tensor, uint32_t input,
                         int64_t components)
{
    if (input == 1) {
        tensor->rank = 2;
        tensor->shape[1] = components;
    } else if (components == 2 && tensor->rank > 1) {
        tensor->rank--;
        tensor->shape[1] = tensor->shape[2];
    }
}

/* Shapes the inputs of a rotary embedding of x, which gets the axes of the
 * sample and, if necessary, one head. */
static void rotary_shape(struct search *search)
{
    struct tandem_tensor_desc *x = &search->tensors[0];
    const bool indexed = search->input_count > 3;
    if (x->rank == 3) {
        x->shape[3] = x->shape[2];
        x->shape[2] = x->shape[1];
        x->shape[1] = 1;
        x->rank = 4;
    }
    for (uint32_t i = 1; i < search->input_count && x->rank == 4; i++) {
        struct tandem_tensor_desc *tensor = &search->tensors[i];
        tensor->rank = indexed ? 2 : 3;
        tensor->shape[0] = x->shape[0];
        tensor->shape[1] = x->shape[2];
        tensor->shape[indexed && i == 3 ? 2 : tensor->rank - 1] =
            x->shape[3] / 2;
    }
}

static void inputs_fill(struct search *search, const struct sample *sample,
                        enum others others, enum arrangement how)
{
    search->length = sample->shape[0];
    for (uint32_t i = 0; i < search->input_count; i++) {
        struct tandem_tensor_desc *tensor = &search->tensors[i];
        bool vector = others >= LEADING_AXIS && others <= TWO_ELEMENTS;
        tensor->rank = i > 0 && vector ? 1 : sample->rank;
        memcpy(tensor->shape, sample->shape, sizeof(sample->shape));
        if (i > 0 && others == TWO_ELEMENTS)
            tensor->shape[0] = 2;
        if (i > 0 && others == SECOND_AXIS)
            tensor->shape[0] = sample->shape[1];
        if (i > 0 && others >= SINGLES)
            tensor_index(tensor, i, others == PAIRS ? 2 : 1);
    }
    if (search->row->op_class == TANDEM_CLASS_ROTARY_EMBEDDING)
        rotary_shape(search);
    for (uint32_t i = 0; i < search->input_count; i++)
        tensor_arrange(&search->tensors[i], how);
}

/* Plans a convolution as GEMM with each kernel: with gathered patches if the
 * kernel can read them, otherwise with stored patches. */
static void conv_try(struct search *search)
{
    struct op_request request = search->request;
    struct gemm_selector selector;
    struct launch_plan plan;

    gemm_selector_init(&selector, request.hardware);
    gemm_selector_enable_sm90a(&selector);
    selector.forced = true;
    request.gemm_selector = &selector;
    for (uint32_t i = 0; i < GEMM_KERNEL_COUNT; i++) {
        selector.forced_selection = (struct gemm_selection){
            .kernel = (enum gemm_kernel_id)i, .split = NO_SPLIT};
        if (launch_plan_make(&plan, &request) == TANDEM_OK)
            plan_add(search->keys, &plan);
    }
}

/* Returns the maximum number of integer attributes of the call. */
static uint32_t attribute_limit(const struct search *search)
{
    const struct op_class *class = op_class_get(search->row->op_class);
    const struct op_call call = {.info = search->row,
                                 .op = &search->op,
                                 .inputs = search->inputs,
                                 .outputs = search->outputs,
                                 .input_count = search->input_count};
    uint32_t ints = search->row->ints, floats = search->row->floats;
    if (class->lists != NULL)
        class->lists(&call, &ints, &floats);
    return ints < COUNT(attributes[0]) ? ints : COUNT(attributes[0]);
}

/* Plans the call. Inputs whose bits are set are scalars. */
static void call_try(struct search *search, uint32_t scalars)
{
    struct launch_plan plan;
    struct op_request *request = &search->request;
    const struct operator_info *row = search->row;
    request->input_count = search->input_count;
    request->output_count = row->outputs;
    for (uint32_t i = 0; i < search->input_count; i++)
        search->inputs[i] = scalars >> i & 1u ? NULL : &search->tensors[i];
    search->op.float_count =
        row->floats + (uint32_t)__builtin_popcount(scalars);
    search->op.int_count = attribute_limit(search);
    if (search->axis_floats != NO_FLOATS) {
        uint32_t last = row->floats + search->tensors[0].rank - 1;
        search->op.float_count = last + 1;
        search->floats[last] = search->axis_floats == HALVES ? 0.5 : 0;
    }
    for (uint32_t i = 0; i < row->outputs; i++) {
        search->results[i].rank = 1;
        search->results[i].shape[0] = search->length;
        tensor_arrange(&search->results[i], CONTIGUOUS);
        if (row->inputs == 0) /* The output has any length. */
            continue;
        if (infer_output(&search->op, search->inputs, search->input_count, i,
                         &search->results[i]) != TANDEM_OK ||
            !tensor_arrange(&search->results[i], CONTIGUOUS))
            return;
    }
    if (check_op(&search->op, search->inputs, search->input_count,
                 search->outputs, row->outputs, NULL, NULL) != TANDEM_OK)
        return;
    search->valid = true;
    for (int meet = 0; meet < 2; meet++) {
        request->has_device_scope_visibility = meet != 0;
        if (launch_plan_make(&plan, request) == TANDEM_OK)
            plan_add(search->keys, &plan);
    }
    if (row->op_class == TANDEM_CLASS_CONV)
        conv_try(search);
}

/* ---- all calls of an operator ---- */

static uint32_t scalar_choices(const struct operator_info *row)
{
    bool takes = op_class_get(row->op_class)->scalars && row->inputs > 1;
    return takes ? 1u << row->inputs : 1;
}

static void layouts_try(struct search *search)
{
    for (size_t i = 0; i < COUNT(samples) * OTHERS * ARRANGEMENTS; i++) {
        size_t sample = i / (OTHERS * ARRANGEMENTS);
        inputs_fill(search, &samples[sample],
                    (enum others)(i / ARRANGEMENTS % OTHERS),
                    (enum arrangement)(i % ARRANGEMENTS));
        for (uint32_t scalars = 0; scalars < scalar_choices(search->row);
             scalars++)
            call_try(search, scalars);
    }
}

static void axis_floats_try(struct search *search)
{
    for (int i = HALVES; i < AXIS_FLOATS; i++) {
        search->axis_floats = (enum axis_floats)i;
        layouts_try(search);
    }
    search->axis_floats = NO_FLOATS;
    for (size_t i = 0; i < COUNT(search->floats); i++)
        search->floats[i] = 0.5;
}

static void attributes_try(struct search *search)
{
    for (size_t i = 0; i < COUNT(attributes); i++) {
        search->op.ints = attributes[i];
        search->op.int_count = COUNT(attributes[i]);
        layouts_try(search);
        if (search->row->floats == 0)
            continue;
        search->floats[0] = 1e9; /* A large scale of a gradient. */
        layouts_try(search);
        search->floats[0] = 0.5;
        axis_floats_try(search);
    }
}

static uint32_t dtypes_list(uint32_t *out)
{
    uint32_t count = 0;
    for (uint32_t dtype = 0; dtype < 1u << 16 && count < MAX_DTYPES; dtype++)
        if (dtype_bytes(dtype) != 0)
            out[count++] = dtype;
    return count;
}

/*
 * Returns true if the simplest valid call accepts these dtypes. Most
 * combinations are rejected here.
 */
static bool dtypes_valid(struct search *search)
{
    const struct op_call call = {.info = search->row,
                                 .op = &search->op,
                                 .inputs = search->inputs,
                                 .input_count = search->input_count};
    search->valid = false;
    for (uint32_t i = 0; i < search->input_count; i++)
        search->inputs[i] = &search->tensors[i];
    if (op_check_dtypes(&call) != TANDEM_OK)
        return false;
    const size_t layouts = OTHERS * SIMPLE_SAMPLES;
    for (size_t i = 0; !search->valid && i < COUNT(attributes) * layouts; i++) {
        search->op.ints = attributes[i / layouts];
        search->op.int_count = COUNT(attributes[0]);
        inputs_fill(search, &samples[i % SIMPLE_SAMPLES],
                    (enum others)(i / SIMPLE_SAMPLES % OTHERS), CONTIGUOUS);
        call_try(search, 0);
    }
    return search->valid;
}

/*
 * Sets slots[j] to the number of the dtype of input j. Inputs have equal dtypes
 * if there are more than three and their letters in the dtype rule are equal.
 * Returns the number of dtypes.
 */
static uint32_t dtype_slots(const struct search *search, uint32_t *slots)
{
    const char *rule = op_class_get(search->row->op_class)->input_dtypes;
    const size_t letters = rule != NULL ? strlen(rule) : 0;
    uint32_t count = 0;
    for (uint32_t j = 0; j < search->input_count; j++) {
        const bool equal = j > 0 && search->input_count > 3 &&
                           (j >= letters || rule[j] == rule[j - 1]);
        if (!equal)
            count++;
        slots[j] = count - 1;
    }
    return count;
}

/* Returns false for operators like cast, whose caller selects the dtype. */
static bool output_dtype_is_inferred(const struct operator_info *row)
{
    const char letter = *op_class_get(row->op_class)->output_dtypes;
    return row->inputs > 0 && letter != 'c' && letter != 'n';
}

static void operator_try(struct search *search)
{
    uint32_t dtypes[MAX_DTYPES], count = dtypes_list(dtypes);
    uint32_t slots[TANDEM_MAX_OPERANDS];
    uint32_t slot_count = dtype_slots(search, slots);
    const uint32_t outputs = output_dtype_is_inferred(search->row) ? 1 : count;
    uint64_t combinations = outputs;
    bool any = false;
    for (uint32_t i = 0; i < slot_count; i++)
        combinations *= count;
    for (uint64_t i = 0; i < combinations; i++) {
        uint64_t rest = i / outputs;
        for (uint32_t j = 0; j < search->input_count; j++) {
            if (j > 0 && slots[j] != slots[j - 1])
                rest /= count;
            search->tensors[j].dtype = dtypes[rest % count];
        }
        for (uint32_t j = 0; j < search->row->outputs; j++)
            search->results[j].dtype = dtypes[i % outputs];
        if (dtypes_valid(search)) {
            attributes_try(search);
            any = true;
        }
    }
    search->valid = any;
}

/*
 * Plans a GEMM with each kernel, without a split and with few and many splits.
 */
static void gemm_kernels_try(struct search *search,
                             const struct tandem_gemm *gemm,
                             enum gemm_kernel_id first, enum gemm_kernel_id end)
{
    static const struct split_k split_choices[] = {
        {1, 0}, {2, 1}, {2, ALL_GEMM_TILES}, {64, ALL_GEMM_TILES}};
    struct launch_plan plan;
    for (uint32_t i = 0; i < (end - first) * COUNT(split_choices); i++) {
        enum gemm_kernel_id tile =
            (enum gemm_kernel_id)(first + i / COUNT(split_choices));
        if (!gemm_fits_32bit_index(gemm) || !gemm_kernel_supports(gemm, tile))
            continue;
        plan_gemm(&plan, gemm, tile, split_choices[i % COUNT(split_choices)],
                  NULL, search->request.group_log2);
        plan_add(search->keys, &plan);
    }
}

/*
 * Adds each activation of a GEMM, also with the kernel that computes the GEMM
 * in one step.
 */
static void activations_try(struct search *search, struct tandem_gemm *gemm)
{
    struct launch_plan plan;
    for (uint32_t i = 0; i < 2 * TANDEM_OP_ID_END; i++) {
        gemm->activation = i / 2;
        gemm->activation_parameter = i % 2;
        if (check_gemm(gemm, NULL, NULL) != TANDEM_OK)
            continue;
        search->valid = true;
        launch_plan_clear(&plan);
        plan_epilogue(&plan, gemm, search->request.group_log2, 1.0f);
        plan_add(search->keys, &plan);
        gemm_kernels_try(search, gemm, 0, GEMV_4);
    }
}

static int64_t max_i64(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

/* Sets the leading dimensions of a and b, with gaps after each line. A single
 * vector has gaps between its elements. */
static void lds_set(struct tandem_gemm *gemm, int64_t a_gap, int64_t b_gap)
{
    bool transposes_a = (gemm->flags & TANDEM_GEMM_TRANSPOSE_A) != 0;
    bool transposes_b = (gemm->flags & TANDEM_GEMM_TRANSPOSE_B) != 0;

    gemm->a.ld = max_i64(transposes_a ? gemm->m : gemm->k, 4) + a_gap;
    gemm->b.ld = max_i64(transposes_b ? gemm->k : gemm->n, 4) + b_gap;
}

/* Few rows or columns, in each layout. */
static void gemv_try(struct search *search, struct tandem_gemm *gemm)
{
    static const struct {
        int64_t m;
        enum gemm_kernel_id tile;
    } cases[] = {{1, GEMV_1},
                 {4, GEMV_4},
                 {6, GEMV_8},
                 {16, GEMV_16},
                 {1, GEMV_1_MN_MAJOR}};
    for (uint32_t i = 0; i < 8 * COUNT(cases); i++) {
        gemm->m = cases[i / 8].m;
        gemm->n = 64;
        gemm->flags = (i & 1u ? TANDEM_GEMM_TRANSPOSE_A : 0) |
                      (i & 2u ? TANDEM_GEMM_TRANSPOSE_B : 0);
        lds_set(gemm, i & 4u ? 1 : 0, i & 4u ? 1 : 0);
        gemm->c.ld = 64;
        enum gemm_kernel_id tile = cases[i / 8].tile;
        gemm_kernels_try(search, gemm, tile, (enum gemm_kernel_id)(tile + 1));
    }
}

/*
 * 16-bit dtypes: each kernel with each dtype as operand and as result, in two
 * layouts.
 */
static void gemm_16bit_try(struct search *search, struct tandem_gemm *gemm)
{
    static const uint32_t dtypes[][2] = {{TANDEM_F16, TANDEM_F16},
                                         {TANDEM_BF16, TANDEM_BF16},
                                         {TANDEM_F16, TANDEM_F32},
                                         {TANDEM_F32, TANDEM_BF16}};
    struct launch_plan plan;
    for (uint32_t i = 0; i < 2 * COUNT(dtypes); i++) {
        gemm->dtype = dtypes[i / 2][0];
        gemm->c_dtype = dtypes[i / 2][1];
        gemm->flags =
            i % 2 ? 0 : TANDEM_GEMM_TRANSPOSE_A | TANDEM_GEMM_TRANSPOSE_B;
        lds_set(gemm, i % 2 ? 0 : 1, i % 2 ? 0 : 1);
        gemm_kernels_try(search, gemm, 0, GEMM_KERNEL_COUNT);
        launch_plan_clear(&plan);
        plan_naive_gemm(&plan, gemm, search->request.group_log2);
        plan_add(search->keys, &plan);
        launch_plan_clear(&plan);
        plan_epilogue(&plan, gemm, search->request.group_log2, 1.0f);
        plan_add(search->keys, &plan);
    }
}

static void products_try(struct search *search)
{
    static const int64_t rows[] = {16, HUGE_EXTENT};
    struct tandem_gemm gemm = {.struct_size = sizeof(gemm),
                               .dtype = TANDEM_F32,
                               .n = 16,
                               .k = 4096,
                               .batch = 1,
                               .alpha = 1};
    for (uint32_t i = 0; i < COUNT(rows); i++) {
        gemm.m = rows[i];
        gemm.a.ld = gemm.k;
        gemm.b.ld = gemm.c.ld = 16;
        activations_try(search, &gemm);
    }
    /*
     * Several tiles; each layout, with and without vectors of four for each
     * operand.
     */
    gemm.m = gemm.n = gemm.c.ld = 272;
    gemm.activation = TANDEM_OP_INVALID;
    for (uint32_t i = 0; i < 16; i++) {
        gemm.flags = (i & 1u ? TANDEM_GEMM_TRANSPOSE_A : 0) |
                     (i & 2u ? TANDEM_GEMM_TRANSPOSE_B : 0);
        lds_set(&gemm, i & 4u ? 1 : 0, i & 8u ? 1 : 0);
        gemm_kernels_try(search, &gemm, 0, GEMV_1);
        gemm.flags |= TANDEM_GEMM_ALLOW_TF32 | TANDEM_GEMM_ALLOW_NORMWISE_ERROR;
        gemm_kernels_try(search, &gemm, GEMM_MMA_TF32_128X256,
                         GEMM_KERNEL_COUNT);
    }
    /* Rows that are too long for a work-group to cache. */
    gemm.k = 4128;
    lds_set(&gemm, 0, 0);
    gemm_kernels_try(search, &gemm, GEMM_MMA_FP16X3_128X128,
                     GEMM_MMA_FP16X3_64X64);
    gemm.k = 4096;
    gemv_try(search, &gemm);
    gemm.m = gemm.n = 16;
    gemm_16bit_try(search, &gemm);
}

/* ---- attention ---- */

/*
 * Plans attention of many and of few queries, with aligned and with unaligned
 * rows, with and without softcap, and for tensor cores.
 */
static void attention_try(struct search *search)
{
    static const struct {
        int64_t queries, keys, width, value_width;
        bool tensor_cores;
    } cases[] = {{40, 70, 36, 20, false},
                 {1, 400, 36, 20, false},
                 {8, 400, 160, 100, false},
                 {70, 70, 64, 64, true},
                 {70, 70, 40, 128, true}};
    const struct platform_device *hardware = search->request.hardware;
    struct platform_device nvidia = *hardware;
    nvidia.tensor_cores = true;
    for (uint32_t i = 0; i < 8 * COUNT(cases); i++) {
        struct tandem_tensor_desc *tensors = search->tensors;
        const int64_t queries = cases[i / 8].queries, keys = cases[i / 8].keys;
        const int64_t width = cases[i / 8].width,
                      value_width = cases[i / 8].value_width;
        const int64_t shapes[4][4] = {{1, 2, queries, width},
                                      {1, 1, keys, width},
                                      {1, 1, keys, value_width},
                                      {1, 1, queries, keys}};
        for (uint32_t j = 0; j < search->input_count; j++) {
            tensors[j].dtype = TANDEM_F32;
            tensors[j].rank = 4;
            memcpy(tensors[j].shape, shapes[j], sizeof(shapes[j]));
            tensor_arrange(&tensors[j], i & 1u ? UNALIGNED : CONTIGUOUS);
        }
        tensors[3].dtype = i & 2u ? TANDEM_BOOL : TANDEM_F32;
        search->floats[1] = i & 4u ? 0.5 : 0.0;
        search->op.ints = attributes[0];
        search->op.int_count = 2;
        search->request.hardware =
            cases[i / 8].tensor_cores ? &nvidia : hardware;
        call_try(search, 0);
    }
    search->floats[1] = 0.5;
    search->request.hardware = hardware;
}

/* ---- all operators ---- */

static void search_start(struct search *search, struct keys *keys,
                         const struct platform_device *hardware,
                         uint32_t group_log2)
{
    memset(search, 0, sizeof(*search));
    search->keys = keys;
    for (size_t i = 0; i < COUNT(search->floats); i++)
        search->floats[i] = 0.5;
    for (uint32_t i = 0; i < TANDEM_MAX_OPERANDS; i++)
        search->outputs[i] = &search->results[i];
    search->op.struct_size = sizeof(search->op);
    search->op.floats = search->floats;
    search->request.hardware = hardware;
    search->request.group_log2 = group_log2;
    search->request.op = &search->op;
    search->request.inputs = search->inputs;
    search->request.outputs = search->outputs;
}

/* Returns true if a key has this kernel function of the source. */
static bool function_found(const struct keys *keys, const char *source,
                           const char *function, size_t length)
{
    for (uint32_t i = 0; i < keys->count; i++) {
        const struct kernel_info *info = keys->key[i].kernel;

        if (info->source == source &&
            strncmp(info->function, function, length) == 0 &&
            info->function[length] == '\0')
            return true;
    }
    return false;
}

/* Some kernels are only planned for work-groups of this size or more. */
#define EVERY_KERNEL_GROUP_LOG2 8u

/* Returns true if the keys have each kernel function in the files of cl/. */
static bool every_kernel(const struct keys *keys)
{
    static const char start[] = "\nKERNEL void ";
    bool found = true;

    for (const char *const *source = kernel_sources; *source != NULL; source++)
        for (const char *at = strstr(*source, start); at != NULL;
             at = strstr(at, start)) {
            at += strlen(start);
            size_t length = strcspn(at, "(");
            if (function_found(keys, *source, at, length))
                continue;
            fprintf(stderr, "no call plans the kernel %.*s\n", (int)length, at);
            found = false;
        }
    return found;
}

/*
 * Tries the operator, with two numbers of inputs if it has no fixed number.
 * Returns true if some call was valid.
 */
static bool operator_try_counts(struct search *search)
{
    const struct operator_info *row = search->row;
    const bool variadic = op_class_get(row->op_class)->variadic;
    const uint32_t least = variadic && row->inputs < 2 ? 2 : row->inputs;
    bool valid = false;
    for (uint32_t more = 0; more <= variadic; more++) {
        search->valid = false;
        search->input_count = least + more;
        if (row->op_class == TANDEM_CLASS_GEMM)
            products_try(search);
        else
            operator_try(search);
        if (row->op_class == TANDEM_CLASS_ATTENTION)
            attention_try(search);
        valid = valid || search->valid;
    }
    return valid;
}

bool keys_find(struct keys *out, const struct platform_device *hardware,
               uint32_t group_log2)
{
    struct search search;
    out->count = out->chosen = 0;
    out->key = malloc(MAX_KEYS * sizeof(*out->key));
    out->trial = calloc(MAX_KEYS, sizeof(struct trial_launch *));
    out->index = calloc(INDEX_SIZE, sizeof(*out->index));
    if (out->key == NULL || out->trial == NULL || out->index == NULL) {
        fprintf(stderr, "out of memory\n");
        return false;
    }
    search_start(&search, out, hardware, group_log2);
    for (uint32_t id = 0; id < TANDEM_OP_ID_END; id++) {
        search.row = operator_lookup(id);
        if (search.row == NULL)
            continue;
        search.op.id = id;
        if (!operator_try_counts(&search)) {
            fprintf(stderr, "%s: no call that is tried is valid: %s\n",
                    search.row->name, last_error_get());
            return false;
        }
    }
    if (out->count == MAX_KEYS) {
        fprintf(stderr, "more than %u variants\n", MAX_KEYS - 1);
        return false;
    }
    out->chosen = out->count;
    trials_share(out);
    return group_log2 < EVERY_KERNEL_GROUP_LOG2 || every_kernel(out);
}
