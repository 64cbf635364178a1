/* SPDX-License-Identifier: Apache-2.0 */
/* Lowers matrix products; see lower.h.
 *
 * tandem_matmul multiplies matrices, or batches of them with one stride from
 * matrix to matrix.  Products of more axes are expressed by it in this order:
 * axes that follow each other in memory are merged into one; rows are merged
 * with a batch if b has no batch; what remains is looped over if it is short,
 * else the operands are copied. */
#include <config.h>

#include "adapters/onnxruntime/lower_ops.h"
#include "adapters/onnxruntime/onnx_operator.h"

#include <inttypes.h>
#include <string.h>

/* If the batch axes of the operands do not merge into one, at most this many
 * launches compute the products; for more, the operands are copied to
 * contiguous memory first.  On a GPU, a copy takes about as long as a launch.
 */
#define MAX_LOOPED_PRODUCTS 4

/* Operands of c = a b with equal batch axes, as many as possible of which are
 * merged.  Axis i of the batch has lengths[i] elements. */
struct batched_matmul {
    struct operand a, b, c;
    uint32_t batch_rank;
    int64_t lengths[TANDEM_MAX_RANK];
    int64_t a_strides[TANDEM_MAX_RANK], b_strides[TANDEM_MAX_RANK],
        c_strides[TANDEM_MAX_RANK];
};

/* Attributes of a product. */
struct gemm_options {
    double alpha, beta;
    struct operand *bias; /* NULL, or with the length of c's last axis */
    uint32_t activation;
    const double *activation_parameters; /* 2, unless there is no activation */
};

/* Returns a view of rank 2 (batch_length 0) or 3 of an operand's matrices. */
static struct operand matrices(const struct operand *operand,
                               int64_t first_element, int64_t batch_length,
                               int64_t batch_stride)
{
    const uint32_t rank = operand->view.rank;
    const uint32_t first = batch_length > 0 ? 1 : 0;
    struct operand out = *operand;

    out.view.rank = first + 2;
    out.view.first_element += first_element;
    out.view.shape[0] = batch_length;
    out.view.strides[0] = batch_stride;
    for (uint32_t i = 0; i < 2; i++) {
        out.view.shape[first + i] = operand->view.shape[rank - 2 + i];
        out.view.strides[first + i] = operand->view.strides[rank - 2 + i];
    }
    return out;
}

/* Returns true if tandem_matmul uses the matrix without a copy. */
static bool matrix_is_direct(const struct form_view *view)
{
    const int64_t *shape = &view->shape[view->rank - 2];
    const int64_t *strides = &view->strides[view->rank - 2];

    return ((strides[1] == 1 || shape[1] == 1) &&
            (shape[0] == 1 || strides[0] >= shape[1])) ||
           ((strides[0] == 1 || shape[0] == 1) &&
            (shape[1] == 1 || strides[1] >= shape[0]));
}

static bool append_gemm(struct lowering *l, const struct gemm_options *options,
                        struct operand *a, struct operand *b, struct operand *c)
{
    struct form_step step = step_make(l, TANDEM_OP_GEMM);

    step.alpha = options->alpha;
    step.beta = options->beta;
    step.activation = options->activation;
    for (uint32_t i = 0; i < 2 && step.activation != TANDEM_OP_INVALID; i++)
        step.activation_parameters[i] = options->activation_parameters[i];
    return step_add_input(l, &step, a) && step_add_input(l, &step, b) &&
           step_add_input(l, &step, options->bias) && lower_step(l, &step, c);
}

/* Merges batch axes that follow each other in all operands, and drops axes of
 * length 1. */
static void batch_merge(struct batched_matmul *p)
{
    uint32_t kept = 0;

    for (uint32_t i = 0; i < p->batch_rank; i++) {
        if (p->lengths[i] == 1)
            continue;
        if (kept > 0 &&
            p->a_strides[kept - 1] == p->a_strides[i] * p->lengths[i] &&
            p->b_strides[kept - 1] == p->b_strides[i] * p->lengths[i] &&
            p->c_strides[kept - 1] == p->c_strides[i] * p->lengths[i]) {
            p->lengths[kept - 1] *= p->lengths[i];
        } else {
            p->lengths[kept++] = p->lengths[i];
        }
        p->a_strides[kept - 1] = p->a_strides[i];
        p->b_strides[kept - 1] = p->b_strides[i];
        p->c_strides[kept - 1] = p->c_strides[i];
    }
    p->batch_rank = kept;
}

/* Sets lengths and strides of the batch from the operands, whose batch axes
 * have been expanded to c's. */
