/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Random calls of all kernels for rows, reductions, data movement and GEMM.
 * Other tests check the results.
 */
#include "cold_start_calls.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support.h"

#define CALLS 4u
#define OPERANDS 4u
/* The size in which GPU drivers map memory. */
#define MAP_GRANULARITY ((uint64_t)2 << 20)
#define WAIT_NS ((uint64_t)300000000000)

struct cold_process {
    uint64_t seed, state;
    struct tandem_device *device;
    struct tandem_stream *stream;
    /* Describes the current call. */
    char text[200];
    struct tandem_buffer *buffers[OPERANDS];
    struct tandem_tensor_desc tensors[OPERANDS]; /* The output comes first. */
    uint32_t count;
};

static uint64_t below(struct cold_process *run, uint64_t limit)
{
    run->state = run->state * 6364136223846793005u + 1442695040888963407u;
    return (run->state >> 33) % limit;
}

static bool call_failed(struct cold_process *run, enum tandem_status status,
                        const char *what)
{
    if (status == TANDEM_OK)
        return false;
    fprintf(stderr, "seed %" PRIu64 ": %s: %s: %d, %s\n", run->seed, run->text,
            what, (int)status, backend->last_error());
    return true;
}

/* ---- buffers ---- */

/*
 * Allocates a buffer whose last `bytes` bytes hold the tensor. *out_offset is
 * a multiple of unit, the size of one or four elements. Pools round sizes up,
 * but not multiples of PIECE.
 */
static bool buffer_make(struct cold_process *run, uint64_t bytes,
                        uint32_t element, uint64_t *out_offset)
{
    uint64_t place = below(run, 3);
    uint64_t unit = element * (below(run, 2) != 0 ? 4u : 1u);
    uint64_t whole = bytes;
    if (place == 1)
        whole = bytes + element;
    if (place == 2)
        whole =
            (bytes + MAP_GRANULARITY - 1) / MAP_GRANULARITY * MAP_GRANULARITY;
    *out_offset = place == 2 ? (whole - bytes) / unit * unit : whole - bytes;
    unsigned char *host = malloc(whole + 8);
    if (host == NULL)
        abort();
    for (uint64_t i = 0; i < whole; i += 8) {
        uint64_t bits = below(run, 1u << 30) * 0x9e3779b97f4a7c15u;
        memcpy(host + i, &bits, sizeof(bits));
    }
    struct tandem_buffer **buffer = &run->buffers[run->count];
    bool made =
        !call_failed(run,
                     backend->alloc(run->device, TANDEM_BYTES(whole), buffer),
                     "alloc") &&
        !call_failed(run,
                     backend->upload(run->stream, *buffer, 0, host, whole, 0),
                     "upload");
    free(host);
    return made;
}

/* is_transposed: the first axis is the innermost. */
static bool tensor_add(struct cold_process *run, uint32_t dtype, uint32_t rank,
                       int64_t first, int64_t second, bool is_transposed)
{
    struct tandem_tensor_desc *tensor = &run->tensors[run->count];
    uint32_t element = TANDEM_DTYPE_BYTES(dtype);
    int64_t inner = rank == 2 ? second : 1;
    uint64_t offset;
    if (!buffer_make(run, (uint64_t)(first * inner) * element, element,
                     &offset))
        return false;
    *tensor = (struct tandem_tensor_desc){
        .buffer = run->buffers[run->count],
        .byte_offset = offset,
        .dtype = dtype,
        .rank = rank,
        .shape = {first, second},
        .strides = {is_transposed ? 1 : inner, is_transposed ? first : 1}};
    run->count++;
    return true;
}

static bool buffers_free(struct cold_process *run)
{
    bool idle = !call_failed(
        run, backend->stream_synchronize(run->stream, WAIT_NS), "wait");
    for (uint32_t i = 0; i < OPERANDS; i++)
        if (run->buffers[i] != NULL)
            backend->free(run->buffers[i]);
    memset(run->buffers, 0, sizeof(run->buffers));
    run->count = 0;
    return idle;
}

/* ---- calls ---- */

static bool launch(struct cold_process *run, uint32_t id, const int64_t *ints,
                   uint32_t int_count)
{
    const double number = 0.5;
    bool takes = id == TANDEM_OP_LAYER_NORM || id == TANDEM_OP_RMS_NORM ||
                 id == TANDEM_OP_CROSS_ENTROPY_GRAD;
    const struct tandem_op op = {.struct_size = sizeof(op),
                                 .id = id,
                                 .ints = ints,
                                 .int_count = int_count,
                                 .floats = &number,
                                 .float_count = takes};
    const struct tandem_tensor_desc *pointers[OPERANDS];
    for (uint32_t i = 0; i < OPERANDS; i++)
        pointers[i] = &run->tensors[i];
    return !call_failed(run,
                        tensors_launch(backend, run->device, run->stream, &op,
                                       pointers + 1, run->count - 1, pointers,
                                       1, 64),
                        "launch");
}

/*
 * Selects rows that fit in local memory, in registers, or need several
 * work-groups. Their length is often not a multiple of four.
 */
