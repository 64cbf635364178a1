/* SPDX-License-Identifier: Apache-2.0 */
/* Lists the sizes for which models are tried; see assumptions.h.  Has no state;
 * any thread may call the functions. */
#include <config.h>

#include "adapters/onnxruntime/assumptions.h"

#include <string.h>

#define MAX_LENGTHS 16u
#define COLOR_CHANNELS 3
/* Sides of square images that are tried as a last resort: detectors such as
 * YOLO can be exported for any multiple of 32, others for multiples of 16. */
#define SIDE_STEP 16
#define MAX_SIDE 1280

struct lengths {
    uint32_t count, typical;
    int64_t values[MAX_LENGTHS]; /* typical ones first */
};

/* Models often work for a single length, such as 77 tokens (CLIP), 3000 frames
 * (Whisper), or images of 320, 416 or 640 (YOLO). */
static const struct lengths sequence_lengths = {
    16,
    2,
    {128, 1024, 256, 512, 640, 64, 32, 224, 384, 77, 960, 2048, 3000, 16000, 16,
     8},
};
static const struct lengths image_lengths = {
    14,
    2,
    {224, 640, 256, 512, 320, 416, 384, 128, 1024, 64, 32, 480, 768, 299},
};
static const struct lengths volume_lengths = {4, 2, {64, 128, 32, 256}};
/* Samples of one or two channels of sound. */
static const struct lengths wave_lengths = {
    8, 1, {16000, 1024, 128, 640, 512, 256, 64, 32}};

static bool same_name(const char *a, const char *b)
{
    return a != NULL && b != NULL && a[0] != '\0' && strcmp(a, b) == 0;
}

static bool is_named_batch(const struct graph_value *value, uint32_t axis)
{
    const char *name = value->dimension_names[axis];

    return name != NULL && strstr(name, "batch") != NULL;
}

/* Returns true if the first axis is a batch: it is one of several, and no other
 * has the name of a batch. */
static bool is_batch_first(const struct graph_value *value)
{
    for (uint32_t k = 1; k < value->rank; k++) {
        if (is_named_batch(value, k))
            return false;
    }
    return value->rank != 1;
}

/* Returns true if the axis is a batch, or has the name of the batch of an
 * input. */
static bool is_batch(const struct graph *graph, const struct graph_value *value,
                     uint32_t axis)
{
    if (is_named_batch(value, axis) || (axis == 0 && is_batch_first(value)))
        return true;
    for (uint32_t i = 0; i < graph->input_count; i++) {
        const struct graph_value *other = &graph->values[graph->inputs[i]];

        if (other->rank > 1 && is_batch_first(other) &&
            same_name(other->dimension_names[0], value->dimension_names[axis]))
            return true;
    }
    return false;
}

/* Returns what the open axes of a value belong to. */
static enum axis_kind value_kind(const struct graph *graph,
                                 const struct graph_value *value)
{
    uint32_t open_axes = 0;

    for (uint32_t k = 0; k < value->rank; k++)
        open_axes += value->shape[k] < 0 && !is_batch(graph, value, k);
    return value->rank >= 5 && open_axes >= 3   ? AXIS_OF_VOLUME
           : value->rank >= 4 && open_axes >= 2 ? AXIS_OF_IMAGE
                                                : AXIS_OF_SEQUENCE;
}

/* Returns the kind of an axis: the smallest of the values that have an axis of
 * this name.  An attention mask of rank 4, for example, has the axes of
 * sequences. */
static enum axis_kind axis_kind(const struct graph *graph,
                                const struct graph_value *value, uint32_t axis)
{
    const char *name = value->dimension_names[axis];
    enum axis_kind kind = value_kind(graph, value);

    for (uint32_t i = 0; i < graph->input_count; i++) {
        const struct graph_value *other = &graph->values[graph->inputs[i]];

        for (uint32_t k = 0; k < other->rank; k++) {
            if (same_name(other->dimension_names[k], name) &&
                value_kind(graph, other) < kind)
                kind = value_kind(graph, other);
        }
    }
    return kind;
}

/* Returns true if the axis is that of the channels of an image or volume whose
 * axes are all open. */
static bool is_open_channel(const struct graph *graph,
                            const struct graph_value *value, uint32_t axis)
{
    if (axis != 1 || value_kind(graph, value) == AXIS_OF_SEQUENCE)
        return false;
    for (uint32_t k = 1; k < value->rank; k++) {
        if (value->shape[k] >= 0 || is_batch(graph, value, k))
            return false;
    }
    return true;
}

int64_t assumption_length(const struct graph *graph,
                          const struct assumption *assumption,
                          const struct graph_value *value, uint32_t axis)
{
    const char *name = value->dimension_names[axis];

    if (is_batch(graph, value, axis))
        return 1;
    if (assumption->empty_past && name != NULL &&
        strstr(name, "past") != NULL && strchr(name, '+') == NULL)
        return 0;
    if (is_open_channel(graph, value, axis))
        return COLOR_CHANNELS;
    return assumption->lengths[axis_kind(graph, value, axis)];
}

/* ---- the list ---- */

/* Properties of the open dimensions of a model. */
struct openness {
    bool ranks, past;
    bool known_tensor; /* an input has a known rank of at least 1 */
    bool waveform;     /* the open axes are those of sound */
    bool kinds[AXIS_KINDS];
};

