/* SPDX-License-Identifier: Apache-2.0 */
/* Dispatches launch calls to the operators.  A fast path validates and runs the
 * most frequent calls: small element-wise operators on contiguous tensors of
 * the same shape.  All other calls, including invalid ones, take the general
 * path.  Any thread may call, but only one at a time for a stream. */
#include "config.h"

#include "common/fp_environment.h"
#include "common/last_error.h"
#include "common/op_class.h"
#include "cpu/attention/attention.h"
#include "cpu/conv/conv.h"
#include "cpu/gemm/blas_guard.h"
#include "cpu/kernels/elementwise.h"
#include "cpu/objects.h"

/* Maximum number of elements of a call on the fast path.  Larger calls take the
 * general path, which can use several threads. */
#define FAST_ELEMENTS 8192

static const struct cpu_class *const classes[TANDEM_CLASS_END] = {
#define CPU_CLASS_ENTRY(ID, number, name) [number] = &cpu_class_##name,
    TANDEM_CLASSES(CPU_CLASS_ENTRY)
#undef CPU_CLASS_ENTRY
};

/* ---- the fast path ------------------------------------------------------ */

/* Properties of an operator, from TANDEM_OPERATORS, for the fast path. */
struct shortcut {
    uint8_t op_class, inputs, ints, floats;
};
static const struct shortcut shortcuts[TANDEM_OP_ID_END] = {
#define SHORTCUT(ID, number, name, class, inputs, outputs, int_names, ints,    \
                 float_names, floats, ...)                                     \
    [number] = {TANDEM_CLASS_##class, inputs, ints, floats},
    TANDEM_OPERATORS(SHORTCUT)
#undef SHORTCUT
};

/* Returns the number of elements of a contiguous tensor, or 0 if the tensor is
 * not contiguous or is empty. */
static int64_t dense_elements(const struct tandem_tensor_desc *tensor)
{
    int64_t n = 1;
    if (tensor->rank > TANDEM_MAX_RANK)
        return 0;
    for (uint32_t axis = tensor->rank; axis-- > 0;) {
        int64_t extent = tensor->shape[axis];
        if (extent <= 0 || (extent != 1 && tensor->strides[axis] != n) ||
            __builtin_mul_overflow(n, extent, &n))
            return 0;
    }
    return n;
}

/* Returns true if `input` is contiguous f32 and has the shape of `output`. */
static inline bool dense_alike(const struct tandem_tensor_desc *input,
                               const struct tandem_tensor_desc *output)
{
    if (input->dtype != TANDEM_F32 || input->rank != output->rank)
        return false;
    for (uint32_t axis = 0; axis < output->rank; axis++)
        if (input->shape[axis] != output->shape[axis] ||
            (input->shape[axis] != 1 &&
             input->strides[axis] != output->strides[axis]))
            return false;
    return true;
}

/* Returns the address of the tensor's data.  Returns NULL if the buffer is not
 * live, is mapped or belongs to another device, if the tensor's offset is
 * misaligned, or if fewer than `bytes` bytes follow the offset. */
static inline unsigned char *dense_data(const struct tandem_device *device,
                                        const struct tandem_tensor_desc *tensor,
                                        uint64_t bytes, uint64_t alignment)
{
    const struct tandem_buffer *buffer = tensor->buffer;
    if (!handle_live(&buffer_pool, buffer) || buffer->owned.device != device ||
        __atomic_load_n(&buffer->maps, __ATOMIC_RELAXED) != 0 ||
        tensor->byte_offset > buffer->bytes ||
        bytes > buffer->bytes - tensor->byte_offset ||
        tensor->byte_offset % alignment != 0)
        return NULL;
    return buffer->base + tensor->byte_offset;
}

/* Validates a launch call for the fast path and stores its operands in `row`.
 * Returns false if the call needs the general path, which reports errors. */
static bool row_fill(struct row *row, struct params *params, float *scalar,
                     const struct work *work)
{
    const struct tandem_op *op = work->op;
    const struct shortcut *shortcut = &shortcuts[op->id];
    const struct tandem_tensor_desc *out = work->outputs[0];
    const struct cpu_class *class = classes[shortcut->op_class];
    uint32_t scalars = 0;
    if (class == NULL || class->small_output_dtype == 0 ||
        work->output_count != 1 || work->input_count != shortcut->inputs ||
        out == NULL || out->dtype != class->small_output_dtype)
        return false;
    bool compares = out->dtype == TANDEM_BOOL;
    if (op->int_count != shortcut->ints ||
        (op->flags & ~(uint32_t)(TANDEM_OP_ALLOW_NONDETERMINISM |
                                 TANDEM_OP_ALLOW_TF32)) != 0)
        return false;
    int64_t n = dense_elements(out);
    if (n == 0 || n > FAST_ELEMENTS)
        return false;
    uint64_t bytes = (uint64_t)n * 4, out_bytes = compares ? bytes / 4 : bytes;
    unsigned char *to =
        dense_data(work->device, out, out_bytes, compares ? 1 : 4);
    if (to == NULL)
        return false;
    for (uint32_t i = 0; i < shortcut->inputs; i++) {
        const struct tandem_tensor_desc *in = work->inputs[i];
        if (in == NULL) {
            if (shortcut->inputs == 1 || ++scalars > 1 ||
                !op_class_get(shortcut->op_class)->scalars ||
                op->float_count < 1 || op->floats == NULL)
                return false;
            *scalar = (float)op->floats[0];
            row->in[i] = scalar;
            row->constants |= 1u << i;
            continue;
        }
        if (!dense_alike(in, out))
            return false;
        const unsigned char *from = dense_data(work->device, in, bytes, 4);
        if (from == NULL)
            return false;
        bool apart = from >= to + out_bytes || to >= from + bytes;
        bool same = !compares && in->buffer == out->buffer && from == to;
        if (!apart && !same)
            return false;
        row->in[i] = from;
    }
    if (op->float_count != shortcut->floats + scalars)
        return false;
    if (shortcut->ints + shortcut->floats > 0) {
        if ((shortcut->ints > 0 && op->ints == NULL) ||
            (shortcut->floats > 0 && op->floats == NULL))
            return false;
        const struct op_class *rules = op_class_get(shortcut->op_class);
        const struct op_call call = {.info = operator_lookup(op->id), .op = op};
        if (rules->check != NULL && rules->check(&call) != TANDEM_OK)
            return false;
        elementwise_params(params, op);
    }
    row->n = n;
    row->out[0] = to;
    row->params = params;
    return true;
}