static void rows_choose(struct cold_process *run, int64_t *out_rows,
                        int64_t *out_count)
{
    static const int64_t lost[][2] = {{83, 3858}, {488, 4735}, {207, 5343}};
    static const int64_t most[] = {47, 600, 6000, 40000};
    const int64_t *pair = lost[below(run, 3)];
    *out_rows = pair[0];
    *out_count = pair[1];
    if (below(run, 8) == 0)
        return;
    int64_t limit = most[below(run, 4)];
    *out_count = 1 + (int64_t)below(run, (uint64_t)limit);
    if (below(run, 4) == 0)
        *out_count = (*out_count + 3) / 4 * 4;
    int64_t rows = 2000000 / *out_count;
    *out_rows = 1 + (int64_t)below(run, rows < 600 ? (uint64_t)rows : 600);
}

static bool call_rows(struct cold_process *run)
{
    static const uint32_t ids[] = {
        TANDEM_OP_SOFTMAX,       TANDEM_OP_LOG_SOFTMAX,
        TANDEM_OP_LAYER_NORM,    TANDEM_OP_RMS_NORM,
        TANDEM_OP_CROSS_ENTROPY, TANDEM_OP_CROSS_ENTROPY_GRAD};
    uint32_t id = ids[below(run, 6)];
    bool norm = id == TANDEM_OP_LAYER_NORM || id == TANDEM_OP_RMS_NORM;
    bool loss = id == TANDEM_OP_CROSS_ENTROPY;
    bool labels = loss || id == TANDEM_OP_CROSS_ENTROPY_GRAD;
    int64_t rows, count, axis = norm || labels ? 1 : (int64_t)below(run, 2);
    rows_choose(run, &rows, &count);
    snprintf(run->text, sizeof(run->text),
             "operator %u of %" PRId64 "x%" PRId64 " along axis %" PRId64,
             (unsigned)id, rows, count, axis);
    bool made = tensor_add(run, TANDEM_F32, loss ? 1 : 2, rows, count, false);
    made = made && tensor_add(run, TANDEM_F32, 2, rows, count,
                              !norm && below(run, 8) == 0);
    if (labels)
        made = made && tensor_add(run, TANDEM_I32, 1, rows, 1, false);
    for (uint32_t i = id == TANDEM_OP_LAYER_NORM ? 2 : norm; i > 0; i--)
        made = made && tensor_add(run, TANDEM_F32, 1, count, 1, false);
    return made && launch(run, id, &axis, labels ? 0 : 1);
}

static bool call_reduce(struct cold_process *run)
{
    static const uint32_t ids[] = {TANDEM_OP_SUM,        TANDEM_OP_MEAN,
                                   TANDEM_OP_REDUCE_MAX, TANDEM_OP_LOG_SUM_EXP,
                                   TANDEM_OP_L2,         TANDEM_OP_ARGMAX};
    uint32_t id = ids[below(run, 6)];
    int64_t rows, count, axes[] = {1 + (int64_t)below(run, 2), 0};
    rows_choose(run, &rows, &count);
    snprintf(run->text, sizeof(run->text),
             "operator %u of %" PRId64 "x%" PRId64 " along axes %" PRId64,
             (unsigned)id, rows, count, axes[0]);
    return tensor_add(run, id == TANDEM_OP_ARGMAX ? TANDEM_I64 : TANDEM_F32, 1,
                      axes[0] == 1 ? count : rows, 1, false) &&
           tensor_add(run, TANDEM_F32, 2, rows, count, below(run, 4) == 0) &&
           launch(run, id, axes, 2);
}

static bool call_move(struct cold_process *run)
{
    static const uint32_t dtypes[] = {TANDEM_U8, TANDEM_F16, TANDEM_F32,
                                      TANDEM_I64};
    uint32_t dtype = dtypes[below(run, 4)];
    bool gathers = below(run, 3) == 0;
    int64_t rows, count, axis = 0, indices = 1 + (int64_t)below(run, 300);
    rows_choose(run, &rows, &count);
    snprintf(run->text, sizeof(run->text),
             "a %s of %" PRId64 "x%" PRId64 ", %u bytes an element",
             gathers ? "gather" : "transpose", rows, count,
             (unsigned)TANDEM_DTYPE_BYTES(dtype));
    if (gathers)
        return tensor_add(run, dtype, 2, indices, count, false) &&
               tensor_add(run, dtype, 2, rows, count, false) &&
               tensor_add(run, TANDEM_I32, 1, indices, 1, false) &&
               launch(run, TANDEM_OP_GATHER, &axis, 1);
    return tensor_add(run, dtype, 2, rows, count, false) &&
           tensor_add(run, dtype, 2, rows, count, true) &&
           launch(run, TANDEM_OP_COPY, NULL, 0);
}

static bool call_elements(struct cold_process *run)
{
    int64_t rows, count;
    rows_choose(run, &rows, &count);
    snprintf(run->text, sizeof(run->text), "an add of %" PRId64 "x%" PRId64,
             rows, count);
    return tensor_add(run, TANDEM_F32, 2, rows, count, false) &&
           tensor_add(run, TANDEM_F32, 2, rows, count, below(run, 2) == 0) &&
           tensor_add(run, TANDEM_F32, 2, rows, count, below(run, 2) == 0) &&
           launch(run, TANDEM_OP_ADD, NULL, 0);
}