/* Adds an input whose rank is known. */
static void openness_add(const struct graph *graph,
                         const struct graph_value *value, struct openness *out)
{
    int64_t channels = 1;

    out->known_tensor |= value->rank > 0;
    for (uint32_t k = 0; k < value->rank; k++) {
        const char *name = value->dimension_names[k];

        if (k > 0 && k + 1 < value->rank)
            channels *= value->shape[k];
        if (value->shape[k] >= 0)
            continue;
        out->past |= name != NULL && strstr(name, "past") != NULL;
        if (is_batch(graph, value, k))
            continue;
        out->kinds[axis_kind(graph, value, k)] = true;
        out->waveform &= k + 1 == value->rank && value->dtype == TANDEM_F32 &&
                         channels >= 1 && channels <= 2 && value->rank <= 3;
    }
}

static void openness_find(const struct graph *graph, struct openness *out)
{
    *out = (struct openness){.waveform = true};
    for (uint32_t i = 0; i < graph->input_count; i++) {
        const struct graph_value *value = &graph->values[graph->inputs[i]];

        if (rank_is_open(value))
            out->ranks = true;
        else
            openness_add(graph, value, out);
    }
    for (uint32_t i = 0; i < graph->node_count && !out->ranks; i++) {
        const struct graph_node *node = &graph->nodes[i];

        for (uint32_t k = 0; k < node->output_count && node->op == NULL; k++)
            out->ranks |= node->outputs[k] != NO_VALUE &&
                          !graph->values[node->outputs[k]].has_shape;
    }
    out->waveform &= out->kinds[AXIS_OF_SEQUENCE];
    if (out->ranks)
        out->kinds[AXIS_OF_IMAGE] = true;
}

static const struct lengths *kind_lengths(const struct openness *open,
                                          enum axis_kind kind)
{
    if (kind == AXIS_OF_SEQUENCE && open->waveform)
        return &wave_lengths;
    return kind == AXIS_OF_SEQUENCE ? &sequence_lengths
           : kind == AXIS_OF_IMAGE  ? &image_lengths
                                    : &volume_lengths;
}

/* Sets the lengths of all kinds to number `i` of their lists. */
static void set_lengths(const struct openness *open, uint32_t i,
                        struct assumption *out)
{
    for (uint32_t kind = 0; kind < AXIS_KINDS; kind++) {
        const struct lengths *lengths = kind_lengths(open, kind);

        out->lengths[kind] =
            lengths->values[i < lengths->count ? i : lengths->count - 1];
    }
    /* Masks of attention over a past have the rank of images, too. */
    if (open->past)
        out->lengths[AXIS_OF_IMAGE] = out->lengths[AXIS_OF_SEQUENCE];
}

/* Appends the pairs of lengths of sequences and images, for models that read
 * text and images of one size each. */
static uint32_t add_pairs(const struct openness *open, struct assumption *out,
                          uint32_t count)
{
    const struct lengths *sequence = kind_lengths(open, AXIS_OF_SEQUENCE);
    const struct assumption first = out[0];

    for (uint32_t i = 0; i < image_lengths.count; i++) {
        for (uint32_t k = 0; k < sequence->count && count < MAX_ASSUMPTIONS;
             k++) {
            out[count] = first;
            out[count].lengths[AXIS_OF_IMAGE] = image_lengths.values[i];
            out[count++].lengths[AXIS_OF_SEQUENCE] = sequence->values[k];
        }
    }
    return count;
}

/* Appends all sizes of images, for models that were exported for one size. */
static uint32_t add_sides(struct assumption *out, uint32_t count)
{
    const struct assumption first = out[0];

    for (int64_t side = SIDE_STEP; side <= MAX_SIDE && count < MAX_ASSUMPTIONS;
         side += SIDE_STEP) {
        out[count] = first;
        out[count].last_resort = true;
        out[count++].lengths[AXIS_OF_IMAGE] = side;
    }
    return count;
}

uint32_t assumptions_list(const struct graph *graph, struct assumption *out,
                          uint32_t *out_typical)
{
    static const uint32_t unknown[] = {4, 3, 2, 1, 0}, scalar[] = {0, 4, 3, 2};
    const uint32_t *ranks;
    uint32_t rank_count = 1, count = 0, length_count = 1;
    struct openness open;

    openness_find(graph, &open);
    /* Next to other tensors, rank 0 is rather a scalar than unknown. */
    ranks = open.known_tensor ? scalar : unknown;
    if (open.ranks)
        rank_count = open.known_tensor ? 4 : 5;
    *out_typical = 1;
    for (uint32_t kind = 0; kind < AXIS_KINDS; kind++) {
        const struct lengths *lengths = kind_lengths(&open, kind);

        if (open.kinds[kind] && lengths->count > length_count)
            length_count = lengths->count;
        if (open.kinds[kind] && lengths->typical > *out_typical)
            *out_typical = lengths->typical;
    }
    for (uint32_t past = 0; past <= (open.past ? 1 : 0); past++) {
        for (uint32_t r = 0; r < rank_count; r++) {
            for (uint32_t i = 0; i < length_count; i++) {
                out[count].rank = ranks[r];
                out[count].empty_past = past > 0;
                out[count].last_resort = false;
                set_lengths(&open, i, &out[count++]);
            }
        }
    }
    if (open.kinds[AXIS_OF_SEQUENCE] && open.kinds[AXIS_OF_IMAGE] &&
        !open.past && !open.ranks)
        count = add_pairs(&open, out, count);
    else if (open.kinds[AXIS_OF_IMAGE] && !open.past && !open.ranks)
        count = add_sides(out, count);
    return count;
}