static void batch_init(struct batched_matmul *p)
{
    p->batch_rank = p->c.view.rank - 2;
    for (uint32_t i = 0; i < p->batch_rank; i++) {
        p->lengths[i] = p->c.view.shape[i];
        p->a_strides[i] = p->a.view.strides[i];
        p->b_strides[i] = p->b.view.strides[i];
        p->c_strides[i] = p->c.view.strides[i];
    }
    batch_merge(p);
}

/* If all matrices share b, the rows of a are one long matrix, if its batch axis
 * continues its rows. */
static void batch_merge_rows(struct batched_matmul *p)
{
    const uint32_t rank = p->a.view.rank;
    const int64_t rows = p->a.view.shape[rank - 2];

    if (p->batch_rank != 1 || p->b_strides[0] != 0 ||
        (rows != 1 && p->a_strides[0] != p->a.view.strides[rank - 2] * rows))
        return;
    if (rows == 1)
        p->a.view.strides[rank - 2] = p->a_strides[0];
    p->a.view.shape[rank - 2] = rows * p->lengths[0];
    p->c.view.shape[rank - 2] = rows * p->lengths[0];
    p->batch_rank = 0;
}

/* Appends the products of all axes but `inner`, which is the batch of each. */
static bool append_loop(struct lowering *l, const struct gemm_options *options,
                        const struct batched_matmul *p, uint32_t inner)
{
    int64_t position[TANDEM_MAX_RANK] = {0};

    for (;;) {
        int64_t a_first = 0, b_first = 0, c_first = 0;
        struct operand a, b, c;
        uint32_t axis;

        for (axis = 0; axis < p->batch_rank; axis++) {
            a_first += position[axis] * p->a_strides[axis];
            b_first += position[axis] * p->b_strides[axis];
            c_first += position[axis] * p->c_strides[axis];
        }
        a = matrices(&p->a, a_first, p->lengths[inner], p->a_strides[inner]);
        b = matrices(&p->b, b_first, p->lengths[inner], p->b_strides[inner]);
        c = matrices(&p->c, c_first, p->lengths[inner], p->c_strides[inner]);
        if (!append_gemm(l, options, &a, &b, &c))
            return false;
        for (axis = 0; axis < p->batch_rank; axis++) {
            if (axis != inner && ++position[axis] < p->lengths[axis])
                break;
            position[axis] = 0;
        }
        if (axis == p->batch_rank)
            return true;
    }
}

/* Exchanges the last two axes. */
static void transpose_matrix(struct operand *operand)
{
    struct form_view *view = &operand->view;
    const uint32_t row = view->rank - 2, column = view->rank - 1;
    const int64_t length = view->shape[row], stride = view->strides[row];

    view->shape[row] = view->shape[column];
    view->strides[row] = view->strides[column];
    view->shape[column] = length;
    view->strides[column] = stride;
}

/* Replaces the operand by a copy whose batch axes follow each other in memory.
 * A transposed matrix stays transposed, which is the faster copy. */
static bool merge_batch_axes(struct lowering *l, struct operand *operand)
{
    const struct form_view *view = &operand->view;
    const bool transposed =
        view->strides[view->rank - 2] == 1 && view->shape[view->rank - 2] > 1;

    if (transposed)
        transpose_matrix(operand);
    if (!lower_contiguous(l, operand, operand))
        return false;
    if (transposed)
        transpose_matrix(operand);
    return true;
}

/* Copies an operand whose matrices tandem_matmul cannot use as they are. */
static bool make_direct(struct lowering *l, struct operand *operand)
{
    if (matrix_is_direct(&operand->view))
        return true;
    return lower_contiguous(l, operand, operand);
}

/* Appends c = a b for operands of rank 2 or more with equal batch axes. */
static bool append_batched(struct lowering *l,
                           const struct gemm_options *options,
                           struct batched_matmul *p)
{
    struct operand a, b, c;
    uint32_t inner = 0;
    int64_t products = 1;

    if (!make_direct(l, &p->a) || !make_direct(l, &p->b))
        return false;
    batch_init(p);
    for (uint32_t i = 0; i < p->batch_rank; i++) {
        products *= p->lengths[i];
        if (p->lengths[i] > p->lengths[inner])
            inner = i;
    }
    if (p->batch_rank > 1 &&
        products / p->lengths[inner] > MAX_LOOPED_PRODUCTS) {
        if (!merge_batch_axes(l, &p->a) || !merge_batch_axes(l, &p->b))
            return false;
        batch_init(p);
    }
    if (p->batch_rank > 1)
        return append_loop(l, options, p, inner);
    batch_merge_rows(p);
    a = matrices(&p->a, 0, p->batch_rank == 1 ? p->lengths[0] : 0,
                 p->a_strides[0]);
    b = matrices(&p->b, 0, p->batch_rank == 1 ? p->lengths[0] : 0,
                 p->b_strides[0]);
    c = matrices(&p->c, 0, p->batch_rank == 1 ? p->lengths[0] : 0,
                 p->c_strides[0]);
    return append_gemm(l, options, &a, &b, &c);
}