static void matrix_of(struct tandem_matrix *out,
                      const struct tandem_tensor_desc *tensor)
{
    out->buffer = tensor->buffer;
    out->byte_offset = tensor->byte_offset;
    out->ld = tensor->shape[1];
}

static int64_t side_choose(struct cold_process *run)
{
    static const uint64_t most[] = {4, 40, 400, 1200};
    int64_t side = 1 + (int64_t)below(run, most[below(run, 4)]);
    return below(run, 2) != 0 ? side : (side + 3) / 4 * 4;
}

static bool call_gemm(struct cold_process *run)
{
    static const uint32_t dtypes[] = {TANDEM_F32, TANDEM_F32, TANDEM_F16};
    struct tandem_gemm gemm = {.struct_size = sizeof(gemm),
                               .dtype = dtypes[below(run, 3)],
                               .flags = (uint32_t)below(run, 16),
                               .m = side_choose(run),
                               .n = side_choose(run),
                               .k = side_choose(run),
                               .batch = 1,
                               .alpha = 1,
                               .beta = (double)below(run, 2)};
    bool turned_a = (gemm.flags & TANDEM_GEMM_TRANSPOSE_A) != 0;
    bool turned_b = (gemm.flags & TANDEM_GEMM_TRANSPOSE_B) != 0;
    snprintf(run->text, sizeof(run->text),
             "gemm %" PRId64 "x%" PRId64 "x%" PRId64 ", flags %u, %u bytes an "
             "element",
             gemm.m, gemm.n, gemm.k, (unsigned)gemm.flags,
             (unsigned)TANDEM_DTYPE_BYTES(gemm.dtype));
    if (!tensor_add(run, gemm.dtype, 2, gemm.m, gemm.n, false) ||
        !tensor_add(run, gemm.dtype, 2, turned_a ? gemm.k : gemm.m,
                    turned_a ? gemm.m : gemm.k, false) ||
        !tensor_add(run, gemm.dtype, 2, turned_b ? gemm.n : gemm.k,
                    turned_b ? gemm.k : gemm.n, false))
        return false;
    matrix_of(&gemm.c, &run->tensors[0]);
    matrix_of(&gemm.a, &run->tensors[1]);
    matrix_of(&gemm.b, &run->tensors[2]);
    return !call_failed(run, backend->gemm(run->stream, &gemm), "gemm");
}

/* ---- one process ---- */

/*
 * Half of the processes use blocks of exactly the requested size, and some use
 * a GEMM kernel that the cost model would not select.
 */
static bool cold_open(struct cold_process *run)
{
    static const char *const plain[] = {"simt-128x128", "simt-64x64:2",
                                        "simt-32x64:3:2", "simt-32x64",
                                        "clblast"};
    static const char *const nvidia[] = {
        "3xtf32-128x128",       "3xtf32-64x64:2",
        "fp16x3-128x128",       "fp16x3-64x64",
        "wgmma-fp16x3-128x128", "wgmma-3xtf32-128x64:2",
        "wgmma-3xtf32-128x128", "recompute",
        "tf32-128x256",         "wgmma-tf32-128x128",
        "16bit-128x256",        "wgmma-16bit-128x64"};
    struct tandem_device_info info = {.struct_size = sizeof(info)};
    const char *keys[] = {"test.exact_block_size", "test.gemm_kernel"};
    const char *values[] = {below(run, 2) != 0 ? "1" : "0",
                            plain[below(run, 5)]};
    struct tandem_open_options options = {.struct_size = sizeof(options),
                                          .count = 1 + (below(run, 3) != 0),
                                          .keys = keys,
                                          .values = values};
    uint32_t count;
    snprintf(run->text, sizeof(run->text), "the device");
    if (call_failed(run, backend->device_count(&count), "device_count") ||
        call_failed(run, backend->device_describe(0, &info), "device_describe"))
        return false;
    if (strstr(info.vendor, "NVIDIA") != NULL && below(run, 2) != 0)
        values[1] = nvidia[below(run, 12)];
    if (call_failed(run, backend->open(0, &options, &run->device), "open"))
        return false;
    return !call_failed(run,
                        backend->stream_create(run->device, 0, &run->stream),
                        "stream_create");
}

int cold_call(uint64_t seed)
{
    static bool (*const calls[])(struct cold_process *) = {
        call_rows, call_rows,     call_rows, call_reduce,
        call_move, call_elements, call_gemm, call_gemm};
    struct cold_process run = {.seed = seed,
                               .state = seed * 0x9e3779b97f4a7c15u};
    if (plugin_load() == NULL || !cold_open(&run))
        return 1;
    bool right = true;
    for (uint32_t i = 0; right && i < CALLS; i++) {
        right = calls[below(&run, 8)](&run);
        right = buffers_free(&run) && right;
    }
    backend->stream_destroy(run.stream);
    backend->close(run.device);
    return right ? 0 : 1;
}
