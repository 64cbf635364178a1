/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The OpenCL layer of the tests: its counters and fault injection. The ICD
 * loader loads the layer if OPENCL_LAYERS contains its path; tests find these
 * functions with dlsym. Any thread may call them.
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
    LAYER_OBJECTS
};

struct layer_counts {
    uint64_t created[LAYER_OBJECTS];
    uint64_t retained[LAYER_OBJECTS];
    uint64_t released[LAYER_OBJECTS];
    /* Releases that the script made fail. The objects leak in the driver. */
    uint64_t unreleased[LAYER_OBJECTS];
    /* Successful calls. */
    uint64_t kernels; /* Enqueued kernels. */
    uint64_t reads, writes, copies, fills, maps, unmaps;
    uint64_t markers; /* Markers and barriers. */
    uint64_t waits;   /* clFinish, clWaitForEvents, blocking transfers. */
    uint64_t builds;
    /*
     * Commands that were waited for without a flush (layer_defer_submission).
     */
    uint64_t unflushed;
    uint64_t bytes; /* Bytes that were read, written, mapped and copied. */
    /*
     * Since the script was set: calls of any function, calls that the script
     * could apply to (those of its function), and injected faults.
     */
    uint64_t calls, asked, faults;
};

/* Counts since the process started, except the last three. */
LAYER_EXPORT void layer_counts_read(struct layer_counts *out_counts);

enum layer_fault {
    LAYER_FAULT_NONE = 0,
    /* The call returns the code and does nothing. */
    LAYER_FAULT_CALL = 1,
    /*
     * A command is accepted and fails later. Its event and those of commands
     * behind it get the error status, until a wait has reported the error.
     */
    LAYER_FAULT_AFTER_ENQUEUE = 2,
    /*
     * clCreateBuffer succeeds; the first commands that use the buffer return
     * the code (`times` of them).
     */
    LAYER_FAULT_LAZY = 3,
    /* Like LAYER_FAULT_LAZY, but the first command fails after it returned. */
    LAYER_FAULT_LAZY_LATER = 4,
    /* The call blocks until layer_release. */
    LAYER_FAULT_HANG = 5,
    /* A command is accepted and does not complete before layer_release. */
    LAYER_FAULT_ENDLESS = 6,
    /* A kernel's output is corrupted, as by TANDEM_LAYER_CORRUPT (layer.c). */
    LAYER_FAULT_WRONG = 7,
    /* No call fails; layer_call returns the calls. */
    LAYER_FAULT_RECORD = 8
};

struct layer_script {
    enum layer_fault fault;
    /*
     * The script applies to calls of this function; NULL stands for all
     * functions, or for all that enqueue with AFTER_ENQUEUE and ENDLESS. Calls
     * are counted from 1 since the script was set, and the nth and the next
     * times - 1 calls fail.
     */
    const char *function;
    /*
     * If not NULL, the script applies only to calls that have this text in the
     * options of clBuildProgram, or in the name of the kernel of
     * clCreateKernel or clEnqueueNDRangeKernel.
     */
    const char *text;
    uint64_t nth, times;
    int32_t code;
    /* If code is 0, the pick-th of the codes that the function may return. */
    uint32_t pick;
    /* Functions that retain, release or unmap an object do not fail. */
    int spare_releases;
    /* The build log of a build that the script failed. */
    const char *build_log;
    /*
     * If not 0, only calls from this call site are counted, and the calls after
     * the nth one that fail may be those of any site.
     */
    uint64_t site;
};

/* Sets the script; NULL ends it. The struct is copied, but not its strings. */
LAYER_EXPORT void layer_set_fault(const struct layer_script *script);
/* Completes everything that hangs, and ends the script. */
LAYER_EXPORT void layer_release(void);
enum layer_defer_submission {
    LAYER_HOLD_NONE = 0,
    LAYER_HOLD_FLUSH = 1, /* A command starts when it is flushed. */
    /* A command starts when it is flushed and any wait occurs. */
    LAYER_HOLD_WAIT = 2
};
/* Sets the mode. Held commands start. */
LAYER_EXPORT void layer_defer_submission(enum layer_defer_submission wanted);
/* Returns the number of calls that hang. */
LAYER_EXPORT uint64_t layer_hanging(void);
/*
 * Returns the name of an intercepted function, counted from 0, or NULL past
 * the last one. out_calls: its calls since the script was set.
 */
LAYER_EXPORT const char *layer_function(uint32_t index, uint64_t *out_calls);
/*
 * Returns the function of the nth call since LAYER_FAULT_RECORD was set, from
 * 1, or NULL past the last one. *out_site is a hash of the return addresses in
 * the tested libraries, which is the same in each process.
 */
LAYER_EXPORT const char *layer_call(uint64_t nth, uint64_t *out_site);
/* Returns the number of codes that `pick` selects from for a function. */
LAYER_EXPORT uint32_t layer_codes(const char *function);
/* Returns the name and the error code of the function that failed last. */
LAYER_EXPORT const char *layer_failed(int32_t *out_code);

#endif
