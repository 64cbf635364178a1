/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tandem/host.h - libtandem, the host library: loads backend plugins, keeps
 * tensors where they are needed, and runs each operator on the device that
 * measured costs say is fastest for it, at its size, with its data where it
 * lies.
 *
 * A program needs a context, tensors, and tandem_run or tandem_matmul:
 *
 *     tandem_context_create(NULL, &context);
 *     tandem_tensor_wrap(context, x, TANDEM_F32, 1, shape, NULL, 0, &tx);
 *     tandem_tensor_wrap(context, y, TANDEM_F32, 1, shape, NULL, 0, &ty);
 *     tandem_unary(context, TANDEM_OP_RELU, tx, ty);
 *     tandem_tensor_sync(ty, TANDEM_TIMEOUT_INFINITE); // fills y
 *
 * Rules that hold for every function below
 *
 *   Threads    A context may be used by any number of threads; its calls are
 *              serialised where they must be, and one that waits for a device
 *              keeps no other thread out that does not need that device.  Two
 *              threads must not use one tensor at once unless both only read
 *              it.  No thread uses what another destroys.
 *   Blocking   Functions marked [blocks] wait for device work; timeouts are
 *              in ns, TANDEM_TIMEOUT_INFINITE waits without limit, and one
 *              that ran out is TANDEM_NOT_READY.  Those marked [may block]
 *              wait only where data must leave a device that still works on
 *              it, or where memory is to be written that a device still uses;
 *              a device that keeps them waiting for hang_timeout_ms (below)
 *              is lost from then on: its work is given up, others serve, and
 *              tensors whose only content it had give TANDEM_DEVICE_LOST
 *              until they are written again, those whose memory it may still
 *              write for ever.  What the plugin waits for inside alloc and
 *              upload has the plugin's limit (blocking_timeout_ms in
 *              backend.h, docs/opencl-errors.md).
 *   Errors     As in backend.h: a status, and tandem_last_error() for the
 *              calling thread.  A call that returns an error has changed
 *              nothing and started no work.  Work that failed after its call
 *              returned makes the tensors that it should have written give
 *              that error wherever they are read or used, until they are
 *              written again.
 *   Growth     A struct that begins with struct_size grows as backend.h says.
 *              The caller sets struct_size to sizeof of the struct in every
 *              struct that he passes, those that are filled for him too.  What
 *              is shorter than the first version had it (0: forgotten) is
 *              TANDEM_INVALID_ARGUMENT, of structs that are filled what does
 *              not hold struct_size itself.
 *   Handles    A freed, foreign or NULL handle is TANDEM_INVALID_ARGUMENT.
 *              Destroy functions accept NULL.
 *   Fork       In a child process, every call with a context of the parent
 *              returns TANDEM_DEVICE_LOST.  The child may create its own
 *              context.  If the parent had listed or used its devices, that
 *              context has no OpenCL devices.  tandem_context_create does not
 *              start OpenCL; the first use of a device does.
 *              Restriction: If another thread loads a shared library during
 *              the fork, the child must not create a context, because dlopen
 *              may abort the child or never return.  Such a child may call
 *              functions with handles that it inherited, which return
 *              TANDEM_DEVICE_LOST, and may destroy the handles.  Such a child
 *              must end by exec or _exit.  tandem_context_create loads
 *              libraries.  OpenCL drivers load libraries when they start and
 *              when a kernel is compiled or runs for the first time, also in
 *              threads of this library or of the driver.
 *   Process    The library never aborts, exits, prints, forks or installs a
 *              signal or exit handler.  Call tandem_context_destroy before
 *              main returns or exit is called, on error paths too, if a device
 *              other than the CPU plugin's may have been used: BLAS, CLBlast
 *              and drivers end themselves in exit, and some crash there while
 *              their own threads still compile or compute.  From when exit is
 *              called no thread may be in a product or use OpenCL, but for
 *              handlers of atexit that were registered after the context's
 *              first operator.  _exit and quick_exit are safe at any time.  Of
 *              a process that forked while threads used OpenCL the child ends
 *              by _exit.
 *   Signals    Threads that a call starts, those of BLAS and drivers too, block
 *              every signal except those of faults.  SIGHUP, SIGINT, SIGQUIT
 *              and SIGTERM stay open if they have no handler and the calling
 *              thread does not block them.  A program that takes them by
 *              sigwait or signalfd blocks them before its first call.
 *
 * Environment (read by secure_getenv, at tandem_context_create):
 *   TANDEM_PLUGIN_PATH    directories to search before the installed one
 *   TANDEM_DEVICE         run everything on this device ("cpu", "opencl",
 *                         "opencl:1"), as tandem_context_force_device; one that
 *                         there is not is an error, never another device
 *   TANDEM_BACKENDS       names of the backends to load, by commas (all)
 *   TANDEM_PROFILE        directory of the profiles, before the default ones
 *   TANDEM_DETERMINISTIC  1: placement, kernels and GEMM path are fixed
 *   TANDEM_LOG            error, warning (default), info, debug or none
 *   TANDEM_NUM_THREADS    most threads of the CPU plugin, the caller's among
 *                         them (0: as many as the process may use); what is
 *                         not a number is ignored with a warning
 *   TANDEM_HANG_TIMEOUT_SECONDS  how long a device may keep an operator or a
 *                         write waiting before it counts as lost (60; 0: never)
 */
