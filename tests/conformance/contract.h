/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Functions that the contract cases share: vectors of f32 on a device, and
 * simple launches over them.
 */
#ifndef TANDEM_CONFORMANCE_CONTRACT_H
#define TANDEM_CONFORMANCE_CONTRACT_H

#include "../../tools/common/tensor_call.h"
#include "mistakes.h"
#include "operand.h"
#include "suite.h"

#include <tandem/extensions.h>

#define PAIR_BYTES MISTAKE_BYTES

/* A case of a group.  It is skipped if it `adds` and the device does not
 * support launch_add.  The end of the case releases its vectors, streams and
 * devices. */
struct contract_case {
    const char *name;
    void (*run)(struct suite *suite);
    bool adds;
};
void contract_cases_run(struct suite *suite, const char *group,
                        const struct contract_case *cases, uint32_t count);
/* Ends a case that case_begin began, and releases what it made. */
void contract_case_end(struct suite *suite);

/* A contiguous f32 vector with its own buffer. */
struct vector {
    struct tandem_buffer *buffer;
    int64_t elements;
    float *values; /* The host copy of what was last uploaded or downloaded. */
    struct tandem_device *device;
    struct vector *next; /* Another vector of the case. */
};

/*
 * Creates a vector with elements first, first + step, ... and uploads it on
 * stream (NULL: the suite's). On failure, fails the case and returns NULL.
 */
struct vector *vector_new(struct suite *suite, struct tandem_device *device,
                          struct tandem_stream *stream, int64_t elements,
                          float first, float step);
void vector_free(struct suite *suite, struct vector *vector);
/* Opens another device like suite_open.  On failure, fails the case and returns
 * NULL. */
struct tandem_device *device_new(struct suite *suite, const char *key,
                                 const char *value);
/* Closes the device, which frees the buffers of its vectors. */
void device_close(struct suite *suite, struct tandem_device *device);
/* Creates a stream of a device (NULL: the suite's).  On failure, fails the case
 * and returns NULL. */
struct tandem_stream *stream_new(struct suite *suite,
                                 struct tandem_device *device, uint32_t flags);
/* Returns the descriptor of a contiguous tensor of rank 1. */
struct tandem_tensor_desc flat_desc(struct tandem_buffer *buffer,
                                    uint32_t dtype, int64_t elements);
enum tandem_status vector_download(struct suite *suite,
                                   struct tandem_stream *stream,
                                   struct vector *vector);
/* Downloads the vector and checks that it is first, first + step, ... */
bool expect_vector(struct suite *suite, struct tandem_stream *stream,
                   struct vector *vector, float first, float step,
                   const char *what);

/* Computes target = source + value for each element. */
enum tandem_status launch_add(struct suite *suite, struct tandem_stream *stream,
                              const struct vector *target,
                              const struct vector *source, double value);
/* Returns true if the device supports launch_add; otherwise skips the case. */
bool require_add(struct suite *suite, struct tandem_device *device);
/* Calls a function of the plugin.  Fails the case unless it returns TANDEM_OK.
 */
#define CALL_OK(function, ...)                                                 \
    expect(suite, suite->api.function(__VA_ARGS__), TANDEM_OK, "%s",           \
           #function "(" #__VA_ARGS__ ")")
bool needs_cap(struct suite *suite, uint32_t cap, const char *name);
/* Returns true if the plugin has the function; otherwise skips the case. */
#define HAS_FUNCTION(function)                                                 \
    has_function(suite, suite->api.function != NULL, #function)
bool has_function(struct suite *suite, bool is_there, const char *name);
/* Returns the extension, or NULL if the plugin does not have it. */
const void *suite_extension(const struct suite *suite, const char *name);
/* Returns true if open accepts this key "test.*"; otherwise skips the case. */
bool needs_test_key(struct suite *suite, const char *key);

/* A buffer of the suite's device, a freed one, and another device with a stream
 * and a buffer.  contract_case_end closes the other device. */
struct device_pair {
    struct tandem_device *other;
    struct tandem_stream *other_stream;
    struct tandem_buffer *buffer, *other_buffer, *freed;
    /* The expected contents of `buffer`, which the caller sets. */
    unsigned char contents[PAIR_BYTES];
};
/* On failure, fails the case and returns false.  The caller frees `buffer`. */
bool pair_open(struct suite *suite, struct device_pair *pair);
/* Fails the case unless the buffer still has its contents. */
void pair_check(struct suite *suite, const struct device_pair *pair);

bool stream_finish(struct suite *suite, struct tandem_stream *stream);
/* Returns the statistics. On failure, fails the case and returns zeros. */
struct tandem_memory_stats stats_read(struct suite *suite,
                                      struct tandem_device *device);
void sleep_ms(unsigned ms);

/*
 * Fails the case and returns false unless the call `what` returned the status
 * `want` and left a message.
 */
bool expect_error(struct suite *suite, enum tandem_status got,
                  enum tandem_status want, const char *what);

/* The groups of cases that are not about one operator. */
void contract_device(struct suite *suite);
void contract_memory(struct suite *suite);
void contract_transfer(struct suite *suite);
void contract_stream(struct suite *suite);
void contract_alias(struct suite *suite);
void contract_ready(struct suite *suite);
void contract_prepared(struct suite *suite);
void contract_fault(struct suite *suite);
void invalid_memory_run(struct suite *suite);
void invalid_launch_run(struct suite *suite);
void invalid_gemm_run(struct suite *suite);
/* Called by contract_memory. */
void contract_import_release(struct suite *suite);
void contract_sealed_buffer(struct suite *suite);
void unknown_input_run(struct suite *suite);

#endif
