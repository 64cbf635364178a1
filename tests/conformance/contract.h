/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the cases of the contract share: vectors of f32 on a device, and
 * simple launches over them.
 */
#ifndef TANDEM_CONFORMANCE_CONTRACT_H
#define TANDEM_CONFORMANCE_CONTRACT_H

#include "suite.h"

/* A contiguous f32 vector with a buffer of its own. */
struct vector {
    struct tandem_buffer *buffer;
    int64_t elements;
    float *values; /* on the host: what was uploaded or downloaded last */
};

/* Fails the case and returns false where it cannot be done.  Elements are
 * first, first + step, ...; uploaded on stream (NULL: the suite's). */
bool vector_new(struct suite *suite, struct tandem_device *device,
                struct tandem_stream *stream, struct vector *vector,
                int64_t elements, float first, float step);
void vector_free(struct suite *suite, struct vector *vector);
/* Any contiguous tensor of rank 1. */
struct tandem_tensor_desc flat_desc(struct tandem_buffer *buffer,
                                    uint32_t dtype, int64_t elements);
enum tandem_status vector_download(struct suite *suite,
                                   struct tandem_stream *stream,
                                   struct vector *vector);
/* Fails the case where downloaded values are not first, first + step, ... */
bool vector_holds(struct suite *suite, struct tandem_stream *stream,
                  struct vector *vector, float first, float step,
                  const char *what);

/* target = source + value, for every element. */
enum tandem_status launch_add(struct suite *suite, struct tandem_stream *stream,
                              const struct vector *target,
                              const struct vector *source, double value);
/* Whether the device serves launch_add; the case is skipped where not. */
bool needs_add(struct suite *suite, struct tandem_device *device);
bool needs_cap(struct suite *suite, uint32_t cap, const char *name);

bool stream_finish(struct suite *suite, struct tandem_stream *stream);
/* The statistics; zeros and a failed case where they cannot be had. */
struct tandem_memory_stats stats_read(struct suite *suite,
                                      struct tandem_device *device);
void sleep_ms(unsigned ms);

/* Fails the case and returns false unless the call `what` was refused with the
 * status `want` and left a message. */
bool expect_refusal(struct suite *suite, enum tandem_status got,
                    enum tandem_status want, const char *what);

#endif