static bool launch_fast(const struct work *work)
{
    struct row row;
    struct params params;
    float scalar;
    if (work->op == NULL || work->op->struct_size != sizeof(*work->op) ||
        work->op->id >= TANDEM_OP_ID_END || work->inputs == NULL ||
        work->outputs == NULL || work->output_count == 0)
        return false;
    row.constants = 0;
    params.flag = false;
    if (!row_fill(&row, &params, &scalar, work))
        return false;
    work->device->kernels->rows[work->op->id](&row);
    return true;
}

/* ---- convolution -------------------------------------------------------- */

static enum tandem_status conv_class_run(const struct work *work)
{
    struct conv conv;
    struct conv_job job;
    struct direct_job direct;
    struct tandem_buffer *workspace;
    if (!conv_init(&conv, work))
        return TANDEM_OK;
    enum tandem_status status = conv.uses_gemm ? blas_ready() : TANDEM_OK;
    if (status != TANDEM_OK)
        return status;
    status = memory_alloc(work->device,
                          conv.uses_gemm ? conv_gemm_prepare(&job, &conv)
                                         : conv_direct_prepare(&direct, &conv),
                          &workspace);
    if (status != TANDEM_OK)
        return status;
    if (conv.uses_gemm)
        conv_gemm_run(&job, workspace->base);
    else
        conv_direct_run(&direct, workspace->base);
    memory_free(workspace);
    return TANDEM_OK;
}

const struct cpu_class cpu_class_conv = {.run = conv_class_run};

/* ---- attention ---------------------------------------------------------- */

static enum tandem_status attention_class_run(const struct work *work)
{
    struct attention_job job;
    struct tandem_buffer *workspace;
    uint64_t bytes = attention_prepare(&job, work);
    enum tandem_status status = bytes == 0 ? TANDEM_OK : blas_ready();
    if (bytes == 0 || status != TANDEM_OK)
        return status;
    status = memory_alloc(work->device, bytes, &workspace);
    if (status != TANDEM_OK)
        return status;
    attention_run(&job, workspace->base);
    memory_free(workspace);
    return TANDEM_OK;
}

const struct cpu_class cpu_class_attention = {.run = attention_class_run};

/* ---- general path ------------------------------------------------------- */

const struct cpu_class *cpu_class_of(uint32_t op)
{
    return classes[operator_lookup(op)->op_class];
}

static enum tandem_status launch_checked(const struct work *work)
{
    enum tandem_status status =
        check_op(work->op, work->inputs, work->input_count, work->outputs,
                 work->output_count, buffer_span, work->device);
    if (status == TANDEM_OK && work->op->id == TANDEM_OP_GEMM)
        status = argument_error("launch: use gemm for a matrix product");
    return status == TANDEM_OK ? cpu_class_of(work->op->id)->run(work) : status;
}

enum tandem_status launch_supports(
    struct tandem_device *device, const struct tandem_op *op,
    const struct tandem_tensor_desc *const *inputs, uint32_t input_count,
    const struct tandem_tensor_desc *const *outputs, uint32_t output_count)
{
    enum tandem_status status = device_check(device);
    if (status == TANDEM_OK)
        status = check_op(op, inputs, input_count, outputs, output_count, NULL,
                          NULL);
    return status;
}

enum tandem_status launch_run(struct tandem_stream *stream,
                              const struct tandem_op *op,
                              const struct tandem_tensor_desc *const *inputs,
                              uint32_t input_count,
                              const struct tandem_tensor_desc *const *outputs,
                              uint32_t output_count)
{
    if (!handle_live(&stream_pool, stream))
        return stream_check(stream);
    struct work work = {stream->owned.device, op,          inputs, outputs,
                        input_count,          output_count};
    enum tandem_status status = TANDEM_OK;
    struct float_env host = float_env_enter();
    if (!launch_fast(&work))
        status = launch_checked(&work);
    float_env_leave(host);
    return status;
}
