/* SPDX-License-Identifier: Apache-2.0 */
/* Finds warm-up calls for the kernels of all operators except GEMM.  The
 * functions try calls of growing size until the plan of a call runs the
 * variant. A variant depends on the operator, its dtypes, operand layouts and
 * row lengths. */
#include "opencl/program/warmup_call.h"

#include <float.h>
#include <string.h>

#include "common/operator_table.h"
#include "opencl/plan/row_mapping.h"

/* Assumed numbers of compute units.  With SMALL_UNIT_COUNT, plans keep long
 * rows in registers.  With LARGE_UNIT_COUNT, plans split long rows among
 * work-groups. */
#define SMALL_UNIT_COUNT 2u
#define LARGE_UNIT_COUNT (1u << 20)
/* log2 of the longest row that the search tries. */
#define MAX_ROW_LOG2 24u
/* Side lengths of the smallest matrices that plans transpose in tiles of vec4
 * and in tiles of scalars, respectively. */
#define TILE_VEC4 8
#define TILE_SCALAR 9

/* Memory layout of an operand of a warm-up call. */
enum warmup_layout {
    WARMUP_CONTIGUOUS,
    WARMUP_OFFSET,    /* operand starts at its buffer's second element */
    WARMUP_PITCHED,   /* a gap of 1 or 4 elements follows each row */
    WARMUP_STRIDED,   /* the operand uses every other element of its buffer */
    WARMUP_TRANSPOSED /* the first axis is contiguous, not the last axis */
};

struct search {
    struct warmup_call *out;
    uint64_t key;
    struct platform_device hardware;
    struct op_request request;
    struct tandem_op op;
    int64_t ints[2];
    double floats[8];
    struct tandem_tensor_desc tensors[WARMUP_OPERANDS];
    const struct tandem_tensor_desc *pointers[WARMUP_OPERANDS];
    uint64_t bytes[WARMUP_OPERANDS];
};

/* ---- one call ---- */

/* Sets the descriptor of an operand.  Rank 0 means a single element. */
static void tensor_set(struct search *search, uint32_t operand, uint32_t dtype,
                       uint32_t rank, const int64_t *shape,
                       enum warmup_layout layout)
{
    struct tandem_tensor_desc *tensor = &search->tensors[operand];
    int64_t step = layout == WARMUP_STRIDED ? 2 : 1, last = 0;
    uint32_t bytes = dtype_bytes(dtype);
    *tensor = (struct tandem_tensor_desc){
        .buffer = &search->out->operands[operand],
        .byte_offset = layout == WARMUP_OFFSET ? bytes : 0,
        .dtype = dtype,
        .rank = rank};
    for (uint32_t i = 0; i < rank; i++) {
        uint32_t axis = layout == WARMUP_TRANSPOSED ? i : rank - 1 - i;
        tensor->shape[axis] = shape[axis];
        tensor->strides[axis] = step;
        last += (shape[axis] - 1) * step;
        step *= shape[axis];
        if (layout == WARMUP_PITCHED && i == 0)
            step += shape[axis] % 4 == 0 ? 4 : 1;
    }
    search->bytes[operand] = tensor->byte_offset + (uint64_t)(last + 1) * bytes;
}

/* Returns true if the plan of the operator `row`, called with the tensors of
 * `search`, runs the variant. */
static bool try_call(struct search *search, const struct operator_info *row)
{
    search->op.id = row->id;
    search->op.float_count = row->floats;
    search->request.output_count = row->outputs;
    search->request.input_count = row->inputs;
    search->request.outputs = search->pointers;
    search->request.inputs = search->pointers + row->outputs;
    return launch_plan_make(&search->out->plan, &search->request) ==
               TANDEM_OK &&
           warmup_call_select_step(search->out, search->key, search->bytes);
}

/* ---- elementwise operators and copies ---- */