/* Expands the batch axes of an operand of rank >= 2 to those of `shape`. */
static bool expand_batch(struct lowering *l, const struct operand *operand,
                         uint32_t rank, const int64_t *shape,
                         struct operand *out)
{
    int64_t expanded[TANDEM_MAX_RANK];

    memcpy(expanded, shape, rank * sizeof(shape[0]));
    for (uint32_t i = 0; i < 2; i++)
        expanded[rank - 2 + i] =
            operand->view.shape[operand->view.rank - 2 + i];
    return lower_expand(l, operand, rank, expanded, out);
}

/* Computes the shape of a b, with the operands' common batch axes. */
static bool matmul_shape(struct lowering *l, const struct operand *a,
                         const struct operand *b, uint32_t *out_rank,
                         int64_t *out_shape)
{
    struct operand batch_a = *a, batch_b = *b;
    struct operand *const batches[] = {&batch_a, &batch_b};
    const int64_t k = a->view.shape[a->view.rank - 1];

    if (k != b->view.shape[b->view.rank - 2])
        return lower_fail(
            l, "the inner lengths %" PRId64 " and %" PRId64 " differ", k,
            b->view.shape[b->view.rank - 2]);
    batch_a.view.rank -= 2;
    batch_b.view.rank -= 2;
    if (!lower_broadcast(l, batches, 2, out_rank, out_shape))
        return false;
    out_shape[(*out_rank)++] = a->view.shape[a->view.rank - 2];
    out_shape[(*out_rank)++] = b->view.shape[b->view.rank - 1];
    return true;
}

static void options_init(struct lowering *l, struct gemm_options *options)
{
    const struct graph_epilogue *epilogue = &l->node->epilogue;

    *options = (struct gemm_options){
        .alpha = epilogue->scale != 0 ? epilogue->scale : 1,
        .bias =
            epilogue->bias != NO_VALUE ? &l->operands[epilogue->bias] : NULL,
        .activation = epilogue->activation,
        .activation_parameters = epilogue->parameters,
    };
}

/* Appends an axis of length 1 before or after the axes of a vector. */
static struct operand vector_to_matrix(const struct operand *vector,
                                       bool is_row)
{
    struct operand out = *vector;
    const uint32_t axis = is_row ? 1 : 0;

    out.view.rank = 2;
    out.view.shape[axis] = vector->view.shape[0];
    out.view.strides[axis] = vector->view.strides[0];
    out.view.shape[1 - axis] = 1;
    out.view.strides[1 - axis] = 1;
    return out;
}

/* Removes the axes that vector_to_matrix added from the product. */
static struct operand drop_vector_axes(const struct operand *product, bool row,
                                       bool column)
{
    const uint32_t rank = product->view.rank;
    struct operand out = *product;

    out.view.rank = 0;
    for (uint32_t i = 0; i < rank; i++) {
        if ((row && i == rank - 2) || (column && i == rank - 1))
            continue;
        out.view.shape[out.view.rank++] = product->view.shape[i];
    }
    view_set_contiguous(&out.view);
    return out;
}

/* Sets the node's output, or the columns of a merged product that belong to
 * each of its outputs. */
static bool set_outputs(struct lowering *l, const struct operand *product)
{
    const int64_t *parts = l->node->epilogue.parts;
    const uint32_t last = product->view.rank - 1;
    struct operand part = *product;

    if (parts == NULL)
        return lower_output(l, 0, product);
    for (uint32_t i = 0; i < l->node->output_count; i++) {
        part.view.shape[last] = parts[i];
        lower_output(l, i, &part);
        part.view.first_element += parts[i];
    }
    return true;
}

