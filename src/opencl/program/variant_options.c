/* SPDX-License-Identifier: Apache-2.0 */
/* Translates variant keys to compiler options.  The options contain only names
 * from the tables in this file, and numbers from the key. */
#include "opencl/program/variant_options.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "common/operator_table.h"
#include "opencl/program/kernel_sources.h"
#include "opencl/plan/plan.h"
#include "opencl/device/device_enumeration.h"
#include "opencl/plan/gemm_plan.h"
#include "opencl/plan/row_mapping.h"
#include "opencl/plan/gemv_plan.h"

#define FUNCTION(file, function)                                               \
    {                                                                          \
#file ".cl", kernel_##file, #function                                  \
    }

static const struct {
    const char *file, *source, *function;
} functions[KERNEL_COUNT] = {
    [KERNEL_ELEMENTWISE_CONTIGUOUS] =
        FUNCTION(elementwise, elementwise_contiguous),
    [KERNEL_ELEMENTWISE_STRIDED] = FUNCTION(elementwise, elementwise_strided),
    [KERNEL_ELEMENTWISE_TRANSPOSED] =
        FUNCTION(elementwise, elementwise_transposed),
    [KERNEL_TRANSPOSE_TILED] = FUNCTION(transpose, transpose_tiled),
    [KERNEL_GATHER] = FUNCTION(gather, gather),
    [KERNEL_OPTIMIZER] = FUNCTION(optimizer, optimizer_update),
    [KERNEL_REDUCE] = FUNCTION(reduce, reduce),
    [KERNEL_REDUCE_LAST_GROUP] = FUNCTION(reduce, reduce),
    [KERNEL_REDUCE_COMBINE_SPLITS] = FUNCTION(reduce, reduce_combine_splits),
    [KERNEL_SOFTMAX_SINGLE_PASS] = FUNCTION(softmax, softmax_single_pass),
    [KERNEL_SOFTMAX_PARTIAL_PASS] = FUNCTION(softmax, softmax_partial_pass),
    [KERNEL_SOFTMAX_FINAL_PASS] = FUNCTION(softmax, softmax_final_pass),
    [KERNEL_NORM_SINGLE_PASS] = FUNCTION(norm, norm_single_pass),
    [KERNEL_NORM_PARTIAL_PASS] = FUNCTION(norm, norm_partial_pass),
    [KERNEL_NORM_FINAL_PASS] = FUNCTION(norm, norm_final_pass),
    [KERNEL_GEMM_EPILOGUE] = FUNCTION(gemm_epilogue, gemm_epilogue),
    [KERNEL_GEMM_NAIVE] = FUNCTION(gemm_naive, gemm_naive),
    [KERNEL_GEMM_SIMT] = FUNCTION(gemm_simt, gemm_simt),
    [KERNEL_SPLIT_K_FIXUP] = FUNCTION(split_k_fixup, split_k_fixup),
    [KERNEL_SPLIT_K_FIXUP_LANES] = FUNCTION(split_k_fixup, split_k_fixup_lanes),
    [KERNEL_SPLIT_K_FIXUP_TILES] = FUNCTION(split_k_fixup, split_k_fixup_tiles),
    [KERNEL_GEMV] = FUNCTION(gemv, gemv),
    [KERNEL_GEMM_3XTF32] = FUNCTION(gemm_3xtf32, gemm_3xtf32),
    [KERNEL_GEMM_MMA] = FUNCTION(gemm_mma, gemm_mma),
    [KERNEL_GEMM_WGMMA] = FUNCTION(gemm_wgmma, gemm_wgmma),
    [KERNEL_PACK_MAXIMA] = FUNCTION(pack_operands, pack_row_maxima),
    [KERNEL_PACK_OPERANDS] = FUNCTION(pack_operands, pack_operands),
    [KERNEL_PACK_SINGLE_PASS] = FUNCTION(pack_operands, pack_register_resident),
    [KERNEL_PAD_OPERANDS] = FUNCTION(pad_operands, pad_operands)};

