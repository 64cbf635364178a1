/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A workload that uses all of a plugin through backend.h. Each section creates
 * what it needs, checks what it computed and frees everything, so that a
 * failure in one section does not affect the next.
 *
 * Call it from one thread.
 */
#ifndef TANDEM_TESTS_LAYER_WORKLOAD_H
#define TANDEM_TESTS_LAYER_WORKLOAD_H

#include <stdbool.h>
#include "common/tensor_desc.h"

#define WORKLOAD_TEXT 1024
/* The largest number of elements of a buffer. */
#define LARGEST (1200u << 10)

struct workload {
    const struct tandem_backend *api;
    struct tandem_device *device;
    uint32_t opened;              /* The number of calls of workload_open. */
    struct tandem_stream *stream; /* The stream of the current section. */
    /* The number of calls that this device does not support. */
    uint32_t unsupported;
    /* A call returned TANDEM_DEVICE_LOST. */
    bool lost;
    enum tandem_status status; /* The first failure of the section. */
    const char *call;          /* The call that failed. */
    uint32_t failures;         /* The number of sections that failed. */
    /* The current section, or the last one that failed. */
    const char *section;
    /* The first failure: section, call, message. */
    char failed[WORKLOAD_TEXT];
    /*
     * The first violation that no fault excuses: a wrong number or a wrong
     * status. Empty if no violation occurred.
     */
    char wrong[WORKLOAD_TEXT];
};

/* Returns the plugin's table, or NULL if the plugin cannot be loaded. */
const struct tandem_backend *workload_plugin(const char *path);
/* Opens device 0 with pairs of keys and values that end with NULL. */
bool workload_open(struct workload *work, const char *const *pairs);
void workload_close(struct workload *work);
/* Runs all sections. Calls `called`, which may be NULL, after each one. */
void workload_run(struct workload *work,
                  void (*called)(struct workload *work, bool held));

/* ---- for sections and for tests of single faults ---- */

/* Records a violation in wrong. Returns false. */
bool record_violation(struct workload *work, const char *what);
/* Records what a call returned. Returns true if that was TANDEM_OK. */
bool call_succeeded(struct workload *work, enum tandem_status status,
                    const char *call);
/* Calls a function of the plugin. Returns true if that returned TANDEM_OK. */
#define CALL(work, function, ...)                                              \
    call_succeeded((work), (work)->api->function(__VA_ARGS__), #function)
/* Waits for all work of the stream. */
bool stream_wait(struct workload *work, struct tandem_stream *stream);
bool buffer_new(struct workload *work, uint64_t bytes,
                struct tandem_buffer **out_buffer);
/* Sets element i to first + i * by. */
void fill_ramp(float *out, uint32_t count, float first, float by);
bool upload(struct workload *work, struct tandem_buffer *buffer,
            const void *source, uint64_t bytes);
/* Downloads the buffer and compares its content. */
bool content_matches(struct workload *work, struct tandem_buffer *buffer,
                     const float *want, uint32_t count, const char *what);
struct tandem_tensor_desc vector(struct tandem_buffer *buffer, int64_t count);
bool launch(struct workload *work, uint32_t id, const double *floats,
            uint32_t float_count, const int64_t *ints, uint32_t int_count,
            const struct tandem_tensor_desc *const *operands, uint32_t inputs,
            const struct tandem_tensor_desc *output);
/* Computes out = a + by for count elements. */
bool launch_add(struct workload *work, struct tandem_buffer *out,
                struct tandem_buffer *a, double by, int64_t count);

/* A part of the workload. run returns true if the section passed. */
struct section {
    const char *name;
    /*
     * The size of two buffers for the section. The first one contains 1, 1.5,
     * 2, ... 0 means that the section gets no buffers.
     */
    uint32_t elements;
    bool (*run)(struct workload *work, struct tandem_buffer *a,
                struct tandem_buffer *b);
};
#define SECTIONS 15
extern const struct section sections[SECTIONS];
/* Runs one section on the current stream. Returns true if it passed. */
bool section_run(struct workload *work, const struct section *section);
bool section_products(struct workload *work, struct tandem_buffer *first,
                      struct tandem_buffer *second);

#endif