/* Appends the product of two operands of any rank. */
static bool append_matmul(struct lowering *l, struct gemm_options *options,
                          const struct operand *left,
                          const struct operand *right)
{
    const bool row = left->view.rank == 1, column = right->view.rank == 1;
    struct batched_matmul p = {.batch_rank = 0};
    struct operand a, b, out;
    int64_t shape[2 * TANDEM_MAX_RANK];
    uint32_t rank;

    if (left->view.rank == 0 || right->view.rank == 0)
        return lower_fail(l, "an operand has rank 0");
    a = row ? vector_to_matrix(left, true) : *left;
    b = column ? vector_to_matrix(right, false) : *right;
    if (!matmul_shape(l, &a, &b, &rank, shape) ||
        !expand_batch(l, &a, rank, shape, &p.a) ||
        !expand_batch(l, &b, rank, shape, &p.b) ||
        !lower_new(l, TANDEM_F32, rank, shape, &p.c))
        return false;
    out = p.c;
    if (operand_elements(&out) > 0 && !append_batched(l, options, &p))
        return false;
    out = drop_vector_axes(&out, row, column);
    return set_outputs(l, &out);
}

bool lower_matmul(struct lowering *l)
{
    struct gemm_options options;

    options_init(l, &options);
    return append_matmul(l, &options, lower_input_operand(l, 0),
                         lower_input_operand(l, 1));
}

/* Moves the first axis after the batch axes: [m, batch..., k] becomes
 * [batch..., m, k]. */
static void batch_transpose(struct operand *operand)
{
    struct form_view *view = &operand->view;
    const int64_t length = view->shape[0], stride = view->strides[0];

    for (uint32_t i = 0; i + 2 < view->rank; i++) {
        view->shape[i] = view->shape[i + 1];
        view->strides[i] = view->strides[i + 1];
    }
    view->shape[view->rank - 2] = length;
    view->strides[view->rank - 2] = stride;
}

/* com.microsoft FusedMatMul: alpha op(a) op(b).  Transposing a vector changes
 * nothing. */
bool lower_fused_matmul(struct lowering *l)
{
    struct operand a = *lower_input_operand(l, 0);
    struct operand b = *lower_input_operand(l, 1);
    struct gemm_options options;

    options_init(l, &options);
    options.alpha *= graph_real(l->node, "alpha", 1);
    if (graph_integer(l->node, "transBatchA", 0) != 0 && a.view.rank > 2)
        batch_transpose(&a);
    if (graph_integer(l->node, "transBatchB", 0) != 0 && b.view.rank > 2)
        batch_transpose(&b);
    if (graph_integer(l->node, "transA", 0) != 0 && a.view.rank > 1)
        transpose_matrix(&a);
    if (graph_integer(l->node, "transB", 0) != 0 && b.view.rank > 1)
        transpose_matrix(&b);
    return append_matmul(l, &options, &a, &b);
}

/* Adds the third input of Gemm: as a bias if it has one row and beta is 1, else
 * it is copied to the output first and then scaled by beta. */
static bool gemm_add_c(struct lowering *l, struct gemm_options *options,
                       struct operand *addend, struct operand *out)
{
    const double beta = graph_real(l->node, "beta", 1);
    const uint32_t rank = addend->view.rank;
    const int64_t n = out->view.shape[1];
    struct operand expanded;

    if (beta == 0)
        return true;
    if (beta == 1 && options->bias == NULL && rank > 0 &&
        addend->view.shape[rank - 1] == n && operand_elements(addend) == n &&
        view_is_contiguous(&addend->view)) {
        addend->view.shape[0] = n;
        addend->view.strides[0] = 1;
        addend->view.rank = 1;
        options->bias = addend;
        return true;
    }
    options->beta = beta;
    return lower_expand(l, addend, 2, out->view.shape, &expanded) &&
           lower_copy(l, &expanded, out);
}

bool lower_gemm(struct lowering *l)
{
    struct operand a = *lower_input_operand(l, 0);
    struct operand b = *lower_input_operand(l, 1);
    struct operand *c = lower_input_operand(l, 2), addend, out;
    struct gemm_options options;
    struct batched_matmul p = {.batch_rank = 0};
    int64_t shape[2 * TANDEM_MAX_RANK];
    uint32_t rank;

    if (a.view.rank != 2 || b.view.rank != 2)
        return lower_fail(l, "the operands do not have rank 2");
    options_init(l, &options);
    options.alpha *= graph_real(l->node, "alpha", 1);
    if (graph_integer(l->node, "transA", 0) != 0)
        transpose_matrix(&a);
    if (graph_integer(l->node, "transB", 0) != 0)
        transpose_matrix(&b);
    if (!matmul_shape(l, &a, &b, &rank, shape) ||
        !lower_new(l, TANDEM_F32, rank, shape, &p.c))
        return false;
    p.a = a;
    p.b = b;
    if (c != NULL) {
        addend = *c;
        if (!gemm_add_c(l, &options, &addend, &p.c))
            return false;
    }
    if (operand_elements(&p.c) == 0)
        return set_outputs(l, &p.c);
    out = p.c;
    return append_batched(l, &options, &p) && set_outputs(l, &out);
}
