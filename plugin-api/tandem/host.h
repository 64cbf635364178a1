/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tandem/host.h - libtandem, the host library.  It loads backend plugins, moves
 * tensors to the devices that need them, and runs each operator on the device
 * with the lowest predicted time.  Predictions use costs that were measured on
 * this machine, and include the transfers of operands.
 *
 * A program needs a context, tensors, and tandem_run or tandem_matmul:
 *
 *     tandem_context_create(NULL, &context);
 *     tandem_tensor_wrap(context, x, TANDEM_F32, 1, shape, NULL, 0, &tx);
 *     tandem_tensor_wrap(context, y, TANDEM_F32, 1, shape, NULL, 0, &ty);
 *     tandem_unary(context, TANDEM_OP_RELU, tx, ty);
 *     tandem_tensor_sync(ty, TANDEM_TIMEOUT_INFINITE); // fills y
 *
 * Rules for every function below
 *
 *   Threads    Any number of threads may use a context at the same time.  A
 *              call waits for a call of another thread only if both need the
 *              same device that computes in the background, or the same tensor
 *              (or views of one), unless both only read it where it is.  The
 *              order of two such calls is undefined, so the program must
 *              determine it.  No thread may use an object that another thread
 *              destroys.
 *   Blocking   Functions marked [blocks] wait for device work.  Timeouts are in
 *              ns; TANDEM_TIMEOUT_INFINITE waits without a limit.  A wait that
 *              times out returns TANDEM_NOT_READY.  Functions marked
 *              [may block] wait only if data must leave a device that still
 *              works on it, or if memory must be written that a device still
 *              uses.
 *   Hangs      A device that keeps a function without a timeout waiting for
 *              hang_timeout_ms (below) is lost.  Its work is abandoned, and
 *              other devices run later operators.  A tensor whose only copy it
 *              held returns TANDEM_DEVICE_LOST until it is written again; a
 *              tensor whose host memory it may still write returns it forever.
 *              Waits inside the plugin's alloc and upload have the plugin's
 *              limit (blocking_timeout_ms in backend.h; see
 *              docs/plugin-abi.md).
 *   Errors     As in backend.h: a status, and a message for the calling thread
 *              (tandem_last_error).  A call that returns an error has changed
 *              nothing and started no work.  If work fails after its call
 *              returned, reading or using the tensors that it should have
 *              written returns the error until they are written again.
 *              A device that cannot be opened for another reason than invalid
 *              options is replaced by the others.  If they cannot run the
 *              operator, each call returns the status and message of the first
 *              attempt to open the device.
 *   Growth     Structs that begin with struct_size grow as in backend.h.  The
 *              caller sets struct_size to the sizeof of every struct that it
 *              passes, also of those that are filled.  A struct that is shorter
 *              than in the first version, or shorter than struct_size itself if
 *              it is filled, is TANDEM_INVALID_ARGUMENT.  Input that only a
 *              later version defines is TANDEM_UNSUPPORTED, as in backend.h.
 *   Handles    A handle that is NULL, freed or from another library is
 *              TANDEM_INVALID_ARGUMENT.  Destroy functions accept NULL.
 *   Fork       In a child process, every call with a context of the parent
 *              returns TANDEM_DEVICE_LOST.  The child may create its own
 *              context.  If the parent had listed or used its devices, that
 *              context has no OpenCL devices.  tandem_context_create does not
 *              start OpenCL; the first use of a device does.
 *              Restriction: If another thread loads a shared library during
 *              the fork, the child must not create a context, because dlopen
 *              may abort the child or never return.  The child may then call
 *              functions with handles that it inherited, which return
 *              TANDEM_DEVICE_LOST, may destroy the handles, and must end by
 *              exec or _exit.  tandem_context_create loads libraries.  OpenCL
 *              drivers load libraries when they start and when a kernel is
 *              compiled or runs for the first time, also in threads of this
 *              library or of the driver.
 *   Process    The library never aborts, exits, prints or installs a signal or
 *              exit handler.  The OpenCL plugin may start processes that
 *              compile kernels (docs/use-from-c.md), so the host may receive
 *              SIGCHLD.  TANDEM_COMPILE_PROCESSES=0 prevents this.  If a device
 *              other than the CPU plugin's may have been used, call
 *              tandem_context_destroy before main returns or exit is called,
 *              also after errors.  BLAS, CLBlast and drivers free their state
 *              in exit, and some crash there if their own threads still compile
 *              or compute.  After exit is called, no thread may compute a GEMM
 *              or use OpenCL, except in atexit handlers that were registered
 *              after the first operator of the context.  _exit and quick_exit
 *              are always safe.  If a process forks while threads use OpenCL,
 *              the child must end by _exit.
 *   Signals    Threads that a call starts, also those of BLAS and drivers,
 *              block every signal except those of faults.  SIGHUP, SIGINT,
 *              SIGQUIT and SIGTERM stay unblocked if they have no handler and
 *              the calling thread does not block them.  A program that receives
 *              them by sigwait or signalfd must block them before its first
 *              call.
 *
 * Environment (read with secure_getenv by tandem_context_create):
 *   TANDEM_PLUGIN_PATH    directories to search before the installed one
 *   TANDEM_DEVICE         runs everything on this device ("cpu", "opencl",
 *                         "opencl:1"), like tandem_context_force_device; a
 *                         device that does not exist is an error; with "cpu",
 *                         only the CPU plugin is loaded
 *   TANDEM_BACKENDS       names of the backends to load, separated by commas
 *                         (default: all)
 *   TANDEM_PROFILE_DIR    directory of the profiles, before the defaults
 *   TANDEM_DETERMINISTIC  1 fixes the placement, the kernels and the GEMM path
 *   TANDEM_LOG            error, warning (default), info, debug or none
 *   TANDEM_NUM_THREADS    maximum number of threads of the CPU plugin, with the
 *                         calling thread (0: as many as the process may use);
 *                         another value is ignored with a warning
 *   TANDEM_HANG_TIMEOUT_SECONDS  time after which a device that blocks an
 *                         operator or a write is lost (default 60; 0: never)
 *   TANDEM_OPENCL_BLOCKLIST  "ignore" uses OpenCL drivers that the driver
 *                         blocklist excludes
 *   XDG_CACHE_HOME        its subdirectory tandem has profiles and compiled
 *                         kernels (default ~/.cache)
 */
