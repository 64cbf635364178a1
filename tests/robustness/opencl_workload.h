/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A device of a plugin, calls that record what they return, and a workload that
 * checks what it computed and frees everything.
 *
 * Call it from one thread.
 */
#ifndef TANDEM_TESTS_LAYER_WORKLOAD_H
#define TANDEM_TESTS_LAYER_WORKLOAD_H

#include <stdbool.h>
#include "common/tensor_desc.h"

#define WORKLOAD_TEXT 1024
/* The largest number of elements of a buffer: four of them do not fit into the
 * plugin's ring of pinned memory. Not a multiple of a command's size. */
#define LARGEST ((1200u << 10) + 321u)

struct workload {
    const struct tandem_backend *api;
    struct tandem_device *device;
    uint32_t opened;              /* The number of calls of workload_open. */
    struct tandem_stream *stream; /* The current stream. */
    /* A call returned TANDEM_DEVICE_LOST. */
    bool lost;
    const char *section, *call; /* The current part, and a step of it. */
    enum tandem_status status;  /* of the first failure, or TANDEM_OK */
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

/* Records a violation in wrong. Returns false. */
bool record_violation(struct workload *work, const char *what);
/* Records what a call returned. Returns true if that was TANDEM_OK. */
bool call_succeeded(struct workload *work, enum tandem_status status,
                    const char *call);
/* Calls a function of the plugin. Returns true if that returned TANDEM_OK. */
#define CALL(work, function, ...)                                              \
    call_succeeded((work), (work)->api->function(__VA_ARGS__), #function)
bool stream_new(struct workload *work, uint32_t flags,
                struct tandem_stream **out_stream);
/* Waits for all work of the stream. */
bool stream_wait(struct workload *work, struct tandem_stream *stream);
bool buffer_new(struct workload *work, uint64_t bytes,
                struct tandem_buffer **out_buffer);
/* Sets element i to first + i * by. */
void fill_ramp(float *out, uint32_t count, float first, float by);
bool upload(struct workload *work, struct tandem_buffer *buffer,
            const void *source, uint64_t bytes);
/* Downloads `count` elements, from `first`, and compares them. */
bool range_matches(struct workload *work, struct tandem_buffer *buffer,
                   uint32_t first, const float *want, uint32_t count,
                   const char *what);
/* Does so from element 0. */
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

/*
 * Calls all entries that use memory, streams and events, in an order that the
 * seed selects, with buffers of at most LARGEST elements. Returns true if all
 * calls succeeded. Frees what it has created.
 */
bool sequence_run(struct workload *work, uint32_t elements, uint64_t seed);

#endif
