/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One operand of a call under test: a tensor's descriptor, the bytes of the
 * whole buffer as they are uploaded (the image), and where in it each element
 * lies.  Bytes of the buffer that belong to no element are canaries.
 */
#ifndef TANDEM_CONFORMANCE_OPERAND_H
#define TANDEM_CONFORMANCE_OPERAND_H

#include "random.h"

#include <tandem/backend.h>

enum operand_layout {
    LAYOUT_DENSE,    /* row-major, aligned start */
    LAYOUT_OFFSET,   /* row-major, an odd number of elements into the buffer */
    LAYOUT_PADDED,   /* a gap after each row */
    LAYOUT_STEP,     /* every second or third element */
    LAYOUT_REVERSED, /* the first axis is the innermost, as a transposed view */
    LAYOUT_PERMUTED, /* axes in any order in memory */
    LAYOUT_NEGATIVE, /* some axes run backwards */
    LAYOUT_ZERO,     /* some axes repeat; inputs only */
    LAYOUT_RANDOM,   /* any of all that; no repeats for outputs */
    LAYOUT_COUNT
};

/* The byte of input gaps: all ones, a NaN in every float dtype. */
#define OPERAND_GAP 0xff

struct operand {
    bool present; /* false: passed as NULL, with the value below */
    double scalar;
    struct tandem_tensor_desc desc;
    int64_t elements;
    int64_t *offsets; /* bytes into the buffer, elements in row-major order */
    uint64_t bytes;   /* of the buffer */
    unsigned char *image;
};

/* Ends the program where memory is out. */
void *must_allocate(uint64_t bytes);

/* From now on, nothing lies behind an operand in its buffer. */
void operands_tighten(void);
bool operands_tight(void);

/* shape is copied; every byte of the image is OPERAND_GAP. */
void operand_init(struct operand *operand, struct random *random,
                  uint32_t dtype, uint32_t rank, const int64_t *shape,
                  enum operand_layout layout, bool output);
/* Likewise with these strides, lead elements before all that the tensor reaches
 * and trail after it. */
void operand_init_strided(struct operand *operand, uint32_t dtype,
                          uint32_t rank, const int64_t *shape,
                          const int64_t *strides, int64_t lead, int64_t trail);
void operand_scalar(struct operand *operand, double value);
void operand_finish(struct operand *operand);

void operand_set(struct operand *operand, int64_t element, uint64_t bits);
uint64_t operand_get(const struct operand *operand, int64_t element);
/* "f32[2,3] strides[3,1] offset 64". */
void operand_text(const struct operand *operand, char *text, size_t size);

/* Elements of a shape. */
int64_t shape_count(uint32_t rank, const int64_t *shape);
/* Steps to the next element in row-major order. */
void index_next(uint32_t rank, const int64_t *shape, int64_t *index);
/* "[2,3]" */
void shape_text(uint32_t rank, const int64_t *shape, char *text, size_t size);

/* The elements of an operand, gathered in row-major order of a shape that the
 * operand broadcasts to. */
struct dense {
    uint32_t dtype, rank;
    int64_t shape[TANDEM_MAX_RANK];
    int64_t elements;
    uint64_t *bits;
    bool flush; /* read subnormals as zeros */
};

/* scalar_dtype: what a NULL input is converted to. */
void dense_load(struct dense *dense, const struct operand *operand,
                uint32_t scalar_dtype, uint32_t rank, const int64_t *shape);
void dense_finish(struct dense *dense);
double dense_real(const struct dense *dense, int64_t element);
int64_t dense_integer(const struct dense *dense, int64_t element);
bool dense_has_subnormals(const struct dense *dense);

#endif
