/* SPDX-License-Identifier: Apache-2.0 */
/* Plans rotary embeddings: cl/rotary_embedding.cl. */
#include "common/op_rotary_embedding.h"
#include "opencl/plan/kernel_step.h"
#include "rotary_embedding.cl"

static const struct kernel_define rotary_defines[] = {
    DEFINE_FIELD("INDEXED", op_form), DEFINE_TYPE("POSITION", 0),
    END_OF_DEFINES};
DECLARE_KERNEL_SOURCE(rotary_embedding);
static const struct kernel_info kernel_rotary_embedding = {
    KERNEL_SOURCE(rotary_embedding), .function = "rotary_embedding",
    .defines = rotary_defines, .param_bytes = sizeof(struct rotary_params)};

/* Copies `count` strides in reverse order. */
static void strides_reverse(int64_t *out, const int64_t *strides,
                            uint32_t count)
{
    for (uint32_t i = 0; i < count; i++)
        out[i] = strides[count - 1 - i];
}

static void plan_rotary_embedding(struct launch_plan *plan,
                                  const struct op_request *request)
{
    struct rotary_embedding by;
    rotary_embedding_read(&by, request->op, request->inputs,
                          request->input_count, request->outputs[0]);
    struct iteration_space space = {
        .rank = 4,
        .shape = {by.batch, by.heads, by.tokens, by.width - by.pairs}};
    space.elements =
        space.shape[0] * space.shape[1] * space.shape[2] * space.shape[3];
    const struct tandem_tensor_desc *positions = by.positions;
    const struct kernel_key key = {
        .kernel = &kernel_rotary_embedding,
        .op_form = positions != NULL,
        .index_64bit = needs_64bit_index(&space),
        .group_log2 = request->group_log2,
        .types = {
            kernel_type_of(positions != NULL ? positions->dtype : TANDEM_I32)}};
    struct kernel_step *step = plan_add_step(plan, &key, NULL);
    struct rotary_params *out = (struct rotary_params *)step->params;
    out->items = (uint64_t)space.elements;
    out->x_offset = element_offset(request->inputs[0]);
    out->cos_offset = element_offset(request->inputs[1]);
    out->sin_offset = element_offset(request->inputs[2]);
    out->out_offset = element_offset(request->outputs[0]);
    strides_reverse(out->x_strides, by.x, 4);
    strides_reverse(out->out_strides, by.out, 4);
    strides_reverse(out->cos_strides, by.caches[0], 3);
    strides_reverse(out->sin_strides, by.caches[1], 3);
    out->pairs = (uint64_t)by.pairs;
    out->step = by.interleaved ? 2 : 1;
    out->distance = by.interleaved ? 1 : by.pairs;
    fast_divmod_fill(&out->space, &space);
    step_add_tensor(step, request->outputs[0], true,
                    AT(rotary_params, out_offset));
    step_add_tensor(step, request->inputs[0], false,
                    AT(rotary_params, x_offset));
    step_add_tensor(step, request->inputs[1], false,
                    AT(rotary_params, cos_offset));
    step_add_tensor(step, request->inputs[2], false,
                    AT(rotary_params, sin_offset));
    if (positions != NULL) {
        out->position_offset = element_offset(positions);
        strides_reverse(out->position_strides, positions->strides, 2);
        out->length = by.length;
    }
    /* Without positions, x is the argument that the kernel does not read. */
    step_add_tensor(
        step, positions != NULL ? positions : request->inputs[0], false,
        positions != NULL ? AT(rotary_params, position_offset) : NO_OFFSET);
    step_set_items(step, out->items);
}

const struct plan_class plan_class_rotary_embedding = {
    .plan = plan_rotary_embedding};
