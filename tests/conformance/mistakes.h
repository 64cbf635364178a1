/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tables of invalid calls of launch and of gemm. Each entry makes
 * one mistake in a valid call. The functions only fill structs and may be
 * called from any thread.
 */
#ifndef TANDEM_CONFORMANCE_MISTAKES_H
#define TANDEM_CONFORMANCE_MISTAKES_H

#include "../../tools/common/tensor_call.h"

#include "operand.h"
#include "operator_list.h"

/* Size of each buffer of the calls below. */
#define MISTAKE_BYTES 4096u

enum mistake_flags {
    /*
     * The header requires TANDEM_INVALID_ARGUMENT, whatever operators the
     * plugin supports. For other mistakes a plugin may return
     * TANDEM_UNSUPPORTED, because the header does not say which status comes
     * first if a call is neither valid nor supported.
     */
    ALWAYS_INVALID = 1,
    /* Only launch and gemm detect it; prepare knows no buffers. */
    IN_BUFFER = 2,
    /* The sizes overflow. The header does not require a query to detect it. */
    IN_SIZE = 4,
    /*
     * A later version of the header may define the call, so even Tandem's own
     * plugins may return TANDEM_UNSUPPORTED. tests/plugin/check-messages checks
     * that they return TANDEM_INVALID_ARGUMENT for other mistakes.
     */
    MAYBE_LATER = 8,
    /* A mistake in a buffer that the header requires to be rejected. */
    INVALID_BUFFER = IN_BUFFER | ALWAYS_INVALID
};

/* ---- launch ---- */

#define MISTAKE_OPERANDS 4u

/* The arguments of a prepared operator and its launch.  All operands are in one
 * buffer: input i starts at byte 512 i, output k at byte 2048 + 512 k. */
struct mistaken_call {
    /*
     * The caller sets these: a buffer of MISTAKE_BYTES bytes, one of another
     * device and one that was freed.
     */
    struct tandem_buffer *buffer, *other_device_object, *freed;

    const struct op_row *row;
    struct tandem_op op;
    const struct tandem_op *op_pointer;
    int64_t ints[TANDEM_MAX_ATTRIBUTES];
    double floats[TANDEM_MAX_ATTRIBUTES];
    struct tandem_tensor_desc ins[MISTAKE_OPERANDS], outs[MISTAKE_OPERANDS];
    const struct tandem_tensor_desc *in_pointers[TANDEM_MAX_OPERANDS + 2];
    const struct tandem_tensor_desc *out_pointers[TANDEM_MAX_OPERANDS + 2];
    const struct tandem_tensor_desc *const *in_array, *const *out_array;
    uint32_t in_count, out_count;
};

/* Sets all fields except the buffers to a valid call of the operator. */
void mistaken_call_reset(struct mistaken_call *p, const struct op_row *row);
/* Describes a contiguous tensor of rank 0, 1 (rows) or 2. */
void mistaken_tensor_set(struct tandem_tensor_desc *desc, uint32_t dtype,
                         uint32_t rank, int64_t rows, int64_t columns);
/* Describes a contiguous f32 tensor of any rank. */
void mistaken_shape_set(struct tandem_tensor_desc *desc, struct shape shape);
#define MISTAKEN_SHAPE(desc, ...)                                              \
    mistaken_shape_set(desc, (struct shape)S(__VA_ARGS__))

struct call_mistake {
    const char *name;
    uint32_t op; /* The operator of the valid call. */
    void (*make)(struct mistaken_call *p);
    uint32_t flags; /* enum mistake_flags. */
};

/*
 * A table of mistakes is a macro of rows
 * X(function, operator, name, flags, statement that makes the mistake).
 */
#define MISTAKE_FUNCTION(function, op, name, flags, statement)                 \
    static void mistake_##function(struct mistaken_call *p)                    \
    {                                                                          \
        statement;                                                             \
    }
#define MISTAKE_ROW(function, op, name, flags, statement)                      \
    {name, TANDEM_OP_##op, mistake_##function, flags},
/* Defines a table, and the members of a class that refer to it. */
#define MISTAKE_TABLE(table, MISTAKES)                                         \
    MISTAKES(MISTAKE_FUNCTION)                                                 \
    static const struct call_mistake table[] = {MISTAKES(MISTAKE_ROW)};
#define CLASS_MISTAKES(table)                                                  \
    .mistakes = (table), .mistake_count = COUNT_OF(table)

/*
 * The mistakes that do not depend on the operator. Each class has a table of
 * its own; mistake_get in suite_class.h returns all of them.
 */
extern const struct call_mistake general_mistakes[];
extern const uint32_t general_mistake_count;

/* ---- gemm ---- */

struct mistaken_gemm {
    /* The same buffers as in struct mistaken_call, set by the caller. */
    struct tandem_buffer *buffer, *other_device_object, *freed;
    /* The caller sets this if the GEMM has no bias and no activation. */
    bool plain;

    struct tandem_gemm gemm;
    const struct tandem_gemm *pointer;
};

/*
 * Sets the GEMM to a valid one: two batches of 3 x 5 = (3 x 4)(4 x 5), with a
 * bias and an activation unless it is plain.
 */
void mistaken_gemm_reset(struct mistaken_gemm *p);

struct gemm_mistake {
    const char *name;
    void (*make)(struct mistaken_gemm *p);
    uint32_t flags; /* enum mistake_flags. */
};

extern const struct gemm_mistake gemm_mistakes[];
extern const uint32_t gemm_mistake_count;

#endif