#ifndef TANDEM_HOST_H
#define TANDEM_HOST_H

#include "backend.h"

#ifdef __cplusplus
extern "C" {
#endif

struct tandem_context; /* plugins, devices, profiles, tensors */
struct tandem_tensor;  /* an array in host and device memory */
struct tandem_profile; /* measured costs of a device, open for changes */

/* Maximum number of devices of a context. */
#define TANDEM_MAX_DEVICES 16u

/* Devices of a context are numbered from 0. If the CPU plugin is loaded, its
 * device is the first one. TANDEM_ANY_DEVICE is not a device; it lets the
 * library choose. */
#define TANDEM_ANY_DEVICE UINT32_MAX

/* Returns the library's version, for example "0.1.0". Static. */
const char *tandem_version(void);

/* Returns the message of the calling thread's last failed call into this
 * library, or "". Valid until the next call of the thread. */
const char *tandem_last_error(void);

/* Returns the name of a status, for example "invalid argument", or "unknown
 * status". Static. */
const char *tandem_status_name(enum tandem_status status);

/* ---- operators ---------------------------------------------------------- */

/* A row of the operator table in backend.h. Static. */
struct tandem_op_info {
    size_t struct_size;
    uint32_t id;
    uint32_t op_class;   /* enum tandem_op_class */
    uint32_t cost_class; /* enum tandem_cost_class */
    uint32_t metric;     /* enum tandem_metric */
    uint32_t input_count, output_count, int_count, float_count;
    uint32_t required;
    double tolerance;
    const char *name, *int_names, *float_names, *formula;
};
/* Return the row of an operator, or NULL if there is no such operator. */
const struct tandem_op_info *tandem_op_by_id(uint32_t id);
const struct tandem_op_info *tandem_op_by_name(const char *name);

/* ---- context ------------------------------------------------------------ */

struct tandem_context_options {
    size_t struct_size;
    /* Directories separated by colons that are searched before
     * TANDEM_PLUGIN_PATH; may be NULL. Empty and relative names are ignored. */
    const char *plugin_path;
    /* Directory of the profiles. If NULL: TANDEM_PROFILE_DIR, then
     * $XDG_CACHE_HOME/tandem (or ~/.cache/tandem), then the system's
     * directory. */
    const char *profile_path;
    const char *device; /* device to use; NULL: that of TANDEM_DEVICE, or any */
    /* Options that are passed to open of every plugin, after those of the
     * library; see struct tandem_open_options. If a plugin rejects them, each
     * operator for which its device is chosen is TANDEM_INVALID_ARGUMENT. */
    const char *const *open_keys;
    const char *const *open_values;
    uint32_t open_count;
    uint32_t deterministic;  /* 1: like TANDEM_DETERMINISTIC */
    uint32_t log_level;      /* 0: the level of TANDEM_LOG, or warning */
    uint32_t time_operators; /* 1: as after tandem_context_set_timing */
    tandem_log_fn log;       /* NULL means no messages */
    void *log_user;
    /* Time after which a device that blocks a call without a timeout is lost.
     * The limit is longer if more work than that is predicted to be queued on
     * the device. 0: TANDEM_HANG_TIMEOUT_SECONDS; UINT32_MAX: no limit. */
    uint32_t hang_timeout_ms;
    uint32_t reserved;
    /* Names of the backends to load, separated by commas. Other plugins and
     * their libraries are not loaded. If NULL: TANDEM_BACKENDS, or else only
     * the CPU plugin if the device of the options or of TANDEM_DEVICE is "cpu",
     * or else all. A name that no plugin has is logged. */
    const char *backends;
};

/* Minimum struct_size of the structs that the caller fills. It covers the
 * fields of the first version. */
#define TANDEM_CONTEXT_OPTIONS_MIN_SIZE_0_1 \
    TANDEM_SIZE_THROUGH(struct tandem_context_options, log_user)

/* Creates a context and loads the plugins, but starts no driver. options may be
 * NULL. The caller destroys the context. A plugin that cannot be used is logged
 * and not loaded (tandem_context_load_error). Returns TANDEM_NO_DEVICE if no
 * plugin remains, or if the device in options or TANDEM_DEVICE is not the name
 * of a device or its plugin is not loaded. The message then lists the loaded
 * plugins. If only the number of the device is wrong, this is detected when its
 * driver starts: each operator then returns TANDEM_NO_DEVICE. */
enum tandem_status
tandem_context_create(const struct tandem_context_options *options,
                      struct tandem_context **out_context);

/* [blocks] Waits for all work, closes the devices and frees the tensors. Does
 * not update wrapped memory; call tandem_tensor_sync before. A device that does
 * not finish within hang_timeout_ms is not closed, and the memory that its work
 * uses is not freed. Waits for compilations that have begun; others are
 * dropped. */
void tandem_context_destroy(struct tandem_context *context);

/* [blocks: driver start, at first use] Returns the number of devices. The first
 * operator and the first call of a function below that takes a device start the
 * drivers, too. */
enum tandem_status tandem_device_count(struct tandem_context *context,
                                       uint32_t *out_count);
/* Describes a device. The caller sets out_info->struct_size. */
enum tandem_status tandem_device_describe(struct tandem_context *context,
                                          uint32_t device,
                                          struct tandem_device_info *out_info);
/* Returns the name of the backend and the number of the device within it, for
 * example "opencl" and 0. The name is valid as long as the context. */
enum tandem_status tandem_device_name(struct tandem_context *context,
                                      uint32_t device, const char **out_backend,
                                      uint32_t *out_index);
/* Finds a device by name: "cpu", "opencl" (its first device) or "opencl:1".
 * Returns TANDEM_NO_DEVICE if there is no such device. */
enum tandem_status tandem_device_find(struct tandem_context *context,
                                      const char *name, uint32_t *out_device);
/* Sets *out_calibrated to 1 if the device's profile has at least one measured
 * cost, else to 0. Other costs can still be defaults, for example if the
 * calibration ended early: see tandem_candidate.calibrated. */
enum tandem_status tandem_device_is_calibrated(struct tandem_context *context,
                                               uint32_t device,
                                               uint32_t *out_calibrated);
/* Returns the path of the device's profile, or NULL if it has none. Valid as
 * long as the context. */
enum tandem_status tandem_device_profile_path(struct tandem_context *context,
                                              uint32_t device,
                                              const char **out_path);
/* Returns the profiles that were found but are not used, each with the reason
 * ("PATH: it was measured with another driver"), or NULL. Valid as long as the
 * context. */
enum tandem_status
tandem_device_ignored_profiles(struct tandem_context *context, uint32_t device,
                               const char **out_why);
/* Sets *out_blocked to 1 if the operator failed verification on this device
 * according to its profile (tandem_profile_set_op_blocked). The device does not
 * run such an operator. */
enum tandem_status tandem_device_is_op_blocked(struct tandem_context *context,
                                               uint32_t device, uint32_t op,
                                               uint32_t *out_blocked);
/* [blocks: opens the device] Returns the plugin's function table and the open
 * device, for callers that use the plugin directly, for example to measure it.
 * Both belong to the context. */
enum tandem_status
tandem_device_backend(struct tandem_context *context, uint32_t device,
                      const struct tandem_backend **out_backend,
                      struct tandem_device **out_device);
/* Returns the message of load error number index (from 0): the name of a plugin
 * that was found but not loaded, and the reason. NULL if index is too large.
 * Valid as long as the context. */
const char *tandem_context_load_error(struct tandem_context *context,
                                      uint32_t index);

/* Runs all later operators on this device, or lets the library choose again
 * (TANDEM_ANY_DEVICE). */
enum tandem_status tandem_context_force_device(struct tandem_context *context,
                                               uint32_t device);
/* Enables (1) or disables (0) timing. With timing, each call waits for its
 * operator, which makes programs slower, and explanations have measured_ns. */
enum tandem_status tandem_context_set_timing(struct tandem_context *context,
                                             uint32_t enable);
/* [blocks] Waits for the work of all devices and returns the first error. If
 * work failed after its call returned and no other call has reported this
 * error, this function reports it once. */
enum tandem_status tandem_context_synchronize(struct tandem_context *context,
                                              uint64_t timeout_ns);

/* ---- tensors ------------------------------------------------------------ */

enum tandem_tensor_flags {
    /* The library never writes the tensor's memory. Using the tensor as an
     * output is TANDEM_INVALID_ARGUMENT. */
    TANDEM_TENSOR_READ_ONLY = 1u << 0
};

/* Creates a tensor with its own memory, which is allocated when it is first
 * needed. The content is undefined; reading it before it is written is an
 * error. The caller destroys the tensor. */
enum tandem_status tandem_tensor_create(struct tandem_context *context,
                                        uint32_t dtype, uint32_t rank,
                                        const int64_t *shape,
                                        struct tandem_tensor **out_tensor);

/* Creates a tensor in the caller's memory, without a copy. memory is the
 * address of element (0, ..., 0), and a multiple of the size of an element, or
 * NULL if the tensor is empty. Operators may be faster if it is a multiple of
 * 64 (on the CPU), or of 4096 (on devices that can use the host's memory).
 * strides are in elements; NULL means row-major. The memory must outlive the
 * tensor. The caller must not touch it from the first operator that uses the
 * tensor until tandem_tensor_sync, and must call tandem_tensor_host_written
 * after writing it. Two tensors may wrap overlapping memory only if neither is
 * written. */
enum tandem_status tandem_tensor_wrap(struct tandem_context *context,
                                      void *memory, uint32_t dtype,
                                      uint32_t rank, const int64_t *shape,
                                      const int64_t *strides, uint32_t flags,
                                      struct tandem_tensor **out_tensor);

/* Creates a tensor with another shape and strides that shares the memory of
 * tensor, for reshape, transpose, slice or broadcast. first_element is the
 * position of its element (0, ..., 0), in elements from that of tensor. strides
 * are in elements of the memory; NULL means row-major for the view's own shape,
 * whatever the strides of tensor are. The view keeps the memory alive. The
 * caller destroys it. */
enum tandem_status tandem_tensor_view(struct tandem_tensor *tensor,
                                      int64_t first_element, uint32_t rank,
                                      const int64_t *shape,
                                      const int64_t *strides,
                                      struct tandem_tensor **out_view);

/* [blocks: opens the device] Creates a tensor over a buffer of the program,
 * which a device's plugin made (tandem_device_backend), for example from a
 * cl_mem.  The tensor is row-major, begins at the buffer's first byte, and has
 * the buffer's content: the program's work with the buffer must be complete.
 * The buffer must outlive the tensor, and is the tensor's copy on that device.
 * If another device or the host writes the tensor, tandem_tensor_prefetch
 * brings the result to the buffer.  The program may use the buffer after
 * tandem_context_synchronize, and frees it before tandem_context_destroy.
 * TANDEM_UNSUPPORTED for a device that computes in the host's memory: use
 * tandem_tensor_wrap. */
enum tandem_status tandem_tensor_from_buffer(struct tandem_context *context,
                                             uint32_t device,
                                             struct tandem_buffer *buffer,
                                             uint32_t dtype, uint32_t rank,
                                             const int64_t *shape,
                                             struct tandem_tensor **out_tensor);

/* Like tandem_tensor_view, with another dtype.  byte_offset is the position of
 * element (0, ..., 0), in bytes from that of tensor, and must be aligned to the
 * view's elements in the memory. */
enum tandem_status
tandem_tensor_reinterpret(struct tandem_tensor *tensor, uint32_t dtype,
                          int64_t byte_offset, uint32_t rank,
                          const int64_t *shape, const int64_t *strides,
                          struct tandem_tensor **out_view);

/* The next four functions wait while a call of another thread uses the memory.
 * They are about the memory that a tensor shares with its views.
 *
 * Makes the content undefined, also if it was lost in an error: until the
 * memory is written again, it cannot be read and is not copied between
 * devices.  TANDEM_INVALID_ARGUMENT if the library must not write the memory.
 */
enum tandem_status tandem_tensor_reset(struct tandem_tensor *tensor);
/* Promises that the content never changes again, as that of weights.  Devices
 * may then keep copies of it in another layout, which makes products faster.
 * Later writes, by operators, by tandem_tensor_write or _host_written, and
 * tandem_tensor_reset and _rebind, are TANDEM_INVALID_ARGUMENT.  The tensor
 * must have content. */
enum tandem_status tandem_tensor_set_constant(struct tandem_tensor *tensor);
/* Lets the library call release(user) once when it no longer uses the program's
 * memory, wrapped or a buffer: after the tensor and its views are destroyed, or
 * the context is, and no device work uses the memory.  Any thread that destroys
 * them may be the caller; that of the last DLPack tensor of the memory, too.
 * release must not call the library.  It is not called if a device hangs that
 * may still use the memory.  TANDEM_INVALID_ARGUMENT if the memory has a
 * callback or a DLPack tensor already.  After an error, release is not called.
 */
enum tandem_status tandem_tensor_set_release(struct tandem_tensor *tensor,
                                             tandem_release_fn release,
                                             void *user);
/* [blocks: until no device uses the old memory] Gives a wrapped tensor other
 * memory with the same dtype, shape and strides, whose content is valid.
 * memory is as in tandem_tensor_wrap.  Results that are not yet in the old
 * memory are lost: call tandem_tensor_sync before.  The release callback of the
 * old memory is called.  TANDEM_INVALID_ARGUMENT if the tensor has views, is
 * one, or is constant. */
enum tandem_status tandem_tensor_rebind(struct tandem_tensor *tensor,
                                        void *memory);

/* DLPack (https://dmlc.github.io/dlpack), by which frameworks share tensors in
 * host memory.  The structs are those of dlpack.h, of version 1 and, in the
 * functions _legacy, of versions before 1.
 *
 * tandem_tensor_from_dlpack wraps the memory of a DLPack tensor.  On success
 * the tensor owns `managed` and calls its deleter once, as
 * tandem_tensor_set_release calls release.  After an error the caller owns it.
 * Memory that is not the host's, and element types that the library lacks, are
 * TANDEM_UNSUPPORTED. */
struct DLManagedTensor;
struct DLManagedTensorVersioned;
enum tandem_status
tandem_tensor_from_dlpack(struct tandem_context *context,
                          struct DLManagedTensorVersioned *managed,
                          struct tandem_tensor **out_tensor);
enum tandem_status
tandem_tensor_from_dlpack_legacy(struct tandem_context *context,
                                 struct DLManagedTensor *managed,
                                 struct tandem_tensor **out_tensor);
/* [blocks] Updates the host copy as tandem_tensor_sync does, and describes it,
 * without a copy.  The caller or its consumer calls the deleter once, in any
 * thread, also after the tensor or the context is destroyed; until then the
 * memory stays valid, except wrapped memory without a release callback, which
 * the program keeps valid.  Both use the same memory: an operator that writes
 * the tensor may change it, and a consumer that writes it must then call
 * tandem_tensor_host_written.  A tensor that must not be written is marked
 * read-only; in the legacy struct, which has no such mark, it is
 * TANDEM_UNSUPPORTED. */
enum tandem_status
tandem_tensor_to_dlpack(struct tandem_tensor *tensor, uint64_t timeout_ns,
                        struct DLManagedTensorVersioned **out_managed);
enum tandem_status
tandem_tensor_to_dlpack_legacy(struct tandem_tensor *tensor,
                               uint64_t timeout_ns,
                               struct DLManagedTensor **out_managed);

/* [may block: while a call of another thread uses the memory] Destroys a
 * tensor. Memory that running work uses is freed later. */
void tandem_tensor_destroy(struct tandem_tensor *tensor);

/* Returns the dtype, rank, shape and strides. shape and strides have room for
 * TANDEM_MAX_RANK values, or are NULL. */
enum tandem_status tandem_tensor_describe(const struct tandem_tensor *tensor,
                                          uint32_t *out_dtype,
                                          uint32_t *out_rank, int64_t *shape,
                                          int64_t *strides);

/* [may block] Copies memory, which is row-major and has exactly bytes =
 * elements * element size bytes, to the tensor. memory may be reused on
 * return. */
enum tandem_status tandem_tensor_write(struct tandem_tensor *tensor,
                                       const void *memory, uint64_t bytes);
/* [blocks] Copies the tensor to memory, row-major; bytes is the exact size. */
enum tandem_status tandem_tensor_read(struct tandem_tensor *tensor,
                                      void *memory, uint64_t bytes,
                                      uint64_t timeout_ns);
/* [blocks] Updates the host copy: the wrapped memory, or that of
 * tandem_tensor_host_data, then holds the result. Also waits for operators that
 * only read the wrapped memory, so the caller may then write it. */
enum tandem_status tandem_tensor_sync(struct tandem_tensor *tensor,
                                      uint64_t timeout_ns);
/* [blocks] Calls tandem_tensor_sync and returns the host address of element (0,
 * ..., 0). Valid until the tensor is written or destroyed. */
enum tandem_status tandem_tensor_host_data(struct tandem_tensor *tensor,
                                           uint64_t timeout_ns,
                                           const void **out_memory);
/* Declares that the caller has written the wrapped memory, or that of a DLPack
 * tensor of the tensor. The tensor's copies on devices become outdated. */
enum tandem_status tandem_tensor_host_written(struct tandem_tensor *tensor);
/* [may block: to copy from a device to the host] Copies the tensor to a device
 * before an operator needs it there. Does nothing if it would have to wait for
 * the work of another device; the operator then copies the tensor. */
enum tandem_status tandem_tensor_prefetch(struct tandem_tensor *tensor,
                                          uint32_t device);
/* Sets bit d of *out_mask if device d has a current copy of the tensor, and bit
 * 31 if the host has one. */
enum tandem_status tandem_tensor_residency(const struct tandem_tensor *tensor,
                                           uint32_t *out_mask);
#define TANDEM_RESIDENT_HOST (1u << 31)

/* ---- running operators -----------------------------------------------------
 * These functions validate the call, choose a device, transfer the operands
 * that are not on it, enqueue the operator, and return before it is complete.
 * [may block]: if an input must be downloaded from another device, the call
 * waits for it (wait_ns and transfer_ns below).  backend.h describes
 * shapes, dtypes, attributes and aliasing.  A NULL input is a scalar;
 * op->floats has its value.  An operator with the attribute "axis" needs an
 * input of rank 1 or more, also SOFTMAX; ONE_HOT, which adds the axis, accepts
 * rank 0, but its depth must be at least 1.  Otherwise the call is
 * TANDEM_INVALID_ARGUMENT.  examples/attributes.c passes attributes. */

struct tandem_run_options {
    size_t struct_size;
    /* The device, or TANDEM_ANY_DEVICE: the library chooses.  If the device
     * does not support the operator, or failed verification with it
     * (tandem_profile_set_op_blocked), the call is TANDEM_UNSUPPORTED, and no
     * other device is used. */
    uint32_t device;
    uint32_t flags; /* 0 */
};
/* A pointer to options with a device, for C only.  It is valid in the block
 * that contains it. */
#define TANDEM_RUN_ON(number)                                                  \
    (&(const struct tandem_run_options){                                       \
        .struct_size = sizeof(struct tandem_run_options), .device = (number)})

/* options may be NULL: any device. */
enum tandem_status tandem_run(struct tandem_context *context,
                              const struct tandem_op *op,
                              struct tandem_tensor *const *inputs,
                              uint32_t input_count,
                              struct tandem_tensor *const *outputs,
                              uint32_t output_count,
                              const struct tandem_run_options *options);

/* c = activation(alpha a b + beta c + bias). If beta is not 0, c is a residual
 * that is added before the activation. a and b have rank 2 or more; the axes
 * before the last two are broadcast to the shape of c, which has the larger
 * rank. In memory, these axes must be like one axis for each of a, b and c, so
 * two of them cannot be broadcast differently (TANDEM_UNSUPPORTED).
 * bias is NULL, [n] or [m, 1]. Any size may be 0. a and b have one dtype,
 * c and bias the same or another one: f32, f16 or bf16. Sums over k are f32.
 * The operator TANDEM_OP_GEMM of tandem_run is the same, but copies no input.
 *
 * a, b and bias may have any strides. A matrix is used without a copy if one of
 * its last two strides is 1 (so a transposed view needs no copy), the other
 * stride is at least the length of the axis of stride 1, and the batch stride
 * is not negative; a bias if it is contiguous. Any other input is first copied
 * by the operator COPY, on the same device if the options name one. An observer
 * sees this operator, too. The last stride of c must be 1, its row stride at
 * least n, and its batch stride not negative. Strides of axes with one element,
 * and of empty tensors, are ignored. */
struct tandem_matmul_options {
    size_t struct_size;
    double alpha, beta;
    struct tandem_tensor *bias;
    uint32_t activation; /* enum tandem_op_id, see struct tandem_gemm */
    uint32_t flags;      /* ALLOW flags of enum tandem_gemm_flags */
    double activation_parameter;
    uint32_t device; /* device, or TANDEM_ANY_DEVICE: the library chooses */
    double activation_parameter2;
};
#define TANDEM_MATMUL_OPTIONS_MIN_SIZE_0_1 \
    TANDEM_SIZE_THROUGH(struct tandem_matmul_options, device)
/* If options is NULL: alpha 1, beta 0, no bias, no activation, any device. In a
 * structure of zeros, alpha is 0, so there is no product, and device is 0. */
enum tandem_status tandem_matmul(struct tandem_context *context,
                                 const struct tandem_matmul_options *options,
                                 struct tandem_tensor *a,
                                 struct tandem_tensor *b,
                                 struct tandem_tensor *c);

/* Returns TANDEM_OK if the device can run the operator without compiling code
 * first, and TANDEM_UNSUPPORTED if it cannot run it. If code must be compiled,
 * this starts in the background, and the function returns TANDEM_NOT_READY. The
 * tensors need the dtypes, shapes and strides of those with which the operator
 * will run; only inputs that have never been written are an error.
 * With a device, tandem_run and tandem_matmul wait for the compilation; without
 * one, they use another device meanwhile. */
enum tandem_status tandem_prepare_on(struct tandem_context *context,
                                     uint32_t device,
                                     const struct tandem_op *op,
                                     struct tandem_tensor *const *inputs,
                                     uint32_t input_count,
                                     struct tandem_tensor *const *outputs,
                                     uint32_t output_count);
/* The same for tandem_matmul; options->device must be a device. */
enum tandem_status
tandem_prepare_matmul(struct tandem_context *context,
                      const struct tandem_matmul_options *options,
                      struct tandem_tensor *a, struct tandem_tensor *b,
                      struct tandem_tensor *c);

/* ---- questions without tensors ----------------------------------------------
 * Operands are described as in backend.h (struct tandem_operand_desc); strides
 * are in elements.  A NULL input is a scalar. */

/* Sets dtype, rank, shape and row-major strides of the outputs of an operator,
 * and its other members to 0.  The caller sets the dtype of an output of CAST
 * and RANGE; for other operators it is ignored.  That of GEMM is the dtype of
 * the bias or the residual, or of a without these.  RANGE, whose shape is the
 * caller's choice, is TANDEM_INVALID_ARGUMENT; COPY gets the shape of its
 * input, and RESIZE that of its scales.  An invalid call returns the error that
 * tandem_run would return. */
enum tandem_status
tandem_op_infer(const struct tandem_op *op,
                const struct tandem_operand_desc *const *inputs,
                uint32_t input_count,
                struct tandem_operand_desc *const *outputs,
                uint32_t output_count);

enum tandem_query_flags {
    /* Also starts to compile in the background what is not ready. */
    TANDEM_QUERY_COMPILE = 1u << 0
};

/* The answer of tandem_op_query, about a device that supports the operator. */
struct tandem_op_answer {
    size_t struct_size;
    uint32_t device;     /* the device asked, or the fastest one */
    uint32_t ready;      /* 1: it compiles nothing before the operator runs */
    uint32_t calibrated; /* as in struct tandem_candidate */
    uint32_t reserved;
    /* Predicted times in ns of a launch and of its execution on an idle device
     * that holds the operands, and of the compilation before it (0: ready). */
    double launch_ns, execute_ns, compile_ns;
};

/* [blocks: opens devices] Asks whether and how fast a device runs an operator.
 * With TANDEM_ANY_DEVICE, asks all devices that the library would choose from,
 * only one if the context forces it, and answers for the one with the shortest
 * predicted time.  An alignment of 0 or above 64 bytes stands for that of a
 * tensor in the library's memory, 64 bytes.  A later call
 * with such tensors is not checked and planned again.  The caller sets
 * out_answer->struct_size.  Returns TANDEM_UNSUPPORTED if no device that was
 * asked supports the operator, with the reason of the last one, and
 * TANDEM_NO_DEVICE if there was none to ask. */
enum tandem_status
tandem_op_query(struct tandem_context *context, uint32_t device,
                const struct tandem_op *op,
                const struct tandem_operand_desc *const *inputs,
                uint32_t input_count,
                const struct tandem_operand_desc *const *outputs,
                uint32_t output_count, uint32_t flags,
                struct tandem_op_answer *out_answer);

/* Shorthands for tandem_run, for operators without attributes. NULL operands
 * are TANDEM_INVALID_ARGUMENT. */
enum tandem_status tandem_unary(struct tandem_context *context, uint32_t op,
                                struct tandem_tensor *x,
                                struct tandem_tensor *y);
enum tandem_status tandem_binary(struct tandem_context *context, uint32_t op,
                                 struct tandem_tensor *a,
                                 struct tandem_tensor *b,
                                 struct tandem_tensor *y);
/* Bit i of axes selects axis i. keepdims follows from the rank of y. */
enum tandem_status tandem_reduce(struct tandem_context *context, uint32_t op,
                                 uint32_t axes, struct tandem_tensor *x,
                                 struct tandem_tensor *y);

/* ---- explanation -------------------------------------------------------- */

struct tandem_candidate {
    uint32_t device;
    uint32_t status; /* TANDEM_OK, or why the device cannot run it */
    /* 0 if the operator is not compiled yet. tandem_explain_last knows this of
     * the chosen device only, and of devices that would have been chosen. */
    uint32_t ready;
    /* 1 if the device's costs of this cost class were measured, 0 if they are
     * defaults. Defaults of a GPU compete if no GPU that can run the operator
     * has measured costs. Defaults of the CPU plugin always compete. Other
     * defaults compete only if no candidate has measured costs. */
    uint32_t calibrated;
    /* The parts of predicted_ns, in ns: waiting for work that uses the
     * operands, transferring operands, launching, executing, and downloading
     * outputs that the caller is expected to read. compile_ns is not a part,
     * because compilation runs in the background. */
    double wait_ns, transfer_ns, launch_ns, execute_ns;
    double download_ns, compile_ns;
    double predicted_ns;
};

struct tandem_explanation {
    size_t struct_size;
    uint32_t op;         /* enum tandem_op_id */
    uint32_t cost_class; /* enum tandem_cost_class */
    double elements;     /* number of elements of the largest operand */
    double bytes;        /* number of bytes read and written */
    uint32_t chosen;     /* device that runs the operator */
    uint32_t forced;     /* 1 if the caller chose the device */
    double measured_ns;  /* time on the chosen device; 0 if not timed */
    uint32_t candidate_count;
    uint32_t reserved;
    struct tandem_candidate candidates[TANDEM_MAX_DEVICES];
};

/* Explains the calling thread's last tandem_run or tandem_matmul in this
 * context. The caller sets out->struct_size. */
enum tandem_status tandem_explain_last(struct tandem_context *context,
                                       struct tandem_explanation *out);
/* Explain which device would be chosen, without running the operator.
 * The times of tandem_explain_matmul are without those of the copies that
 * tandem_matmul would make. */
enum tandem_status tandem_explain_op(struct tandem_context *context,
                                     const struct tandem_op *op,
                                     struct tandem_tensor *const *inputs,
                                     uint32_t input_count,
                                     struct tandem_tensor *const *outputs,
                                     uint32_t output_count,
                                     struct tandem_explanation *out);
enum tandem_status
tandem_explain_matmul(struct tandem_context *context,
                      const struct tandem_matmul_options *options,
                      struct tandem_tensor *a, struct tandem_tensor *b,
                      struct tandem_tensor *c, struct tandem_explanation *out);

/* Writes an explanation as text: the operator, a line for each candidate with
 * its predicted time and the parts of it, and "*" before the chosen one.
 * TANDEM_EXPLANATION_TEXT_BYTES are enough; with fewer, a text that does not
 * fit is TANDEM_INVALID_ARGUMENT. */
#define TANDEM_EXPLANATION_TEXT_BYTES 4096u
enum tandem_status
tandem_explanation_text(struct tandem_context *context,
                        const struct tandem_explanation *explanation,
                        char *out_text, size_t bytes);

/* Observer. Called in the thread that runs an operator, before it is launched
 * (after is false, measured_ns is 0) and after that. Several threads may call
 * it at the same time. The explanation is valid during the call only. Must not
 * use the context. */
typedef void (*tandem_observer_fn)(void *user,
                                   const struct tandem_explanation *explanation,
                                   bool after);
/* Sets the observer; NULL removes it. */
enum tandem_status tandem_context_set_observer(struct tandem_context *context,
                                               tandem_observer_fn observer,
                                               void *user);

/* ---- profiles --------------------------------------------------------------
 * Scalars, in ns: "launch", "sync", "alloc", "compile", "gemm_compile".
 * Transfer curves, ns as a function of x bytes: "upload", "download",
 * "upload_pinned", "download_pinned".
 * Operator curves, ns as a function of x bytes read and written, from a long
 * sequence of launches on resident data: "elementwise", "transcendental",
 * "multi_transcendental", "reduce", "softmax", "norm", "strided", "gather",
 * "optimizer".
 * GEMM points: ns for m, n and k.
 * An unknown name is TANDEM_INVALID_ARGUMENT. A profile may be used by one
 * thread at a time. */

/* Creates a profile without costs, but with the current tuning and blocked
 * operators of the device. The caller destroys the profile. */
enum tandem_status tandem_profile_create(struct tandem_context *context,
                                         uint32_t device,
                                         struct tandem_profile **out_profile);
/* Creates a profile with everything that the device's current profile
 * contains. The caller destroys the profile. */
enum tandem_status tandem_profile_edit(struct tandem_context *context,
                                       uint32_t device,
                                       struct tandem_profile **out_profile);
void tandem_profile_destroy(struct tandem_profile *profile);
/* Records that the operator failed verification on the device (1), so that
 * programs which read the profile do not run it there, or that it passed
 * (0). */
enum tandem_status tandem_profile_set_op_blocked(struct tandem_profile *profile,
                                                 uint32_t op, uint32_t blocked);
/* Sets a scalar to `value` ns. */
enum tandem_status tandem_profile_set_scalar(struct tandem_profile *profile,
                                             const char *name, double value);
/* Adds a point to a curve. The order of points is free. A second point at the
 * same x replaces the first. */
enum tandem_status
tandem_profile_add_curve_point(struct tandem_profile *profile,
                               const char *curve, double x, double ns);
/* Adds the time of a GEMM. */
enum tandem_status tandem_profile_add_gemm_point(struct tandem_profile *profile,
                                                 int64_t m, int64_t n,
                                                 int64_t k, double ns);
/* Sets a key in the plugin's own section of the profile. */
enum tandem_status tandem_profile_set_tuning(struct tandem_profile *profile,
                                             const char *key,
                                             const char *value);
/* Stores a text about the measurement, such as "missing": "gemm", or removes
 * it if the text is NULL. The library does not use these notes. A profile that
 * tandem_profile_edit creates keeps them. */
enum tandem_status tandem_profile_set_note(struct tandem_profile *profile,
                                           const char *key, const char *text);
/* Writes a temporary file and renames it to the profile of this device in
 * directory; NULL means the directory that tandem_context_create reads first.
 * out_path receives the path, has room for path_bytes bytes, and may be
 * NULL. A path that is longer is TANDEM_INVALID_ARGUMENT. */
enum tandem_status tandem_profile_save(struct tandem_profile *profile,
                                       const char *directory, char *out_path,
                                       size_t path_bytes);
/* Returns the time that the device's profile predicts for a curve (above) at x,
 * or the default if it has no such curve. */
enum tandem_status tandem_device_predict_cost(struct tandem_context *context,
                                              uint32_t device,
                                              const char *curve, double x,
                                              double *out_ns);

#ifdef __cplusplus
}
#endif
#endif
