/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A plugin as somebody else would write it: tandem/backend.h and the C library
 * alone, the required entries alone, four operators in f32 on the host's
 * memory.  It is correct and not fast.  For tests of what libtandem, cl-probe
 * and the conformance suite make of such a plugin.
 *
 * The environment variable THIRD_PARTY_PLUGIN changes it; words with commas
 * between them: only=OP+OP     serves these of add, mul, relu, gemm even
 * declines a shape with an odd extent large          declines shapes of fewer
 * than 4096 elements, and products of fewer dense          declines tensors
 * that are not contiguous side=N         declines products with a longer side
 * (4096) slow=US        each product takes so many microseconds more devices=N
 * has so many devices (1), which are alike lose=N         on device 0 the N-th
 * launch (from 1) loses the device terse          every message is the same
 *   order          calls what is invalid unsupported where it may
 *   wrong          adds one to each result of add
 *   offset         ignores where an upload begins
 *   status         calls buffers of others unsupported
 *   fail=OP        each launch of this operator fails
 */
#ifndef TANDEM_TESTS_FOREIGN_H
#define TANDEM_TESTS_FOREIGN_H

#include <tandem/backend.h>

/* A handle of any kind. */
enum kind { KIND_DEVICE, KIND_STREAM, KIND_EVENT, KIND_BUFFER };
struct object {
    enum kind kind;
    struct object *next, *device;
    uint32_t index;        /* of a device */
    uint64_t launches;     /* on a device */
    bool lost;             /* a device */
    unsigned char *memory; /* of a buffer */
    uint64_t bytes;
    struct tandem_memory_stats stats; /* of a device */
};

/* plugin.c: leaves the thread's message. */
enum tandem_status fail(enum tandem_status status, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
/* A live object of the kind, or NULL with a message. */
struct object *object_get(const void *handle, enum kind kind);
/* The value of a word of THIRD_PARTY_PLUGIN: NULL where it is not there, ""
 * where it has none. */
const char *wish(const char *word);
uint64_t wish_number(const char *word, uint64_t otherwise);

/* operators.c: judge a call; buffers count where device is not NULL, else they
 * are not looked at. */
enum tandem_status op_check(const struct tandem_op *op,
                            const struct tandem_tensor_desc *const *inputs,
                            uint32_t input_count,
                            const struct tandem_tensor_desc *const *outputs,
                            uint32_t output_count,
                            const struct object *device);
/* Computes what op_check accepted. */
void op_compute(const struct tandem_op *op,
                const struct tandem_tensor_desc *const *inputs,
                const struct tandem_tensor_desc *output);
/* gemm.c: likewise for products. */
enum tandem_status product_check(const struct tandem_gemm *gemm,
                                 const struct object *device);
void product_compute(const struct tandem_gemm *gemm);
/* TANDEM_UNSUPPORTED for what is invalid, where THIRD_PARTY_PLUGIN wants it so.
 */
enum tandem_status disorder(enum tandem_status status);
/* Whether THIRD_PARTY_PLUGIN leaves the operator in. */
bool op_wanted(const char *name);

#endif