static bool warmup_elementwise(struct search *search)
{
    uint64_t key = search->key;
    uint32_t kernel = KEY_KERNEL(key);
    const struct operator_info *row = operator_lookup(KEY_OP(key));
    bool vector = KEY_VEC4(key) != 0;
    int64_t flat[] = {1, 4}, strided[] = {2, vector ? 4 : 3};
    int64_t side = vector ? TILE_VEC4 : TILE_SCALAR, crossed[] = {side, side};
    const int64_t *shape = kernel == KERNEL_ELEMENTWISE_CONTIGUOUS ? flat
                           : kernel == KERNEL_ELEMENTWISE_STRIDED  ? strided
                                                                   : crossed;
    enum warmup_layout layout =
        kernel == KERNEL_ELEMENTWISE_STRIDED ? WARMUP_PITCHED
        : kernel == KERNEL_ELEMENTWISE_CONTIGUOUS && !vector
            ? WARMUP_OFFSET
            : WARMUP_CONTIGUOUS;
    search->ints[0] = KEY_GELU_TANH(key);
    for (uint32_t i = 0; i <= row->inputs; i++) {
        bool across = kernel == KERNEL_ELEMENTWISE_TRANSPOSED && i > 0 &&
                      (KEY_TRANSPOSED_INPUTS(key) >> (i - 1) & 1u) != 0;
        tensor_set(search, i, warmup_call_dtype(key, i), 2, shape,
                   across ? WARMUP_TRANSPOSED : layout);
    }
    return try_call(search, row);
}

static bool warmup_tiled(struct search *search)
{
    int64_t side = KEY_VEC4(search->key) != 0 ? TILE_VEC4 : TILE_SCALAR;
    const int64_t shape[] = {side, side};
    uint32_t dtype = warmup_call_dtype(search->key, 0);
    tensor_set(search, 0, dtype, 2, shape, WARMUP_CONTIGUOUS);
    tensor_set(search, 1, dtype, 2, shape, WARMUP_TRANSPOSED);
    return try_call(search, operator_lookup(TANDEM_OP_COPY));
}

static bool warmup_gather(struct search *search)
{
    const int64_t shape[] = {2};
    for (uint32_t i = 0; i < 3; i++)
        tensor_set(search, i, warmup_call_dtype(search->key, i == 2 ? 1 : 0), 1,
                   shape, WARMUP_CONTIGUOUS);
    return try_call(search, operator_lookup(TANDEM_OP_GATHER));
}

static bool warmup_optimizer(struct search *search)
{
    const struct operator_info *row = operator_lookup(KEY_OP(search->key));
    const int64_t shape[] = {4};
    search->ints[0] = 1;
    for (uint32_t i = 0; i < row->outputs + row->inputs; i++)
        tensor_set(search, i, TANDEM_F32, 1, shape, WARMUP_CONTIGUOUS);
    return try_call(search, row);
}

/* ---- reductions ---- */

static bool try_reduction(struct search *search,
                          const struct operator_info *row, int64_t count)
{
    bool index = row->op_class == TANDEM_CLASS_ARG_REDUCE;
    search->ints[0] = 1; /* a mask of axes */
    tensor_set(search, 0, index ? TANDEM_I64 : TANDEM_F32, 0, NULL,
               WARMUP_CONTIGUOUS);
    for (uint32_t i = 1; i <= row->inputs; i++)
        tensor_set(search, i, TANDEM_F32, 1, &count, WARMUP_CONTIGUOUS);
    return try_call(search, row);
}

/* Tries reductions of growing length, because plans split only long rows. */
static bool warmup_reduction(struct search *search)
{
    search->request.has_device_scope_visibility =
        KEY_KERNEL(search->key) == KERNEL_REDUCE_LAST_GROUP;
    search->hardware.info.compute_units = LARGE_UNIT_COUNT;
    for (uint32_t id = 0; id < TANDEM_OP_ID_END; id++) {
        const struct operator_info *row = operator_lookup(id);
        if (row == NULL || (row->op_class != TANDEM_CLASS_REDUCE &&
                            row->op_class != TANDEM_CLASS_ARG_REDUCE &&
                            row->op_class != TANDEM_CLASS_DOT))
            continue;
        for (uint32_t log2 = 2; log2 <= MAX_ROW_LOG2; log2++)
            if (try_reduction(search, row, (int64_t)1 << log2))
                return true;
    }
    return false;
}

