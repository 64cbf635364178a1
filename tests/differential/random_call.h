/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One random call: an operator, its attributes and operands, and what a plugin
 * must answer.  The same seed, number and block number give the same problem on
 * every machine.  Problems belong to one thread; nothing here asks a plugin.
 */
#ifndef TANDEM_DIFFERENTIAL_RANDOM_CALL_H
#define TANDEM_DIFFERENTIAL_RANDOM_CALL_H

#include "conformance/operand.h"
#include "conformance/operator_list.h"

/* What launch must answer. */
enum verdict {
    VERDICT_SERVED,   /* TANDEM_OK, or TANDEM_UNSUPPORTED where a device need
                       * not serve it */
    VERDICT_INVALID,  /* TANDEM_INVALID_ARGUMENT */
    VERDICT_UNSERVED, /* TANDEM_UNSUPPORTED: a dtype of later versions */
    VERDICT_REFUSED,  /* one of these two */
    VERDICT_OPEN      /* TANDEM_OK or TANDEM_INVALID_ARGUMENT: an overlap that
                       * is none, but not plainly so */
};

#define PROBLEM_OPERANDS 8u

struct problem {
    uint64_t number;
    const struct op_row *row;
    int64_t ints[TANDEM_MAX_RANK];
    double floats[TANDEM_MAX_OPERANDS];
    uint32_t int_count, float_count;
    /* Inputs, then outputs; GEMM: a, b, bias, then c. */
    uint32_t inputs, outputs;
    struct operand operands[PROBLEM_OPERANDS];
    /* Whose buffer operand i lies in: its own (i), or an earlier one's. */
    uint32_t home[PROBLEM_OPERANDS];
    struct tandem_gemm gemm; /* its buffers are NULL */

    enum verdict verdict;
    const char *what; /* what is wrong or special about it, "" */
    /* How a wrong call differs from the operands above. */
    uint32_t passed_inputs, passed_outputs;
    uint32_t missing;   /* mask: the descriptor is NULL */
    uint32_t unbound;   /* mask: its buffer is NULL */
    bool memory_alone;  /* supports cannot see what is wrong */
    size_t struct_size; /* of the op */
};

/* The block's number decides which operators and dtypes the case may have.
 * only: the one operator, or NULL. */
void problem_make(struct problem *problem, uint64_t seed, uint64_t number,
                  uint64_t block_number, const struct op_row *only);
void problem_finish(struct problem *problem);
/* One line: the operator, its attributes and its operands. */
void problem_text(const struct problem *problem, char *text, size_t size);

/* The parts of problem_make, in this order. */
struct block;
/* random_shapes.c: attributes, shapes, strides and dtypes; element values
 * follow. */
void shapes_make(struct problem *problem, struct random *random,
                 const struct block *block);
/* random_gemm.c: the same of GEMM, values included. */
void product_make(struct problem *problem, struct random *random,
                  const struct block *block);
/* aliasing.c: operands in one buffer, in place, apart or overlapping. */
void sharing_make(struct problem *problem, struct random *random);
/* invalid_call.c: makes it wrong. */
void call_make_invalid(struct problem *problem, struct random *random);

/* Cases come in blocks, whose operators and dtypes are few, since a device
 * compiles each kernel at its first use. */
#define DEFAULT_BLOCK_CASES 500u
#define BLOCK_OPERATORS 4u
struct block {
    const struct op_row *rows[BLOCK_OPERATORS];
    uint32_t from, to;           /* dtypes of CAST */
    uint32_t moved;              /* of COPY, TRANSPOSE and GATHER */
    uint32_t product, product_c; /* of GEMM */
    uint32_t activations[2];     /* of GEMM */
};

#endif
