/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The description of a network: its operators in the order in which they run,
 * and the arrays that they read and write.  A description needs no device.
 * network_run.h runs it on a device, network_reference.h in plain C.
 *
 * The functions of network_layers.h append operators.  If there are too many
 * arrays or operators, or memory is exhausted, network->failed is set and the
 * description is useless.  Single-threaded.
 */
#ifndef TANDEM_BENCH_NETWORK_H
#define TANDEM_BENCH_NETWORK_H

#include <tandem/host.h>

#define MAX_NETWORK_ARRAYS 1024u
#define MAX_NETWORK_CALLS 384u
#define MAX_NETWORK_AXES 4u
#define MAX_CALL_INPUTS 5u
#define MAX_CALL_NUMBERS 16u /* integer attributes, and float attributes */
#define NO_ARRAY UINT32_MAX

/* The content of an array before the network runs. */
enum network_content {
    CONTENT_RESULT,  /* none: an operator writes the array */
    CONTENT_RANDOM,  /* f32 with a mean and a standard deviation */
    CONTENT_INDICES, /* i64, at random in [0, limit) */
    CONTENT_NUMBERS, /* given numbers, f32 */
};

/* Memory of the network: an input, a weight or a result. */
struct network_array {
    enum network_content content;
    uint32_t dtype;
    int64_t elements;
    double mean, deviation; /* of CONTENT_RANDOM */
    int64_t limit;          /* of CONTENT_INDICES */
    float *numbers;         /* of CONTENT_NUMBERS; owned */
    bool kept;              /* a result that no later result may overwrite */
    uint32_t last_call;     /* the last call that reads or writes a result */
    uint32_t
        products; /* number of products in sequence that lead to a result */
};

/* A view of an array, which operators read and write. */
struct value {
    uint32_t array; /* NO_ARRAY in an operand that is absent or a scalar */
    uint32_t dtype;
    uint32_t rank;
    int64_t shape[MAX_NETWORK_AXES], strides[MAX_NETWORK_AXES];
    int64_t first_element;
};

/* One operator with its operands.  A GEMM has the inputs a, b and bias (which
 * may be absent); ints[0] is the activation, floats are its parameters, and
 * `accumulates` is true if the product is added to the output. */
struct network_call {
    uint32_t op; /* enum tandem_op_id */
    bool accumulates;
    uint32_t input_count, int_count, float_count;
    struct value inputs[MAX_CALL_INPUTS], output;
    int64_t ints[MAX_CALL_NUMBERS];
    double floats[MAX_CALL_NUMBERS];
};

struct network {
    struct network_array arrays[MAX_NETWORK_ARRAYS];
    struct network_call calls[MAX_NETWORK_CALLS];
    uint32_t array_count, call_count;
    bool failed;
    struct value output; /* the result of the network */
    double operations;   /* multiplications and additions in products */
    int64_t max_terms;   /* length of the longest sum in a product */
};

/* Expands to a rank and a shape, which are two arguments. */
#define AXES(...)                                                              \
    (uint32_t)(sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t)),            \
        (const int64_t[])                                                      \
    {                                                                          \
        __VA_ARGS__                                                            \
    }

/* Returns an empty description, or NULL if memory is exhausted. */
struct network *network_create(void);
void network_destroy(struct network *network);

/* ---- arrays ---- */

/* Adds an array of random numbers: an input or a weight. */
struct value network_random(struct network *network, double mean,
                            double deviation, uint32_t rank,
                            const int64_t *shape);
/* Adds an array of random integers in [0, limit). */
struct value network_indices(struct network *network, int64_t limit,
                             uint32_t rank, const int64_t *shape);
/* Adds an array with these numbers, which must come from malloc and are freed
 * by network_destroy.  NULL means that memory is exhausted. */
struct value network_numbers(struct network *network, float *numbers,
                             uint32_t rank, const int64_t *shape);
/* Adds an array for a result. */
struct value network_result(struct network *network, uint32_t dtype,
                            uint32_t rank, const int64_t *shape);
/* Declares that a result is also an output of the network. */
void network_keep(struct network *network, const struct value *x);

/* ---- views, which move no data ---- */

int64_t value_elements(const struct value *x);
/* Returns the value, which must be row-major, with another shape. */
struct value value_reshape(struct value x, uint32_t rank, const int64_t *shape);
/* Returns `count` positions of an axis. */
struct value value_slice(struct value x, uint32_t axis, int64_t first,
                         int64_t count);
/* Returns the value with two axes exchanged. */
struct value value_transpose(struct value x, uint32_t axis, uint32_t other);
/* Returns a value of [batch][tokens][heads * width], whose rows may be columns
 * of a wider array, as [batch][heads][tokens][width]. */
struct value value_heads(struct value x, int64_t heads);
extern const struct value absent_value;

/* ---- calls ---- */

/* Appends a call.  `products` is the number of products in sequence that the
 * operator computes. */
void network_append(struct network *network, const struct network_call *call,
                    uint32_t products);
/* Counts a product: `elements` sums of `terms` terms. */
void network_count_product(struct network *network, int64_t elements,
                           int64_t terms);

/* Returns the largest accepted difference of the output from another
 * implementation's, relative to the largest magnitude of the output.
 *
 * In a sum of n terms with random signs, the partial sum after i terms has the
 * magnitude sqrt(i), and each addition has a rounding error of up to 2^-24 of
 * it.  These errors are independent, so together they are 2^-24 sqrt(n / 6) of
 * the sum.  The errors of products in sequence add up as the square root of
 * their number.  Both implementations have such errors, hence the factor 2
 * (tests/onnxruntime/models.py). */
double network_error_bound(const struct network *network);

#endif