#ifndef TANDEM_HOST_H
#define TANDEM_HOST_H

#include "backend.h"

#ifdef __cplusplus
extern "C" {
#endif

struct tandem_context; /* plugins, devices, profiles, tensors */
struct tandem_tensor;  /* an array, on the host and on devices */
struct tandem_profile; /* measured costs of one device, being written */

/* The most devices of one context. */
#define TANDEM_MAX_DEVICES 16u

/* Devices of a context are numbered from 0; the CPU plugin's is the first
 * where it is loaded.  Not a device: */
#define TANDEM_ANY_DEVICE UINT32_MAX

/* "0.1.0".  Static. */
const char *tandem_version(void);

/* The message of the calling thread's last failed call into this library, ""
 * if none; valid until the thread's next call. */
const char *tandem_last_error(void);

/* "invalid argument", ...; "unknown status" for any other number.  Static. */
const char *tandem_status_name(enum tandem_status status);

/* ---- operators ----------------------------------------------------------- */

/* The operator table of backend.h, one row.  Static. */
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
/* Returns the row of an operator, or NULL if there is no such operator. */
const struct tandem_op_info *tandem_op_by_id(uint32_t id);
const struct tandem_op_info *tandem_op_by_name(const char *name);

/* ---- context -------------------------------------------------------------- */

struct tandem_context_options {
    size_t struct_size;
    /* Directories separated by colons, before TANDEM_PLUGIN_PATH; NULL: none.
     * Empty and relative elements are ignored. */
    const char *plugin_path;
    /* Directory of the profiles; NULL: TANDEM_PROFILE, then
     * $XDG_CACHE_HOME/tandem (else ~/.cache/tandem), then the system's. */
    const char *profile_path;
    const char *device; /* before TANDEM_DEVICE; NULL: that one, else any */
    /* Passed to every plugin's open, after the library's own; see backend.h. */
    const char *const *open_keys;
    const char *const *open_values;
    uint32_t open_count;
    uint32_t deterministic;  /* 1: as TANDEM_DETERMINISTIC */
    uint32_t log_level;      /* 0: TANDEM_LOG, else TANDEM_LOG_WARNING */
    uint32_t time_operators; /* 1: as tandem_context_set_timing */
    tandem_log_fn log;       /* NULL: messages go nowhere */
    void *log_user;
    /* How long a call that has no timeout of its own waits for a device before
     * it counts as hung, and so as lost; longer where more work than that is
     * predicted to be under way on it.  0: TANDEM_HANG_TIMEOUT_SECONDS;
     * UINT32_MAX: no limit. */
    uint32_t hang_timeout_ms;
    uint32_t reserved;
};

/* The least struct_size of what a caller fills: through the last field of the
 * first version. */
#define TANDEM_CONTEXT_OPTIONS_MIN_SIZE_0_1 \
    TANDEM_SIZE_THROUGH(struct tandem_context_options, log_user)

/* Loads the plugins that it finds.  A plugin that cannot be used is logged
 * and left out; TANDEM_NO_DEVICE where none is left, and where the device that
 * options or TANDEM_DEVICE name cannot be: it is no name of a device, or its
 * plugin is not loaded.  Whether the plugin has a device of that number is
 * known only once its driver is started: where not, the first operator, and
 * each one after it, is TANDEM_NO_DEVICE.  The messages name what is wrong, and
 * what there is.  options may be NULL.  Touches no device. */
enum tandem_status
tandem_context_create(const struct tandem_context_options *options,
                      struct tandem_context **out_context);

/* [blocks]  Waits for all work, brings nothing back to wrapped memory (call
 * tandem_tensor_sync first), closes devices, frees tensors.  A device that
 * keeps it waiting for hang_timeout_ms is left as it is, with the memory that
 * its work uses.  The wait includes compilations that have begun; those that
 * have not begun are dropped. */
void tandem_context_destroy(struct tandem_context *context);

/* [blocks: driver start, at first use]  The devices that there are.  So does
 * whichever comes first of the functions that name a device, and of the
 * operators. */
enum tandem_status tandem_device_count(struct tandem_context *context,
                                       uint32_t *out_count);
/* out_info->struct_size is set by the caller. */
enum tandem_status tandem_device_describe(struct tandem_context *context,
                                          uint32_t device,
                                          struct tandem_device_info *out_info);
/* The backend's name and the device's number within it: "opencl", 0. */
enum tandem_status tandem_device_name(struct tandem_context *context,
                                      uint32_t device, const char **out_backend,
                                      uint32_t *out_index);
/* By "cpu", "opencl" (its first) or "opencl:1".  TANDEM_NO_DEVICE where there
 * is none. */
enum tandem_status tandem_device_find(struct tandem_context *context,
                                      const char *name, uint32_t *out_device);
/* 1 where a profile of this device with measured costs was found and read. */
enum tandem_status tandem_device_is_calibrated(struct tandem_context *context,
                                            uint32_t device,
                                            uint32_t *out_calibrated);
/* The file that the device's profile was read from; NULL where there is none.
 * Valid as long as the context. */
enum tandem_status tandem_device_profile_path(struct tandem_context *context,
                                         uint32_t device,
                                         const char **out_path);
/* Profiles that were found and are not used, each with the reason, as "PATH: it
 * was measured with another driver"; NULL where there is none.  Valid as long
 * as the context. */
enum tandem_status
tandem_device_ignored_profiles(struct tandem_context *context, uint32_t device,
                              const char **out_why);
/* 1 where the device's profile says that it computes the operator wrong
 * (tandem_profile_set_op_blocked), so that it is not run there. */
enum tandem_status tandem_device_is_op_blocked(struct tandem_context *context,
                                         uint32_t device, uint32_t op,
                                         uint32_t *out_rejects);
/* [blocks: opens it]  The plugin's own table and open device, for callers that
 * want to go below this library, and for measuring.  The context keeps them. */
enum tandem_status
tandem_device_backend(struct tandem_context *context, uint32_t device,
                      const struct tandem_backend **out_backend,
                      struct tandem_device **out_device);
/* The plugins that were found and could not be used, and why: index from 0,
 * NULL past the last.  Valid as long as the context. */
const char *tandem_context_load_error(struct tandem_context *context,
                                   uint32_t index);

/* From here on every operator runs on device (TANDEM_ANY_DEVICE: chosen). */
enum tandem_status tandem_context_force_device(struct tandem_context *context,
                                               uint32_t device);
/* Whether operators are timed (0 or 1): explanations then carry measured_ns.
 * Each operator is waited for, so it slows a program down. */
enum tandem_status tandem_context_set_timing(struct tandem_context *context,
                                          uint32_t enable);
/* [blocks]  Waits for the work of all devices; the first error found.  The
 * error of work that failed after its call had returned, and that nothing has
 * told since, is told here, once. */
enum tandem_status tandem_context_synchronize(struct tandem_context *context,
                                      uint64_t timeout_ns);

/* ---- tensors --------------------------------------------------------------- */

enum tandem_tensor_flags {
    /* The memory is never written by the library; as an output it is
     * TANDEM_INVALID_ARGUMENT. */
    TANDEM_TENSOR_READ_ONLY = 1u << 0
};

/* A tensor with memory of its own, allocated where it is first needed; its
 * content is undefined, and reading it before it is written is an error. */
enum tandem_status tandem_tensor_create(struct tandem_context *context,
                                        uint32_t dtype, uint32_t rank,
                                        const int64_t *shape,
                                        struct tandem_tensor **out_tensor);

/* A tensor over the caller's memory, without a copy.  memory is where element
 * (0, ..., 0) lies; strides in elements, NULL for row-major.  The memory
 * stays the caller's and must outlive the tensor.  From an operator that uses
 * the tensor until tandem_tensor_sync, the caller leaves it alone; after
 * writing it himself he calls tandem_tensor_host_written.  Two tensors must
 * not wrap overlapping memory unless neither is written. */
enum tandem_status tandem_tensor_wrap(struct tandem_context *context,
                                      void *memory, uint32_t dtype,
                                      uint32_t rank, const int64_t *shape,
                                      const int64_t *strides, uint32_t flags,
                                      struct tandem_tensor **out_tensor);

/* Another shape and strides over the same memory and residency; first_element
 * is where its (0, ..., 0) lies, counted in elements from the other's.  For
 * reshape, transpose, slice, broadcast.  Keeps the memory alive. */
enum tandem_status tandem_tensor_view(struct tandem_tensor *tensor,
                                      int64_t first_element, uint32_t rank,
                                      const int64_t *shape,
                                      const int64_t *strides,
                                      struct tandem_tensor **out_view);

/* Returns at once; memory in use by work under way is freed after it. */
void tandem_tensor_destroy(struct tandem_tensor *tensor);

/* strides NULL, shape NULL: not wanted; else room for TANDEM_MAX_RANK. */
enum tandem_status tandem_tensor_describe(const struct tandem_tensor *tensor,
                                          uint32_t *out_dtype,
                                          uint32_t *out_rank, int64_t *shape,
                                          int64_t *strides);

/* [may block]  Copies from memory (bytes: exactly elements * element size,
 * row-major) into the tensor.  memory may be reused at once. */
enum tandem_status tandem_tensor_write(struct tandem_tensor *tensor,
                                       const void *memory, uint64_t bytes);
/* [blocks]  Copies the tensor to memory, row-major. */
enum tandem_status tandem_tensor_read(struct tandem_tensor *tensor,
                                      void *memory, uint64_t bytes,
                                      uint64_t timeout_ns);
/* [blocks]  Brings the host's copy up to date: the wrapped memory, or that of
 * tandem_tensor_host_data, then holds the result.  Waits for operators that
 * only read wrapped memory, too: the caller may then write it. */
enum tandem_status tandem_tensor_sync(struct tandem_tensor *tensor,
                                      uint64_t timeout_ns);
/* [blocks]  tandem_tensor_sync, and where element (0, ..., 0) lies on the
 * host.  Valid until the tensor is written or destroyed. */
enum tandem_status tandem_tensor_host_data(struct tandem_tensor *tensor,
                                      uint64_t timeout_ns,
                                      const void **out_memory);
/* Declares that the caller wrote the wrapped memory: device copies go
 * stale. */
enum tandem_status tandem_tensor_host_written(struct tandem_tensor *tensor);
/* [may block: for the copy itself, from a device to the host]  Brings the
 * tensor to a device before an operator needs it there.  Does nothing where
 * that would mean waiting for another device's work: the operator then does. */
enum tandem_status tandem_tensor_prefetch(struct tandem_tensor *tensor,
                                          uint32_t device);
/* Bit d: device d has a current copy; bit 31: the host has. */
enum tandem_status tandem_tensor_residency(const struct tandem_tensor *tensor,
                                           uint32_t *out_mask);
#define TANDEM_RESIDENT_HOST (1u << 31)

/* ---- running operators -------------------------------------------------------
 * Each validates, chooses, moves what is not resident, launches, and returns
 * before the work is done.  [may block]: an operator whose input has to come
 * home from another device waits for that (wait_ns, transfer_ns below).
 * Shapes, dtypes and aliasing: backend.h.  A tensor NULL among the inputs is a
 * scalar, its value in op->floats. */

enum tandem_status tandem_run(struct tandem_context *context,
                              const struct tandem_op *op,
                              struct tandem_tensor *const *inputs,
                              uint32_t input_count,
                              struct tandem_tensor *const *outputs,
                              uint32_t output_count);

/* The same on a device of the caller's choice.  TANDEM_UNSUPPORTED where the
 * device does not serve it, or computes it wrong by its profile
 * (tandem_profile_set_op_blocked); it is not run elsewhere then. */
enum tandem_status tandem_run_on(struct tandem_context *context,
                                 uint32_t device, const struct tandem_op *op,
                                 struct tandem_tensor *const *inputs,
                                 uint32_t input_count,
                                 struct tandem_tensor *const *outputs,
                                 uint32_t output_count);

/* c = activation(alpha a b + beta c + bias): by beta a residual in c, of its
 * dtype, is added before the activation.  a and b have rank 2, or rank 3 with a
 * batch (equal to c's, or 1, which repeats); bias is NULL, [n] or [m, 1].  Any
 * size may be 0, that of the batch too.  a and b are of one dtype, c and bias
 * of another or the same: f32, f16 or bf16, where a sum over k is one of f32
 * (struct tandem_gemm).
 *
 * a, b and bias may have any strides.  No copy is made if one of the last two
 * strides of a matrix is 1, so that a transposed view is a transposed product,
 * the other is at least the length of the axis of stride 1, and the stride of
 * the batch is not negative; bias must be contiguous for that.  Any other input
 * is first copied by the operator COPY, on the same device if the options name
 * one; an observer sees that operator, too.  The last stride of c must be 1,
 * that of its rows at least n, and that of its batch not negative.  Strides of
 * axes with one element, and of empty tensors, are ignored. */
struct tandem_matmul_options {
    size_t struct_size;
    double alpha, beta;
    struct tandem_tensor *bias;
    uint32_t activation; /* as in struct tandem_gemm */
    uint32_t flags;      /* TANDEM_GEMM_ALLOW_TF32, ..._ROW_SCALED */
    double activation_parameter;
    uint32_t device; /* TANDEM_ANY_DEVICE: chosen */
};
#define TANDEM_MATMUL_OPTIONS_MIN_SIZE_0_1 \
    TANDEM_SIZE_THROUGH(struct tandem_matmul_options, device)
/* options NULL: alpha 1, beta 0, no bias, no activation, any device. */
enum tandem_status tandem_matmul(struct tandem_context *context,
                                 const struct tandem_matmul_options *options,
                                 struct tandem_tensor *a,
                                 struct tandem_tensor *b,
                                 struct tandem_tensor *c);

/* Shorthands of tandem_run. */
enum tandem_status tandem_unary(struct tandem_context *context, uint32_t op,
                                struct tandem_tensor *x,
                                struct tandem_tensor *y);
enum tandem_status tandem_binary(struct tandem_context *context, uint32_t op,
                                 struct tandem_tensor *a,
                                 struct tandem_tensor *b,
                                 struct tandem_tensor *y);
/* axes: bit i for axis i; keepdims is read off y's rank. */
enum tandem_status tandem_reduce(struct tandem_context *context, uint32_t op,
                                 uint32_t axes, struct tandem_tensor *x,
                                 struct tandem_tensor *y);

/* ---- explanation --------------------------------------------------------------- */

struct tandem_candidate {
    uint32_t device;
    uint32_t status; /* TANDEM_OK: could run it; else why not */
    uint32_t ready;  /* 0: a compile is due or under way */
    /* 1: the device's costs of this class of operators were measured; 0: they
     * are guesses, and but for the CPU plugin's these do not compete where
     * another candidate that could run it has 1. */
    uint32_t calibrated;
    /* The parts of predicted_ns: waiting for work that holds the data, moving
     * what is not resident, launching, running, and bringing outputs that the
     * caller is expected to read home.  Compiling is in the background and
     * not a part. */
    double wait_ns, transfer_ns, launch_ns, execute_ns;
    double download_ns, compile_ns;
    double predicted_ns;
};

struct tandem_explanation {
    size_t struct_size;
    uint32_t op;         /* enum tandem_op_id */
    uint32_t cost_class; /* enum tandem_cost_class */
    double elements;     /* of the largest operand */
    double bytes;        /* read and written */
    uint32_t chosen;     /* device */
    uint32_t forced;     /* 1: by the caller, not by cost */
    double measured_ns;  /* of the chosen device; 0 where not measured */
    uint32_t candidate_count;
    uint32_t reserved;
    struct tandem_candidate candidates[TANDEM_MAX_DEVICES];
};

/* The calling thread's last tandem_run, tandem_run_on or tandem_matmul in this
 * context.  out->struct_size is set by the caller. */
enum tandem_status tandem_explain_last(struct tandem_context *context,
                                  struct tandem_explanation *out);
/* What would be chosen, without running it.  tandem_explain_matmul makes the
 * copies that tandem_matmul would make. */
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

/* Called before an operator is launched (measured_ns 0) and after; in the
 * caller's thread; must not call back into the context. */
typedef void (*tandem_observer_fn)(void *user,
                                   const struct tandem_explanation *explanation,
                                   bool after);
/* observer NULL: none.  Costs nothing when unset. */
enum tandem_status tandem_context_set_observer(struct tandem_context *context,
                                          tandem_observer_fn observer,
                                          void *user);

/* ---- profiles ------------------------------------------------------------------
 * Scalars (ns unless named): "launch", "sync", "alloc", "compile",
 * "gemm_compile".
 * Curves (x in bytes): "upload", "download", "upload_pinned",
 * "download_pinned"; and, x in bytes read and written, time from a long
 * stream of launches on resident data: "elementwise", "transcendental",
 * "multi_transcendental", "reduce", "softmax", "strided", "gather",
 * "optimizer".
 * GEMM points: m, n, k and ns. */

/* Without costs; with what the plugin's own section has now. */
enum tandem_status tandem_profile_create(struct tandem_context *context,
                                         uint32_t device,
                                         struct tandem_profile **out_profile);
/* Likewise, but beginning with what the device's profile has now. */
enum tandem_status tandem_profile_edit(struct tandem_context *context,
                                         uint32_t device,
                                         struct tandem_profile **out_profile);
void tandem_profile_destroy(struct tandem_profile *profile);
/* Notes that the device computes an operator wrong (1), so that programs which
 * read the profile never run it there, or that it does not (0).  A profile
 * begins with what the device's profile has noted. */
enum tandem_status tandem_profile_set_op_blocked(struct tandem_profile *profile,
                                         uint32_t op, uint32_t rejected);
enum tandem_status tandem_profile_set_scalar(struct tandem_profile *profile,
                                         const char *name, double value);
/* Points may come in any order; a second one at the same x replaces it. */
enum tandem_status
tandem_profile_add_curve_point(struct tandem_profile *profile,
                               const char *curve, double x, double ns);
enum tandem_status tandem_profile_add_gemm_point(struct tandem_profile *profile,
                                       int64_t m, int64_t n, int64_t k,
                                       double ns);
/* One key of the plugin's own section. */
enum tandem_status tandem_profile_set_tuning(struct tandem_profile *profile,
                                         const char *key, const char *value);
/* Writes to a temporary file and renames it over the profile of this device
 * in directory (NULL: the one that tandem_context_create reads first).
 * out_path: NULL, or room for path_bytes. */
enum tandem_status tandem_profile_save(struct tandem_profile *profile,
                                       const char *directory, char *out_path,
                                       size_t path_bytes);
/* The time that a device's profile predicts for a curve of it at x (as above),
 * or its default where it has none. */
enum tandem_status tandem_device_predict_cost(struct tandem_context *context,
                                      uint32_t device, const char *curve,
                                      double x, double *out_ns);

#ifdef __cplusplus
}
#endif
#endif