static const char *type_name(uint64_t key, uint32_t operand)
{
    static const char *const names[16] = {
        [TYPE_FLOAT] = "float", [TYPE_INT] = "int",       [TYPE_LONG] = "long",
        [TYPE_UCHAR] = "uchar", [TYPE_USHORT] = "ushort", [TYPE_UINT] = "uint",
        [TYPE_ULONG] = "ulong", [TYPE_BOOL] = "uchar",    [TYPE_F16] = "ushort",
        [TYPE_BF16] = "ushort"};
    return names[KEY_TYPE(key, operand)];
}

__attribute__((format(printf, 2, 3))) static void
append(struct variant_source *out, const char *format, ...)
{
    size_t used = strlen(out->options);
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(out->options + used, sizeof(out->options) - used, format,
              arguments);
    va_end(arguments);
}

/* Adds the option with the name of the cast function in operators.cl. */
static void append_cast(struct variant_source *out, uint64_t key)
{
    static const char *const names[16] = {
        [TYPE_FLOAT] = "f32", [TYPE_INT] = "i32",   [TYPE_LONG] = "i64",
        [TYPE_UCHAR] = "u8",  [TYPE_BOOL] = "bool", [TYPE_F16] = "f16",
        [TYPE_BF16] = "bf16"};
    uint32_t to = KEY_TYPE(key, 0), from = KEY_TYPE(key, 1);
    bool narrows = to == TYPE_F16 || to == TYPE_BF16;
    bool is_float = from == TYPE_FLOAT || from == TYPE_F16 || from == TYPE_BF16;
    append(out, " -DOP=op_cast_%s_%s",
           is_float || (from == TYPE_INT && narrows) ? names[from] : "int",
           names[to]);
}

static void append_elementwise(struct variant_source *out, uint64_t key)
{
    const struct operator_info *row = operator_lookup(KEY_OP(key));
    uint32_t kernel = KEY_KERNEL(key);
    /* For these operators, operators.cl has a function op_NAME_fast. */
    bool has_fast_path = row->id == TANDEM_OP_SIN || row->id == TANDEM_OP_COS ||
                         row->id == TANDEM_OP_POW;
    if (row->op_class == TANDEM_CLASS_CAST)
        append_cast(out, key);
    else if (row->op_class == TANDEM_CLASS_COPY)
        append(out, " -DOP=op_move");
    else
        append(out, " -DOP=op_%s%s",
               row->id == TANDEM_OP_RELU_GRAD ? "relu_grad" : row->name,
               KEY_GELU_TANH(key) ? "_tanh" : "");
    append(out,
           " -DSHAPE=%d -DHAS_FAST_PATH=%d -DVECTOR=%u -DINPUTS=%u -DOUT=%s",
           kernel == KERNEL_ELEMENTWISE_CONTIGUOUS ? 1
           : kernel == KERNEL_ELEMENTWISE_STRIDED  ? 2
                                                   : 3,
           has_fast_path, KEY_VEC4(key), row->inputs, type_name(key, 0));
    for (uint32_t i = 0; i < row->inputs; i++)
        append(out, " -DIN%u=%s", i, type_name(key, i + 1));
    if (kernel == KERNEL_ELEMENTWISE_TRANSPOSED)
        append(out, " -DTRANSPOSED_INPUTS=%u", KEY_TRANSPOSED_INPUTS(key));
}

/* Adds the compiler options of a SIMT GEMM kernel.  NVIDIA's compiler fully
 * unrolls the loop over k_tile.  Other compilers unroll four steps, or two for
 * the largest tiles, because LLVM 16 runs out of registers with four. */
static void append_simt_gemm(struct variant_source *out, uint64_t key,
                             const struct gemm_kernel_config *config,
                             bool nvidia)
{
    const uint32_t item_m = config->tile_m / 8, item_n = config->tile_n / 16;
    const uint32_t others = item_m * item_n >= 128 ? 2 : 4;
    append(out,
           " -DITEM_M=%u -DITEM_N=%u -DK_TILE=%u -DA_MN_MAJOR=%u "
           "-DB_MN_MAJOR=%u -DA_VECTOR=%u -DB_VECTOR=%u -DUNROLL=%u",
           item_m, item_n, config->k_tile, KEY_A_MN_MAJOR(key),
           KEY_B_MN_MAJOR(key), KEY_VEC4(key) != 0 ? 4 : 1,
           KEY_SECOND_VEC4(key) != 0 ? 4 : 1, nvidia ? config->k_tile : others);
}

