/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Two tables of invalid calls, one of launch and one of gemm. Each entry makes
 * one mistake in a valid call. The conformance suite checks what
 * tandem/backend.h requires for such calls; tests/plugin checks what Tandem's
 * own plugins promise in addition. The functions only fill structs and may be
 * called from any thread.
 */
#ifndef TANDEM_CONFORMANCE_MISTAKES_H
#define TANDEM_CONFORMANCE_MISTAKES_H

#include <tandem/backend.h>

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
    /*
     * Only launch and gemm detect the mistake; supports does not check
     * buffers.
     */
    IN_BUFFER = 2,
    /*
     * The sizes overflow. The header does not require supports to detect it.
     */
    IN_SIZE = 4,
    /*
     * A later version of the header may define the call, so even Tandem's own
     * plugins may return TANDEM_UNSUPPORTED.
     */
    MAYBE_LATER = 8,
    /* The call has no valid operator to name in a message. */
    UNNAMED = 16
};

/* ---- launch ---- */

#define CALL_OPERANDS 4u
#define CALL_FLOATS 8u

/* The arguments of supports, prepare and launch.  All operands are in one
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
    int64_t ints[TANDEM_MAX_RANK];
    double floats[CALL_FLOATS];
    struct tandem_tensor_desc ins[CALL_OPERANDS], outs[CALL_OPERANDS];
    const struct tandem_tensor_desc *in_pointers[TANDEM_MAX_OPERANDS + 2];
    const struct tandem_tensor_desc *out_pointers[TANDEM_MAX_OPERANDS + 2];
    const struct tandem_tensor_desc *const *in_array, *const *out_array;
    uint32_t in_count, out_count;
};

/* Sets all fields except the buffers to a valid call of the operator. */
void mistaken_call_reset(struct mistaken_call *p, const struct op_row *row);

struct call_mistake {
    const char *name;
    uint32_t op; /* The operator of the valid call. */
    void (*make)(struct mistaken_call *p);
    uint32_t flags; /* enum mistake_flags. */
};

#define CALL_MISTAKES 97u
extern const struct call_mistake call_mistakes[CALL_MISTAKES];

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

#define GEMM_MISTAKES 45u
extern const struct gemm_mistake gemm_mistakes[GEMM_MISTAKES];

#endif
