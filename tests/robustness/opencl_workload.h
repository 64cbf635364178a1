/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Work that touches the whole of a plugin through backend.h, in sections that
 * each make what they need, look at what they computed and free it all, so
 * that whatever fails in one section, the next has a device in order.  One
 * thread.
 */
#ifndef TANDEM_TESTS_LAYER_WORKLOAD_H
#define TANDEM_TESTS_LAYER_WORKLOAD_H

#include <stdbool.h>
#include <tandem/backend.h>

#define WORKLOAD_TEXT 1024
/* The most elements of a buffer. */
#define LARGEST (1200u << 10)

struct workload {
    const struct tandem_backend *api;
    struct tandem_device *device;
    struct tandem_stream *stream; /* of the section under way */
    uint32_t unsupported; /* calls that this device does not serve */
    /* A call said TANDEM_DEVICE_LOST. */
    bool lost;
    enum tandem_status status; /* of the section, its first failure */
    const char *call;          /* that failed */
    uint32_t failures;         /* sections that failed */
    const char *section;       /* under way, or that failed last */
    char failed[WORKLOAD_TEXT]; /* the first failure: section, call, message */
    /* What must never be, whatever fails: a wrong number, a wrong status.
     * Empty: nothing of that kind. */
    char wrong[WORKLOAD_TEXT];
};

/* The plugin's table, NULL where it does not load. */
const struct tandem_backend *workload_plugin(const char *path);
/* Opens device 0 with these keys and values, ended by NULL. */
bool workload_open(struct workload *work, const char *const *pairs);
void workload_close(struct workload *work);
/* All sections.  called (or NULL) is told after each whether it held. */
void workload_run(struct workload *work,
                  void (*called)(struct workload *work, bool held));

/* ---- for sections and for tests of single faults ---- */

/* Notes in wrong what must never be; false. */
bool mistake(struct workload *work, const char *what);
/* Notes what a call returned; true where that was TANDEM_OK. */
bool step(struct workload *work, enum tandem_status status, const char *call);
bool buffer_new(struct workload *work, uint64_t bytes,
                struct tandem_buffer **out_buffer);
/* Element i is first + i * by. */
void ramp(float *out, uint32_t count, float first, float by);
bool upload(struct workload *work, struct tandem_buffer *buffer,
            const void *source, uint64_t bytes);
/* Downloads and compares. */
bool holds(struct workload *work, struct tandem_buffer *buffer,
           const float *want, uint32_t count, const char *what);
struct tandem_tensor_desc vector(struct tandem_buffer *buffer, int64_t count);
bool launch(struct workload *work, uint32_t id, const double *floats,
            uint32_t float_count, const int64_t *ints, uint32_t int_count,
            const struct tandem_tensor_desc *const *operands, uint32_t inputs,
            const struct tandem_tensor_desc *output);
/* out = a + by, over count elements. */
bool launch_add(struct workload *work, struct tandem_buffer *out,
                struct tandem_buffer *a, double by, int64_t count);

/* workload_parts.c, workload_gemm.c: each true where it held. */
bool section_memory(struct workload *work);
bool section_large(struct workload *work);
bool section_pinned(struct workload *work);
bool section_import(struct workload *work);
bool section_map(struct workload *work);
bool section_operators(struct workload *work);
bool section_reduce(struct workload *work);
bool section_optimizer(struct workload *work);
bool section_prepare(struct workload *work);
bool section_events(struct workload *work);
bool section_profiling(struct workload *work);
bool section_streams(struct workload *work);
bool section_housekeeping(struct workload *work);
bool section_products(struct workload *work);

#endif
