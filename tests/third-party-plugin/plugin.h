/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A plugin like one from a third party: it uses only tandem/backend.h and the C
 * library, has only the required entries, and computes four operators in f32 on
 * the host's memory. It is correct and slow. Tests use it to check how
 * libtandem, cl-probe and the conformance suite treat such a plugin.
 *
 * The environment variable THIRD_PARTY_PLUGIN contains words with commas
 * between them that change its behaviour:
 *
 *   only=OP+OP  supports only these of add, mul, relu, gemm
 *   even        does not support a shape with an odd extent
 *   large       does not support shapes of fewer than 4096 elements, nor
 *               GEMMs of fewer
 *   dense       does not support tensors that are not contiguous
 *   side=N      does not support GEMMs with a larger extent (default 4096)
 *   slow=US     each GEMM takes this many microseconds longer
 *   devices=N   has this number of identical devices (default 1)
 *   lose=N      the N-th launch (from 1) on device 0 loses the device
 *   terse       all messages are the same
 *   order       returns TANDEM_UNSUPPORTED for invalid calls where allowed
 *   wrong       adds one to each result of add
 *   offset      ignores the offset of an upload
 *   status      returns TANDEM_UNSUPPORTED for buffers of other devices
 *   fail=OP     each launch of this operator fails
 */
#ifndef TANDEM_TESTS_THIRD_PARTY_PLUGIN_H
#define TANDEM_TESTS_THIRD_PARTY_PLUGIN_H

#include <tandem/backend.h>

/* The object behind a handle of any kind. */
enum kind { KIND_DEVICE, KIND_STREAM, KIND_EVENT, KIND_BUFFER };
struct object {
    enum kind kind;
    struct object *next, *device;
    uint32_t index;        /* Device. */
    uint64_t launches;     /* Device. */
    bool lost;             /* Device. */
    unsigned char *memory; /* Buffer. */
    uint64_t bytes;
    struct tandem_memory_stats stats; /* Device. */
};

/* plugin.c: sets the thread's message and returns status. */
enum tandem_status fail(enum tandem_status status, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
/* Returns a live object of this kind, or NULL with a message. */
struct object *object_get(const void *handle, enum kind kind);
/*
 * Returns the value of a word in THIRD_PARTY_PLUGIN, "" if it has no value, or
 * NULL if it is missing.
 */
const char *setting(const char *word);
uint64_t setting_number(const char *word, uint64_t otherwise);

/*
 * operators.c: checks a call. The buffers are checked only if device is not
 * NULL.
 */
enum tandem_status op_check(const struct tandem_op *op,
                            const struct tandem_tensor_desc *const *inputs,
                            uint32_t input_count,
                            const struct tandem_tensor_desc *const *outputs,
                            uint32_t output_count,
                            const struct object *device);
/* Computes a call that op_check accepted. */
void op_compute(const struct tandem_op *op,
                const struct tandem_tensor_desc *const *inputs,
                const struct tandem_tensor_desc *output);
/* gemm.c: the same functions for GEMM. */
enum tandem_status gemm_check(const struct tandem_gemm *gemm,
                              const struct object *device);
void gemm_compute(const struct tandem_gemm *gemm);
/*
 * Returns TANDEM_UNSUPPORTED instead of TANDEM_INVALID_ARGUMENT if
 * THIRD_PARTY_PLUGIN contains "order".
 */
enum tandem_status invalid_status(enum tandem_status status);
/* Returns true if THIRD_PARTY_PLUGIN does not exclude the operator. */
bool op_is_enabled(const char *name);

#endif
