/* SPDX-License-Identifier: Apache-2.0 */
/* tandem/extensions.h - tables of functions that only some plugins have.
 *
 * The function extension of struct tandem_backend returns these tables by name.
 * Each begins with struct_size, which the plugin sets, and has at least the
 * fields of its first version. Fields are appended. A change that breaks
 * callers gets a new number in the name, and a plugin may have both tables. The
 * rules of backend.h (Unknown input, Errors, NULL, ...) hold here, too. */
#ifndef TANDEM_EXTENSIONS_H
#define TANDEM_EXTENSIONS_H

#include "backend.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- tune.1 ----------------------------------------------------------------
 * Search for better kernels on the user's device. */

#define TANDEM_EXTENSION_TUNE "tune.1"

/* Receives a key and a value for the plugin's section of the profile, which
 * later calls of open get as the option "tuning". Called by tune in its thread.
 * The strings are valid during the call. */
typedef void (*tandem_tuning_result_fn)(void *user, const char *key,
                                        const char *value);

struct tandem_tune_extension {
    size_t struct_size;
    /* [blocks] Measures kernels for budget_ns, plus up to 30 s to build them,
     * and passes each result to sink as soon as it is known. If the device was
     * opened with the option "self_test_only" = "1", runs only the sm_90a
     * self-test. Any thread; other work on the device disturbs the
     * measurement. */
    enum tandem_status (*tune)(struct tandem_device *device, uint64_t budget_ns,
                               tandem_tuning_result_fn sink, void *user);
};

/* ---- test.1 ----------------------------------------------------------------
 * Options of open for tests. Programs do not need them. */

#define TANDEM_EXTENSION_TEST "test.1"

struct tandem_test_extension {
    size_t struct_size;
    /* The keys "test.*" that open accepts, ended by NULL. open ignores other
     * keys "test.*", so a test asks here first:
     *   test.fault             "launch:N:STATUS": launch N (from 1) of a device
     *                          returns TANDEM_OK and fails later with STATUS;
     *                          "wait:N": wait N times out
     *   test.gemm_kernel       OpenCL: "clblast" or a GEMM kernel, and
     *                          optionally the number of splits of k, and of
     *                          split tiles: "simt-64x64", "simt-64x64:3:2"
     *                          (docs/kernels.md)
     *   test.packed_limit_bytes  OpenCL: limit of the packed copies of GEMM
     *                          operands (default: 1/8 of the device memory)
     *   test.transfer_path     OpenCL: path of all transfers: "driver" or
     *                          "ring" (docs/kernels.md)
     *   test.force_program_cache  OpenCL: "1": use cache_dir even if the
     *                          driver caches programs
     * The other keys of a plugin are described in its sources. */
    const char *const *open_keys;
};

/* ---- opencl-interop.1 -------------------------------------------------------
 * Shares devices, queues and memory with a program that calls OpenCL itself.
 *
 *   Types      struct _cl_mem * is cl_mem of CL/cl.h, and so on, so this header
 *              does not need CL/cl.h, and the compiler checks the types. Pass
 *              live objects of the libOpenCL that the plugin uses: drivers
 *              cannot check handles reliably.
 *   Ownership  open_native, stream_wrap and buffer_wrap retain the object, and
 *              release it when the plugin's object is closed, destroyed or
 *              freed. A context may be kept until the last device of the plugin
 *              is closed. The handle functions retain nothing: what they return
 *              is valid as long as the plugin's object.
 *   Order      A wrapped queue runs the commands of both sides in the order in
 *              which they are enqueued. For other queues use events of OpenCL:
 *              clEnqueueMarkerWithWaitList in the queue of a stream gives an
 *              event for the work so far (call clFlush: the plugin's functions
 *              do not flush), and clEnqueueBarrierWithWaitList there delays the
 *              later work of the stream until an event.
 *   Commands   The plugin does not track the program's commands. Wait for them
 *   of the     before you free a buffer or close a device that they use, and do
 *   program    not use memory of a freed buffer: it is reused.
 *              stream_synchronize need not wait for them. If one fails, the
 *              next work of the stream may report the error.
 *   Threads    As in backend.h; none of the functions waits for work. */

#define TANDEM_EXTENSION_OPENCL_INTEROP "opencl-interop.1"

struct _cl_context;
struct _cl_device_id;
struct _cl_command_queue;
struct _cl_mem;

struct tandem_opencl_interop_extension {
    size_t struct_size;
    /* [blocks: driver start] Like open, in the program's context.
     * TANDEM_INVALID_ARGUMENT if the context does not have the OpenCL device,
     * TANDEM_UNSUPPORTED if it has several devices, TANDEM_NO_DEVICE if
     * device_count does not count this one. */
    enum tandem_status (*open_native)(struct _cl_context *context,
                                      struct _cl_device_id *device_id,
                                      const struct tandem_open_options *options,
                                      struct tandem_device **out_device);
    /* A stream in the program's queue, with flags of stream_create.
     * TANDEM_INVALID_ARGUMENT if the queue has another context or device than
     * `device`, is out of order, or lacks CL_QUEUE_PROFILING_ENABLE for
     * TANDEM_STREAM_PROFILING. Wrap a queue once. */
    enum tandem_status (*stream_wrap)(struct tandem_device *device,
                                      struct _cl_command_queue *queue,
                                      uint32_t flags,
                                      struct tandem_stream **out_stream);
    /* A buffer in the whole memory object; use byte offsets or a sub-buffer for
     * a part. Buffers of one object share its memory: launch reports overlaps,
     * but the order of different streams is up to the caller. release is as in
     * import_host, and may be NULL. TANDEM_INVALID_ARGUMENT if the object is
     * not a buffer, has another context, or is memory of a buffer that alloc
     * returned. TANDEM_UNSUPPORTED if kernels may only read or only write it,
     * or on a GPU if it has CL_MEM_USE_HOST_PTR and its address is not a
     * multiple of 128. */
    enum tandem_status (*buffer_wrap)(struct tandem_device *device,
                                      struct _cl_mem *memory,
                                      tandem_release_fn release, void *user,
                                      struct tandem_buffer **out_buffer);
    enum tandem_status (*device_handles)(struct tandem_device *device,
                                         struct _cl_context **out_context,
                                         struct _cl_device_id **out_device_id);
    enum tandem_status (*stream_handle)(struct tandem_stream *stream,
                                        struct _cl_command_queue **out_queue);
    /* The buffer begins at *out_byte_offset of the memory object. Write nothing
     * outside of the buffer. From now on the plugin expects that the program
     * writes it at any time, and keeps no packed copies of it. */
    enum tandem_status (*buffer_handle)(struct tandem_buffer *buffer,
                                        struct _cl_mem **out_memory,
                                        uint64_t *out_byte_offset);
};

#ifdef __cplusplus
}
#endif
#endif