/* Adds the compiler options of a 3xTF32 kernel.  A work-group has two or four
 * warps.  Each warp computes a block of 64 rows and half of the tile's columns.
 */
static void append_3xtf32(struct variant_source *out, uint64_t key,
                          const struct gemm_kernel_config *config)
{
    append(out,
           " -DTILE_M=%u -DTILE_N=%u -DWARP_M=64 -DWARP_N=%u -DA_MN_MAJOR=%u "
           "-DB_MN_MAJOR=%u",
           config->tile_m, config->tile_n, config->tile_n / 2,
           KEY_A_MN_MAJOR(key), KEY_B_MN_MAJOR(key));
}

/* Adds compiler options for the dtype of `c` and the dtype of `a` and `b`. */
static void append_dtypes(struct variant_source *out, uint64_t key)
{
    static const char *const names[16] = {
        [TYPE_FLOAT] = "f32", [TYPE_F16] = "f16", [TYPE_BF16] = "bf16"};
    append(out, " -DC_DTYPE=%s -DAB_DTYPE=%s", names[KEY_TYPE(key, 0)],
           names[KEY_TYPE(key, 1)]);
}

/* Adds the compiler options of a GEMV kernel.  Devices other than NVIDIA's can
 * have fewer registers.  Therefore their loop unrolls half as many iterations,
 * and if the matrix is K-major and a work-item has more than two rows, the rows
 * per work-item and the lanes are also halved. */
static void append_gemv(struct variant_source *out, uint64_t key, bool nvidia)
{
    struct gemv_shape shape = *gemv_shape(
        (enum gemm_kernel_id)KEY_GEMM_KERNEL(key), KEY_A_MN_MAJOR(key) != 0);
    if (!nvidia)
        shape.k_unroll /= 2;
    if (!nvidia && KEY_A_MN_MAJOR(key) == 0 && shape.rows_per_item > 2) {
        shape.rows_per_item /= 2;
        shape.lanes /= 2;
    }
    append(out,
           " -DVECTOR_COUNT=%u -DITEM_ROWS=%u -DLANES=%u -DK_UNROLL=%u "
           "-DA_MN_MAJOR=%u -DB_MN_MAJOR=%u -DW_VECTOR=%u -DX_VECTOR=%u",
           1u << KEY_GEMV_VECTORS_LOG2(key), shape.rows_per_item, shape.lanes,
           shape.k_unroll, KEY_A_MN_MAJOR(key), KEY_B_MN_MAJOR(key),
           KEY_VEC4(key) != 0 ? 4 : 1, KEY_SECOND_VEC4(key) != 0 ? 4 : 1);
    if (nvidia && KEY_GEMM_KERNEL(key) == GEMV_1_MN_MAJOR)
        append(out, " -DSTREAM=1");
}

/* Adds the compiler options of an MMA kernel.  A work-group has four or eight
 * warps in two rows.  Large tiles have as many pipeline stages as fit in 192
 * KiB of local memory.  `tf32_to_even` is true if the device has an instruction
 * that rounds to TF32, ties to even. */
static void append_mma(struct variant_source *out, uint64_t key,
                       const struct gemm_kernel_config *config,
                       bool tf32_to_even)
{
    uint32_t m = config->tile_m, n = config->tile_n;
    uint32_t warps = 1u << (config->group_log2 - 5);
    append(out,
           " -DFORMAT=%u -DTILE_M=%u -DTILE_N=%u -DWARP_M=%u -DWARP_N=%u "
           "-DA_LAYOUT=%u -DB_LAYOUT=%u -DSTAGES=%u -DTF32_TO_EVEN=%d",
           KEY_FORMAT(key), m, n, m / 2, n / (warps / 2), KEY_A_LAYOUT(key),
           KEY_B_LAYOUT(key), config->group_log2 == 8 ? 1536 / (m + n) : 4,
           tf32_to_even);
}

