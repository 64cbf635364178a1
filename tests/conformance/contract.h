/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Functions that the contract cases share: vectors of f32 on a device, and
 * simple launches over them.
 */
#ifndef TANDEM_CONFORMANCE_CONTRACT_H
#define TANDEM_CONFORMANCE_CONTRACT_H

#include "suite.h"

/* A contiguous f32 vector with its own buffer. */
struct vector {
    struct tandem_buffer *buffer;
    int64_t elements;
    float *values; /* The host copy of what was last uploaded or downloaded. */
};

/*
 * Creates a vector with elements first, first + step, ... and uploads it on
 * stream (NULL: the suite's). On failure, fails the case and returns false.
 */
bool vector_new(struct suite *suite, struct tandem_device *device,
                struct tandem_stream *stream, struct vector *vector,
                int64_t elements, float first, float step);
void vector_free(struct suite *suite, struct vector *vector);
/* Returns the descriptor of a contiguous tensor of rank 1. */
struct tandem_tensor_desc flat_desc(struct tandem_buffer *buffer,
                                    uint32_t dtype, int64_t elements);
enum tandem_status vector_download(struct suite *suite,
                                   struct tandem_stream *stream,
                                   struct vector *vector);
/*
 * Downloads the vector. Fails the case if the values are not first, first +
 * step, ...
 */
bool expect_vector(struct suite *suite, struct tandem_stream *stream,
                   struct vector *vector, float first, float step,
                   const char *what);

/* Computes target = source + value for each element. */
enum tandem_status launch_add(struct suite *suite, struct tandem_stream *stream,
                              const struct vector *target,
                              const struct vector *source, double value);
/* Returns true if the device supports launch_add; otherwise skips the case. */
bool require_add(struct suite *suite, struct tandem_device *device);
bool needs_cap(struct suite *suite, uint32_t cap, const char *name);

bool stream_finish(struct suite *suite, struct tandem_stream *stream);
/*
 * Returns the statistics. If they are not available, fails the case and
 * returns zeros.
 */
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
void contract_fault(struct suite *suite);
void contract_capture(struct suite *suite);
void invalid_memory_run(struct suite *suite);
void invalid_launch_run(struct suite *suite);
void invalid_gemm_run(struct suite *suite);

#endif