/* ---- rows ---- */

static enum warmup_layout row_layout(enum row_access access)
{
    return access == ROW_ACCESS_LOCAL_MEMORY ||
                   access == ROW_ACCESS_SECTOR_ALIGNED
               ? WARMUP_OFFSET
           : access == ROW_ACCESS_STRIDED ? WARMUP_STRIDED
                                          : WARMUP_CONTIGUOUS;
}

/* Tries a norm, a softmax or a cross-entropy loss.  The input has a single row,
 * or four columns with ROW_ACCESS_VEC4_COLUMNS. */
static bool try_rows(struct search *search, const struct operator_info *row,
                     int64_t count)
{
    enum row_access access = (enum row_access)KEY_ROW_ACCESS(search->key);
    bool columns = access == ROW_ACCESS_VEC4_COLUMNS;
    bool norm = row->op_class == TANDEM_CLASS_NORM;
    bool loss = row->id == TANDEM_OP_CROSS_ENTROPY;
    const int64_t shape[] = {columns ? count : 1, columns ? 4 : count};
    search->ints[0] = columns ? 0 : 1;
    if (!norm)
        search->floats[0] =
            KEY_LARGE_LOSS_SCALE(search->key) != 0 ? (double)FLT_MAX : 1;
    tensor_set(search, 0, TANDEM_F32, loss ? 1 : 2, shape, WARMUP_CONTIGUOUS);
    tensor_set(search, 1, TANDEM_F32, 2, shape, row_layout(access));
    /* The other inputs are scale and bias of a norm, or labels of a loss. */
    for (uint32_t i = 2; i <= row->inputs; i++)
        tensor_set(search, i, warmup_call_dtype(search->key, 1), 1,
                   norm ? &count : shape, WARMUP_CONTIGUOUS);
    return try_call(search, row);
}

/* Returns the length of the shortest row for which row_mapping.c chooses
 * ROW_ACCESS_SECTOR_ALIGNED with KEY_COUNT vectors per lane. */
static int64_t sector_aligned_row_length(uint64_t key)
{
    int64_t lanes = (int64_t)1 << KEY_LANES_LOG2(key);
    int64_t elements = 4 * lanes * ((int64_t)KEY_COUNT(key) - 1) + 1;
    if (KEY_LANES_LOG2(key) > SECTOR_ELEMENTS_LOG2 &&
        elements <= lanes / 2 * SECTOR_ALIGNED_LANE_ELEMENTS)
        elements = lanes / 2 * SECTOR_ALIGNED_LANE_ELEMENTS + 1;
    int64_t count = elements - (SECTOR_ELEMENTS - 1);
    return count < LOCAL_MEMORY_ROW_LIMIT ? LOCAL_MEMORY_ROW_LIMIT : count;
}

static bool try_lengths(struct search *search, const struct operator_info *row,
                        bool in_registers)
{
    enum row_access access = (enum row_access)KEY_ROW_ACCESS(search->key);
    if (access == ROW_ACCESS_LOCAL_MEMORY)
        return try_rows(search, row, KEY_COUNT(search->key));
    if (access == ROW_ACCESS_SECTOR_ALIGNED && in_registers)
        return try_rows(search, row, sector_aligned_row_length(search->key));
    for (uint32_t log2 = access == ROW_ACCESS_VEC4_COLUMNS ? 0 : 2;
         log2 <= MAX_ROW_LOG2; log2++)
        if (try_rows(search, row, (int64_t)1 << log2))
            return true;
    return false;
}

