/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One random call: an operator, its attributes and operands, and the expected
 * status. The same seed, number and block number give the same problem on
 * every machine. A problem is used by one thread; nothing here calls a plugin.
 */
#ifndef TANDEM_DIFFERENTIAL_RANDOM_CALL_H
#define TANDEM_DIFFERENTIAL_RANDOM_CALL_H

#include "conformance/operand.h"
#include "conformance/operator_list.h"

/* The status that launch must return. */
enum expected_status {
    /*
     * TANDEM_OK, or TANDEM_UNSUPPORTED if the device need not support the
     * call.
     */
    EXPECT_OK_IF_SUPPORTED,
    EXPECT_INVALID_ARGUMENT, /* TANDEM_INVALID_ARGUMENT */
    EXPECT_UNSUPPORTED, /* TANDEM_UNSUPPORTED, for a dtype of a later version.
                         */
    EXPECT_ERROR,       /* TANDEM_INVALID_ARGUMENT or TANDEM_UNSUPPORTED. */
    /*
     * TANDEM_OK or TANDEM_INVALID_ARGUMENT, for operands that do not overlap
     * in a way that the check may not find out.
     */
    EXPECT_OK_OR_INVALID
};

#define PROBLEM_OPERANDS 8u

struct problem {
    uint64_t number;
    const struct op_row *row;
    int64_t ints[TANDEM_MAX_RANK];
    double floats[TANDEM_MAX_OPERANDS];
    uint32_t int_count, float_count;
    /* Inputs, then outputs. For GEMM a, b, bias, then c. */
    uint32_t inputs, outputs;
    struct operand operands[PROBLEM_OPERANDS];
    /*
     * The index of the operand whose buffer operand i uses: i, or an earlier
     * one.
     */
    uint32_t storage[PROBLEM_OPERANDS];
    struct tandem_gemm gemm; /* Its buffers are NULL. */

    enum expected_status expected_status;
    /* A description of the mistake or the special property, or "". */
    const char *what;
    /* Differences between an invalid call and the operands above. */
    uint32_t passed_inputs, passed_outputs;
    uint32_t missing;        /* Mask of operands whose descriptor is NULL. */
    uint32_t without_buffer; /* Mask of operands whose buffer is NULL. */
    /* Only launch can detect the mistake, supports cannot. */
    bool only_launch_detects;
    size_t struct_size; /* The struct_size of the op. */
};

/*
 * Creates a problem. The block number selects the possible operators and
 * dtypes. only: the only operator, or NULL.
 */
void problem_make(struct problem *problem, uint64_t seed, uint64_t number,
                  uint64_t block_number, const struct op_row *only);
void problem_finish(struct problem *problem);
/* Writes one line with the operator, its attributes and its operands. */
void problem_text(const struct problem *problem, char *text, size_t size);

/* The steps of problem_make, in this order. */
struct block;
/*
 * random_shapes.c: sets attributes, shapes, strides and dtypes, but no element
 * values.
 */
void shapes_make(struct problem *problem, struct random *random,
                 const struct block *block);
/* random_gemm.c: the same for GEMM. */
void gemm_make(struct problem *problem, struct random *random,
               const struct block *block);
/*
 * aliasing.c: makes operands share a buffer: in place, disjoint or
 * overlapping.
 */
void sharing_make(struct problem *problem, struct random *random);
/* invalid_call.c: makes a mistake in the call. */
void call_make_invalid(struct problem *problem, struct random *random);

/*
 * A block of cases has few operators and dtypes, because a device compiles
 * each kernel at its first use.
 */
#define DEFAULT_BLOCK_CASES 500u
#define BLOCK_OPERATORS 4u
struct block {
    const struct op_row *rows[BLOCK_OPERATORS];
    uint32_t from, to; /* dtypes of CAST. */
    uint32_t moved;    /* dtype of COPY, TRANSPOSE and GATHER. */
    uint32_t gemm_dtype, gemm_c_dtype; /* dtypes of GEMM's operands and of c. */
    uint32_t activations[2];           /* Activations of GEMM. */
};

#endif