static void append_wgmma(struct variant_source *out, uint64_t key,
                         const struct gemm_kernel_config *config)
{
    append(out,
           " -DFORMAT=%u -DTILE_M=%u -DTILE_N=%u -DA_LAYOUT=%u -DB_LAYOUT=%u",
           KEY_FORMAT(key), config->tile_m, config->tile_n, KEY_A_LAYOUT(key),
           KEY_B_LAYOUT(key));
}

static void append_tiled(struct variant_source *out, uint64_t key)
{
    struct transpose_tile tile =
        transpose_tile(KEY_TYPE(key, 0), KEY_VEC4(key) != 0);
    append(out,
           " -DBITS=%s -DVECTOR=%u -DBLOCK=%u -DVECTOR_ELEMENTS=%u "
           "-DSTORE_ALIGNMENT=%u -DCOLUMNS=%u -DROWS=%u",
           type_name(key, 0), KEY_VEC4(key), tile.block, tile.per,
           tile.store_alignment, tile.columns, tile.rows);
}

/* Adds the compiler options for reading rows (cl/common/row_access.cl). */
static void append_rows(struct variant_source *out, uint64_t key)
{
    uint32_t count = KEY_COUNT(key), group = 1u << KEY_GROUP_LOG2(key);
    append(out, " -DROW_ACCESS=%u", KEY_ROW_ACCESS(key));
    if (count == 0) {
        append(out, " -DVECTORS_PER_ITEM=%u",
               1u << KEY_REGISTER_VEC4_LOG2(key));
        return;
    }
    if (KEY_ROW_ACCESS(key) == ROW_ACCESS_SECTOR_ALIGNED) {
        append(out, " -DVECTORS_PER_ITEM=%u -DLANES_LOG2=%u", count,
               KEY_LANES_LOG2(key));
        return;
    }
    uint32_t lanes_log2 = row_local_memory_lanes_log2(count);
    uint32_t four = 4u << lanes_log2;
    /* The first and last vec4 can each have 3 elements outside the rows. */
    uint32_t vectors = ((group >> lanes_log2) * count + 3 + 3 + 3) / 4;
    append(out,
           " -DVECTORS_PER_ITEM=%u -DROW_ELEMENTS=%u -DLANES_LOG2=%u "
           "-DSTAGES_PER_ITEM=%u",
           (count + four - 1) / four, count, lanes_log2,
           (vectors + group - 1) / group);
}

static void append_activation(struct variant_source *out, uint64_t key)
{
    const struct operator_info *row = operator_lookup(KEY_OP(key));
    if (row != NULL)
        append(out, " -DACTIVATION=op_%s%s", row->name,
               KEY_GELU_TANH(key) ? "_tanh" : "");
}

/* Returns true if the operator's tolerance allows OpenCL's default accuracy of
 * division and square root, which is 3 ULP. */
static bool tolerates_3ulp_division(uint64_t key)
{
    uint32_t kernel = KEY_KERNEL(key), op = KEY_OP(key);
    return (kernel == KERNEL_ELEMENTWISE_CONTIGUOUS ||
            kernel == KERNEL_ELEMENTWISE_STRIDED ||
            kernel == KERNEL_ELEMENTWISE_TRANSPOSED) &&
           (op == TANDEM_OP_SQRT || op == TANDEM_OP_TANH ||
            op == TANDEM_OP_POW || op == TANDEM_OP_SWISH ||
            op == TANDEM_OP_GELU || op == TANDEM_OP_MISH);
}

