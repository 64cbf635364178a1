/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the OpenCL layer of the tests counts, and how it is told to fail.  The
 * layer is loaded by the ICD loader where OPENCL_LAYERS names it; tests find
 * these functions in it by dlsym.  Any thread.
 */
#ifndef TANDEM_TESTS_LAYER_H
#define TANDEM_TESTS_LAYER_H

#include <stdint.h>

#define LAYER_EXPORT __attribute__((visibility("default")))

enum layer_object {
    LAYER_CONTEXT,
    LAYER_QUEUE,
    LAYER_MEMORY,
    LAYER_PROGRAM,
    LAYER_KERNEL,
    LAYER_EVENT,
    LAYER_SAMPLER,
    LAYER_OBJECTS
};

struct layer_counts {
    uint64_t created[LAYER_OBJECTS];
    uint64_t retained[LAYER_OBJECTS];
    uint64_t released[LAYER_OBJECTS];
    /* Releases that the script made fail: what they leak is the driver's. */
    uint64_t unreleased[LAYER_OBJECTS];
    /* Calls that succeeded. */
    uint64_t kernels; /* enqueued */
    uint64_t reads, writes, copies, fills, maps, unmaps;
    uint64_t markers; /* and barriers */
    uint64_t waits;   /* clFinish, clWaitForEvents, blocking transfers */
    uint64_t builds;
    /* Commands that somebody waits for and nobody flushed
     * (layer_defer_submission). */
    uint64_t unflushed;
    uint64_t bytes; /* of the calls that read, write, map and copy buffers */
    /* Since the script was set: calls of any function, calls that could have
     * followed the script (those of its function), and those that did. */
    uint64_t calls, asked, faults;
};

/* Since the process began, but for the last three. */
LAYER_EXPORT void layer_counts_read(struct layer_counts *out_counts);
typedef void (*layer_counts_fn)(struct layer_counts *);

enum layer_fault {
    LAYER_FAULT_NONE = 0,
    /* The call returns the code and does nothing. */
    LAYER_FAULT_CALL = 1,
    /* A command is accepted and fails: it is not done, its event and those of
     * what is enqueued behind it turn negative, and so until a wait has told
     * of it. */
    LAYER_FAULT_AFTER_ENQUEUE = 2,
    /* clCreateBuffer succeeds; the first commands that use the buffer return
     * the code (as often as times says). */
    LAYER_FAULT_LAZY = 3,
    /* Likewise, but the first command is accepted and fails. */
    LAYER_FAULT_LAZY_LATER = 4,
    /* The call does not return before layer_release. */
    LAYER_FAULT_HANG = 5,
    /* A command is accepted and does not end before layer_release. */
    LAYER_FAULT_ENDLESS = 6,
    /* A kernel runs, and then what it wrote is spoiled, as by
     * TANDEM_LAYER_CORRUPT (layer.c). */
    LAYER_FAULT_WRONG = 7
};

struct layer_script {
    enum layer_fault fault;
    /* Of the calls of this function (NULL: of all; of LATER and ENDLESS, all
     * that enqueue), counted from 1 since the script was set, the nth and the
     * times - 1 after it. */
    const char *function;
    /* Of those alone that have this text in clBuildProgram's options, or in
     * the name of clCreateKernel's or clEnqueueNDRangeKernel's kernel; NULL:
     * whatever they have. */
    const char *text;
    uint64_t nth, times;
    int32_t code;
    /* Where code is 0: a code that the function may plausibly return, the
     * pick-th of them. */
    uint32_t pick;
    /* Functions that release, flush or ask about an object work on. */
    int spare_releases;
    /* What clGetProgramBuildInfo says of a build that the script failed. */
    const char *build_log;
};

/* NULL ends the script.  It is copied, but not its strings. */
LAYER_EXPORT void layer_set_fault(const struct layer_script *script);
typedef void (*layer_script_fn)(const struct layer_script *);
/* Lets go all that hangs or does not end, and ends the script. */
LAYER_EXPORT void layer_release(void);
typedef void (*layer_release_fn)(void);
enum layer_defer_submission {
    LAYER_HOLD_NONE = 0,
    LAYER_HOLD_FLUSH = 1, /* a command begins once it is flushed ... */
    LAYER_HOLD_WAIT = 2   /* ... and somebody waits for anything */
};
/* From now on; what was held begins. */
LAYER_EXPORT void layer_defer_submission(enum layer_defer_submission wanted);
typedef void (*layer_hold_fn)(enum layer_defer_submission);
/* How many calls hang now. */
LAYER_EXPORT uint64_t layer_hanging(void);
typedef uint64_t (*layer_hanging_fn)(void);
/* The functions that the layer stands before, from 0; NULL past the last.
 * out_calls: how often it was called since the script was set. */
LAYER_EXPORT const char *layer_function(uint32_t index, uint64_t *out_calls);
typedef const char *(*layer_function_fn)(uint32_t, uint64_t *);
/* How many codes there are to pick from for a function. */
LAYER_EXPORT uint32_t layer_codes(const char *function);
typedef uint32_t (*layer_codes_fn)(const char *);
/* The name of the function that failed last, and how. */
LAYER_EXPORT const char *layer_failed(int32_t *out_code);
typedef const char *(*layer_failed_fn)(int32_t *);

#endif