static bool warmup_rows(struct search *search, bool norm, bool in_registers)
{
    search->hardware.info.compute_units =
        in_registers ? SMALL_UNIT_COUNT : LARGE_UNIT_COUNT;
    for (uint32_t id = 0; id < TANDEM_OP_ID_END; id++) {
        const struct operator_info *row = operator_lookup(id);
        if (row == NULL)
            continue;
        bool belongs = norm ? row->op_class == TANDEM_CLASS_NORM
                            : row->op_class == TANDEM_CLASS_SOFTMAX ||
                                  row->op_class == TANDEM_CLASS_CROSS_ENTROPY;
        if (belongs && try_lengths(search, row, in_registers))
            return true;
    }
    return false;
}

/* ---- all kernels ---- */

/* Finds a call for the variant's kernel.  The switch has no default case, so
 * that the compiler warns about a kernel without a case. */
static bool warmup_find(struct search *search)
{
    switch ((enum kernel_id)KEY_KERNEL(search->key)) {
    case KERNEL_ELEMENTWISE_CONTIGUOUS:
    case KERNEL_ELEMENTWISE_STRIDED:
    case KERNEL_ELEMENTWISE_TRANSPOSED:
        return warmup_elementwise(search);
    case KERNEL_TRANSPOSE_TILED:
        return warmup_tiled(search);
    case KERNEL_GATHER:
        return warmup_gather(search);
    case KERNEL_OPTIMIZER:
        return warmup_optimizer(search);
    case KERNEL_REDUCE:
    case KERNEL_REDUCE_LAST_GROUP:
    case KERNEL_REDUCE_COMBINE_SPLITS:
        return warmup_reduction(search);
    case KERNEL_SOFTMAX_SINGLE_PASS:
        return warmup_rows(search, false, true);
    case KERNEL_SOFTMAX_PARTIAL_PASS:
    case KERNEL_SOFTMAX_FINAL_PASS:
        return warmup_rows(search, false, false);
    case KERNEL_NORM_SINGLE_PASS:
        return warmup_rows(search, true, true);
    case KERNEL_NORM_PARTIAL_PASS:
    case KERNEL_NORM_FINAL_PASS:
        return warmup_rows(search, true, false);
    case KERNEL_GEMM_EPILOGUE:
    case KERNEL_GEMM_NAIVE:
    case KERNEL_GEMM_SIMT:
    case KERNEL_GEMV:
    case KERNEL_SPLIT_K_FIXUP:
    case KERNEL_SPLIT_K_FIXUP_LANES:
    case KERNEL_SPLIT_K_FIXUP_TILES:
    case KERNEL_PAD_OPERANDS:
    case KERNEL_PACK_MAXIMA:
    case KERNEL_PACK_OPERANDS:
    case KERNEL_PACK_SINGLE_PASS:
        return warmup_call_make_gemm(search->out, search->key);
    case KERNEL_GEMM_3XTF32: /* kernel_self_test.h runs these kernels */
    case KERNEL_GEMM_MMA:
    case KERNEL_GEMM_WGMMA:
    case KERNEL_COPY_BUFFER: /* has no program */
    case KERNEL_COUNT:
        return false;
    }
    return false;
}

bool warmup_call_make(struct warmup_call *out, uint64_t key,
                      const struct platform_device *hardware)
{
    struct search search = {.out = out,
                            .key = key,
                            .hardware = *hardware,
                            .floats = {.5, .5, .5, .5, .5, .5, .5, .5},
                            .request = {.hardware = &search.hardware,
                                        .group_log2 = KEY_GROUP_LOG2(key),
                                        .op = &search.op},
                            .op = {.struct_size = sizeof(search.op),
                                   .ints = search.ints,
                                   .int_count = 2,
                                   .floats = search.floats}};
    memset(out, 0, sizeof(*out));
    for (uint32_t i = 0; i < WARMUP_OPERANDS; i++)
        search.pointers[i] = &search.tensors[i];
    return warmup_find(&search);
}