static void append_gemm(struct variant_source *out, uint64_t key,
                        const struct platform_device *hardware)
{
    const struct gemm_kernel_config *config =
        &gemm_configs[KEY_GEMM_KERNEL(key)];
    append_dtypes(out, key);
    switch (KEY_KERNEL(key)) {
    case KERNEL_GEMM_SIMT:
        append_simt_gemm(out, key, config, hardware->nvidia);
        break;
    case KERNEL_GEMV:
        append_gemv(out, key, hardware->nvidia);
        break;
    case KERNEL_GEMM_3XTF32:
        append_3xtf32(out, key, config);
        break;
    case KERNEL_GEMM_MMA:
        append_mma(out, key, config, hardware->tf32_to_even);
        break;
    case KERNEL_GEMM_WGMMA:
        append_wgmma(out, key, config);
        break;
    default:
        break;
    }
    append_activation(out, key);
}

void variant_source_make(struct variant_source *out, uint64_t key,
                         const struct platform_device *hardware)
{
    uint32_t kernel = KEY_KERNEL(key);
    out->file = functions[kernel].file;
    out->source = functions[kernel].source;
    out->function = functions[kernel].function;
    out->needs_ptx_rewrite = kernel == KERNEL_GEMM_WGMMA;
    out->options[0] = '\0';
    append(out,
           "-cl-std=CL1.2 -DGROUP_SIZE=%u -DINDEX_64BIT=%u -DSHUFFLE=%u"
           "%s%s",
           1u << KEY_GROUP_LOG2(key), KEY_64BIT_INDEX(key),
           hardware->nvidia      ? 1u
           : hardware->subgroups ? 2u
                                 : 0u,
           hardware->info.kind == TANDEM_DEVICE_CPU ? " -DIS_CPU=1" : "",
           hardware->correct_divide && !tolerates_3ulp_division(key)
               ? " -cl-fp32-correctly-rounded-divide-sqrt"
               : "");
    switch (kernel) {
    case KERNEL_ELEMENTWISE_CONTIGUOUS:
    case KERNEL_ELEMENTWISE_STRIDED:
    case KERNEL_ELEMENTWISE_TRANSPOSED:
        append_elementwise(out, key);
        break;
    case KERNEL_TRANSPOSE_TILED:
        append_tiled(out, key);
        break;
    case KERNEL_GATHER:
        append(out, " -DBITS=%s -DINDEX=%s", type_name(key, 0),
               type_name(key, 1));
        break;
    case KERNEL_OPTIMIZER:
        append(out, " -DADAM=%d", KEY_OP(key) == TANDEM_OP_ADAM);
        break;
    case KERNEL_REDUCE:
    case KERNEL_REDUCE_LAST_GROUP:
    case KERNEL_REDUCE_COMBINE_SPLITS:
        append(out, " -DREDUCTION=%u -DLAST_GROUP_COMBINES=%d", KEY_OP(key),
               kernel == KERNEL_REDUCE_LAST_GROUP);
        break;
    case KERNEL_SOFTMAX_SINGLE_PASS:
    case KERNEL_SOFTMAX_PARTIAL_PASS:
    case KERNEL_SOFTMAX_FINAL_PASS:
        append(out, " -DFORM=%u -DLARGE_LOSS_SCALE=%u -DLABEL=%s", KEY_OP(key),
               KEY_LARGE_LOSS_SCALE(key),
               KEY_TYPE(key, 1) == TYPE_LONG ? "long" : "int");
        append_rows(out, key);
        break;
    case KERNEL_NORM_SINGLE_PASS:
    case KERNEL_NORM_PARTIAL_PASS:
    case KERNEL_NORM_FINAL_PASS:
        append(out, " -DRMS=%d", KEY_OP(key) == TANDEM_OP_RMS_NORM);
        append_rows(out, key);
        break;
    case KERNEL_PACK_MAXIMA:
    case KERNEL_PACK_OPERANDS:
    case KERNEL_PACK_SINGLE_PASS:
        append(out, " -DFORMAT=%u -DTF32_TO_EVEN=%d", KEY_FORMAT(key),
               hardware->tf32_to_even);
        break;
    case KERNEL_PAD_OPERANDS:
        append(out, " -DBITS=%s", type_name(key, 0));
        break;
    default:
        append_gemm(out, key, hardware);
        break;
    }
}
