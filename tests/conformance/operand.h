/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One operand of a call under test: the tensor's descriptor, the content of
 * the whole buffer as it is uploaded (the image), and the offset of each
 * element in the buffer. Bytes that do not belong to an element must not
 * change.
 */
#ifndef TANDEM_CONFORMANCE_OPERAND_H
#define TANDEM_CONFORMANCE_OPERAND_H

#include "random.h"

#include "../../tools/common/tensor_call.h"

/* The memory layout of an operand. */
enum operand_layout {
    DENSE,    /* Row-major, aligned. */
    OFFSET,   /* Row-major, starts an odd number of elements into the buffer. */
    PADDED,   /* A gap after each row. */
    STEP,     /* Every second or third element. */
    REVERSED, /* The first axis is the innermost, like a transposed view. */
    PERMUTED, /* The axes are in any order in memory. */
    CHANNELS_LAST, /* Axis 1 is the innermost, as in the order NHWC. */
    NEGATIVE,      /* Some strides are negative. */
    REPEATED,      /* Some strides are 0; inputs only. */
    ANY,           /* Any combination; no stride of 0 for outputs. */
    LAYOUT_COUNT
};

struct shape {
    uint32_t rank;
    int64_t at[TANDEM_MAX_RANK];
};
/* A shape with these extents; S0 is that of a tensor of rank 0. */
#define S(...)                                                                 \
    {                                                                          \
        sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t),                    \
        {                                                                      \
            __VA_ARGS__                                                        \
        }                                                                      \
    }
#define S0                                                                     \
    {                                                                          \
        0,                                                                     \
        {                                                                      \
            0                                                                  \
        }                                                                      \
    }
#define COUNT_OF(array) ((uint32_t)(sizeof(array) / sizeof((array)[0])))

/* The byte in gaps of inputs: all ones, a NaN in every float dtype. */
#define OPERAND_GAP 0xff

struct operand {
    /* If false, the operand is NULL, with the value below of desc.dtype. */
    bool present;
    double scalar;
    struct tandem_tensor_desc desc;
    int64_t elements;
    /* Byte offsets into the buffer, elements in row-major order. */
    int64_t *offsets;
    uint64_t bytes; /* Size of the buffer. */
    unsigned char *image;
};

/* Ends the program if memory runs out. */
void *must_allocate(uint64_t bytes);

/* Makes all later buffers end right after the last element of their operand. */
void operands_set_exact_buffers(void);
bool operands_have_exact_buffers(void);

/* Copies the shape and sets every byte of the image to OPERAND_GAP. */
void operand_init(struct operand *operand, struct random *random,
                  uint32_t dtype, uint32_t rank, const int64_t *shape,
                  enum operand_layout layout, bool output);
/*
 * Initializes the operand with these strides. The buffer has lead elements
 * before the tensor and trail elements after it.
 */
void operand_init_strided(struct operand *operand, uint32_t dtype,
                          uint32_t rank, const int64_t *shape,
                          const int64_t *strides, int64_t lead, int64_t trail);
void operand_scalar(struct operand *operand, uint32_t dtype, double value);
void operand_finish(struct operand *operand);

void operand_set(struct operand *operand, int64_t element, uint64_t bits);
uint64_t operand_get(const struct operand *operand, int64_t element);
/* Writes a text like "f32[2,3] strides[3,1] offset 64". */
void operand_text(const struct operand *operand, char *text, size_t size);

/* Returns the number of elements of a shape. */
int64_t shape_count(uint32_t rank, const int64_t *shape);
/* Advances the index to the next element in row-major order. */
void index_next(uint32_t rank, const int64_t *shape, int64_t *index);
/* Returns a text like "[2,3]", in one of four static buffers. */
const char *shape_text(uint32_t rank, const int64_t *shape);

/* The elements of an operand, broadcast to a shape, in row-major order. */
struct dense {
    uint32_t dtype, rank;
    int64_t shape[TANDEM_MAX_RANK];
    int64_t elements;
    uint64_t *bits;
    bool flush; /* Reads subnormal values as zeros. */
};

void dense_load(struct dense *dense, const struct operand *operand,
                uint32_t rank, const int64_t *shape);
void dense_finish(struct dense *dense);
double dense_real(const struct dense *dense, int64_t element);
int64_t dense_integer(const struct dense *dense, int64_t element);
bool dense_has_subnormals(const struct dense *dense);

#endif
