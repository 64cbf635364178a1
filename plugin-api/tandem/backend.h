/* SPDX-License-Identifier: Apache-2.0 */
/* tandem/backend.h - the interface between a host and a compute backend plugin.
 *
 * A plugin is a shared object that exports one function,
 * tandem_backend_query(), which returns a table of functions.  Both sides need
 * only this header and operators.h.  They include standard headers only and may
 * be copied into other projects.
 *
 * Rules for every declaration below
 *
 *   Growth     A struct that is passed by pointer begins with struct_size.  The
 *              side that allocates the struct sets it to its sizeof.  Within
 *              a major version, fields are appended and never moved or removed.
 *              A reader treats fields beyond struct_size as zero.  A callee
 *              that fills a struct writes no byte beyond struct_size.
 *              TANDEM_INVALID_ARGUMENT is returned if struct_size is below
 *              TANDEM_..._MIN_SIZE_1_0 (below) or above 4096, or below
 *              sizeof(size_t) for a struct that is filled.  Options that are 0
 *              except for struct_size mean the defaults.
 *   Unknown    Input that only a later version defines is TANDEM_UNSUPPORTED in
 *   input      every function, so that a host can tell an older plugin from a
 *              mistake: a byte other than 0 in a reserved field or in the part
 *              of a struct that the callee does not know; a flag; an operator;
 *              an attribute after those of the operator table, the scalars and
 *              the lists of the operator's class; a dtype; a bias_kind.  If the
 *              call is also invalid, either status may be returned.
 *              struct tandem_operand_desc, tandem_memory and tandem_matrix have
 *              no struct_size and do not change within a major version.
 *   Units      Sizes and offsets are in bytes unless the name says elements;
 *              strides and leading dimensions are in elements; times are in ns.
 *   Threads    Functions that take a device may be called from any thread at
 *              any time.  A stream may be used by one thread at a time.  Events
 *              and buffers may be used from any thread.
 *   Blocking   Only functions marked [blocks] wait for device work.  Their
 *              timeout_ns is 0 to poll, TANDEM_TIMEOUT_INFINITE to wait without
 *              a limit.  A wait that times out returns TANDEM_NOT_READY, and so
 *              does a poll of work that is not complete.
 *   Errors     A function that fails returns a status other than TANDEM_OK and
 *              sets the message of the calling thread (last_error).  It sets
 *              its output pointers to NULL or 0 and has started no device work.
 *              No function aborts, exits, prints or throws.
 *   Sticky     If work fails after its call returned TANDEM_OK, its stream
 *   errors     keeps the error, and the buffers that the work should have
 *              written are poisoned.  While a stream has an error, each enqueue
 *              returns that error and does nothing.  The next
 *              stream_synchronize, event_wait or blocking download of the
 *              stream returns the error.  stream_synchronize also clears it,
 *              except TANDEM_DEVICE_LOST, which is never cleared.  Reading a
 *              poisoned buffer or using it as an input returns the error.  An
 *              upload or fill of the whole buffer clears the poison.
 *   NULL       Destroy and free functions accept NULL.  Elsewhere NULL is
 *              TANDEM_INVALID_ARGUMENT unless a comment allows it.
 *
 * Version history: the file CHANGES in the directory of this header. */
#ifndef TANDEM_BACKEND_H
#define TANDEM_BACKEND_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "operators.h"

#ifdef __cplusplus
extern "C" {
#endif

#define TANDEM_ABI_MAJOR 1u
#define TANDEM_ABI_MINOR 0u

#define TANDEM_MAX_RANK 8u
/* Maximum number of inputs, and of outputs, of an operator. */
#define TANDEM_MAX_OPERANDS 8u
/* Maximum number of integer attributes, and of float attributes. */
#define TANDEM_MAX_ATTRIBUTES 32u
#define TANDEM_TIMEOUT_INFINITE UINT64_MAX

/* ---- status ------------------------------------------------------------ */

enum tandem_status {
    TANDEM_OK = 0,
    /* The call is invalid: a pointer, shape, range or handle is wrong (freed,
     * for example), or dtypes do not fit together. The message names the
     * argument and its value. */
    TANDEM_INVALID_ARGUMENT = 1,
    /* The request is valid, but this backend or device does not support it, or
     * only a later version defines it (Unknown input, above). */
    TANDEM_UNSUPPORTED = 2,
    /* The device does not exist, or its driver is missing or rejected it. */
    TANDEM_NO_DEVICE = 3,
    TANDEM_OUT_OF_MEMORY = 4,
    /* The wait timed out, or the queried work is not complete. */
    TANDEM_NOT_READY = 5,
    /* The device or its driver context is gone (crash, reset, fork) and stays
     * lost. Close the device and open it again. */
    TANDEM_DEVICE_LOST = 6,
    /* A driver, compiler or library failed in another way. */
    TANDEM_FAILED = 7
};

/* ---- element types ----------------------------------------------------- */

/* The high byte of an element type is its type code in DLPack (DLDataTypeCode
 * in dlpack.h), the low byte its number of bits. DLPack's field lanes is 1. */
enum tandem_dtype {
    TANDEM_I8 = 0x0008,
    TANDEM_I16 = 0x0010,
    TANDEM_I32 = 0x0020,
    TANDEM_I64 = 0x0040,
    TANDEM_U8 = 0x0108,
    TANDEM_U16 = 0x0110,
    TANDEM_U32 = 0x0120,
    TANDEM_U64 = 0x0140,
    TANDEM_F16 = 0x0210,
    TANDEM_F32 = 0x0220,
    TANDEM_F64 = 0x0240,
    TANDEM_BF16 = 0x0410,
    TANDEM_BOOL = 0x0608 /* stored as one byte, 0 or 1 */
};
#define TANDEM_DTYPE_BYTES(dtype) (((dtype)&0xffu) / 8u)

/* ---- opaque handles, owned by the plugin -------------------------------- */

struct tandem_device; /* an opened device */
struct tandem_stream; /* an in-order queue of work on a device */
struct tandem_event;  /* a point in the work of a stream */
struct tandem_buffer; /* memory of one device */

/* ---- calls of operators -------------------------------------------------- */

/* An operator with its attributes. ints and floats hold the attributes in the
 * order of the operator table, then the scalars (below), then the lists of the
 * operator's class. TANDEM_INVALID_ARGUMENT is returned if there are fewer, or
 * if a switch (keepdims, exclusive, reverse, largest, sorted, exclude_outside,
 * antialias, approximate, nesterov, decoupled_weight_decay, detect_negative,
 * detect_positive) is neither 0 nor 1. Attributes that a later minor version
 * appends are optional; without them the operator works as before.
 * floats are rounded to f32. Except for the bounds of clip, rounding makes no
 * attribute 0 or infinite, and a positive epsilon (eps of adam) becomes at
 * least 2^-126.
 *
 * Scalars: an operator of class BINARY, COMPARE, LOGICAL or TERNARY accepts
 * NULL instead of an input. The k-th NULL input has the value floats[k],
 * converted to the dtype of the other operands as by CAST, and the shape of a
 * rank-0 tensor. At least one input must be a tensor. */
struct tandem_op {
    size_t struct_size;
    uint32_t id;    /* enum tandem_op_id */
    uint32_t flags; /* enum tandem_op_flags */
    uint32_t int_count;
    uint32_t float_count;
    const int64_t *ints;
    const double *floats;
};

enum tandem_op_flags {
    /* Two calls with equal arguments may give results that differ in bits. */
    TANDEM_OP_ALLOW_NONDETERMINISM = 1u << 0,
    /* conv and gemm may round like TANDEM_GEMM_ALLOW_TF32; others ignore it. */
    TANDEM_OP_ALLOW_TF32 = 1u << 1,
    /* gemm: like TANDEM_GEMM_ALLOW_NORMWISE_ERROR; others ignore the flag. */
    TANDEM_OP_ALLOW_NORMWISE_ERROR = 1u << 2
};

/* A row-major matrix operand. Element (i, j) of batch b is at byte_offset +
 * (b * batch_stride + i * ld + j) * (bytes per element). ld and batch_stride
 * are ignored if they affect the position of no element. */
struct tandem_matrix {
    struct tandem_buffer *buffer;
    uint64_t byte_offset;
    int64_t ld;           /* elements from row to row, >= stored columns */
    int64_t batch_stride; /* elements between batches, >= 0 (0: all the same) */
};

enum tandem_gemm_flags {
    TANDEM_GEMM_TRANSPOSE_A = 1u << 0, /* a is stored k x m */
    TANDEM_GEMM_TRANSPOSE_B = 1u << 1, /* b is stored n x k */
    /* The inputs may be rounded to TF32 or to a similar precision. */
    TANDEM_GEMM_ALLOW_TF32 = 1u << 2,
    /* The error bound becomes normwise. Let R be the largest magnitude in row i
     * of op(a), and C that in column j of op(b). Element (i, j) of op(a) op(b)
     * has an error of at most 2^-21 times the sum of the magnitudes of its
     * products, plus 2^-38 k R C, plus the rounding of an f32 sum. */
    TANDEM_GEMM_ALLOW_NORMWISE_ERROR = 1u << 3
};

enum tandem_bias {
    TANDEM_BIAS_NONE = 0,
    TANDEM_BIAS_PER_COLUMN = 1, /* bias of n elements, added to every row */
    TANDEM_BIAS_PER_ROW = 2     /* bias of m elements, added to every column */
};

/* c = activation(alpha * op(a) op(b) + beta * c + bias), for each batch. op(a)
 * is m x k, op(b) k x n, c m x n; m, n, k >= 0, batch >= 1. If beta is 0, c is
 * not read (NaN in it does not propagate). Otherwise c is a residual, added
 * before the activation. If k or alpha is 0, a and b are not read and their
 * product is 0. alpha and beta are rounded to f32 first. c must not overlap a,
 * b or bias. c.batch_stride may be 0 only if batch is 1.
 *
 * a and b have one dtype, c and bias the same or another one: f32 or, with
 * TANDEM_CAP_F16_BF16_STORAGE, f16 or bf16. The sum over k and the epilogue
 * (alpha, beta, bias, activation) are f32. A 16-bit c is rounded once. */
struct tandem_gemm {
    size_t struct_size;
    uint32_t dtype; /* dtype of a and b */
    uint32_t flags; /* enum tandem_gemm_flags */
    int64_t m, n, k, batch;
    double alpha, beta;
    struct tandem_matrix a, b, c;
    struct tandem_buffer *bias; /* contiguous; NULL with TANDEM_BIAS_NONE */
    uint64_t bias_byte_offset;
    uint32_t bias_kind;  /* enum tandem_bias */
    /* TANDEM_OP_INVALID (none), or an operator of class UNARY */
    uint32_t activation;
    double activation_parameter;  /* first attribute of the activation */
    uint32_t c_dtype;             /* dtype of c and bias; 0: that of a and b */
    uint32_t reserved;            /* must be 0 */
    double activation_parameter2; /* second attribute of the activation */
};

/* ---- devices ------------------------------------------------------------ */

enum tandem_device_kind {
    TANDEM_DEVICE_CPU = 1,
    TANDEM_DEVICE_GPU = 2,
    TANDEM_DEVICE_ACCELERATOR = 3
};

enum tandem_device_caps {
    TANDEM_CAP_F64 = 1u << 0,
    /* Kernels compute in f16; some devices lack f16 vectors and functions. */
    TANDEM_CAP_F16_ARITHMETIC = 1u << 1,
    /* The device computes in host memory. import_host accepts all memory that
     * is aligned to its elements, and hosts need not call alloc. */
    TANDEM_CAP_ZERO_COPY_IMPORT = 1u << 2,
    /* launch returns before the work is done. */
    TANDEM_CAP_ASYNC = 1u << 3,
    /* Operators are compiled at first use: see prepared_wait. */
    TANDEM_CAP_JIT_COMPILATION = 1u << 4,
    /* Events of streams with TANDEM_STREAM_PROFILING have device times. */
    TANDEM_CAP_PROFILING = 1u << 5,
    /* Every required operator works. Without it, ask prepare. */
    TANDEM_CAP_CORE_OPERATORS = 1u << 7,
    /* CAST and GEMM accept f16 and bf16. */
    TANDEM_CAP_F16_BF16_STORAGE = 1u << 9,
    /* The device shares the host's memory. import_host accepts whole pages, or
     * returns TANDEM_UNSUPPORTED if a test shows that sharing does not work. */
    TANDEM_CAP_UNIFIED_MEMORY = 1u << 10
};

/* Properties of a device. Strings are UTF-8 and truncated to fit. */
struct tandem_device_info {
    size_t struct_size;
    uint32_t kind; /* enum tandem_device_kind */
    uint32_t caps; /* enum tandem_device_caps */
    char name[128];
    char vendor[128];
    char platform[128];
    char driver_version[128]; /* version of the driver or library */
    uint8_t uuid[16];         /* zeros if unknown */
    char pci_address[24];     /* "0000:65:00.0", "" if unknown */
    char extensions[512];     /* extensions in use, separated by spaces */
    uint64_t memory_bytes;
    uint64_t max_alloc_bytes;
    uint64_t local_memory_bytes;
    uint32_t compute_units;
    uint32_t max_work_group_size;
    uint32_t clock_mhz;
    /* Index of an earlier device of this backend that is the same hardware with
     * another driver, or -1. */
    int32_t duplicate_of;
    char quirks[1024]; /* known driver quirks, separated by "; " */
};

enum tandem_log_level {
    TANDEM_LOG_ERROR = 1,
    TANDEM_LOG_WARNING = 2,
    TANDEM_LOG_INFO = 3,
    TANDEM_LOG_DEBUG = 4
};

/* Log callback. Called from any thread, also from the plugin's own, possibly
 * with signals blocked, in the "C" locale and the default floating-point
 * environment. Must not call the plugin. message has no newline and is valid
 * during the call. */
typedef void (*tandem_log_fn)(void *user, enum tandem_log_level level,
                              const char *message);

/* Keys of the options that are passed to open.  A plugin ignores unknown keys.
 *   cache_dir              directory for compiled programs (default: no cache)
 *   system_cache_dir       directory for the compiled programs of all users; it
 *                          is read if cache_dir lacks a program, and never
 *                          written; "" disables it (default: set at build time)
 *   cache_world_readable   "1": all users may read what is written to cache_dir
 *                          and to caches of drivers
 *   cache_limit_bytes      limit of cache_dir; the least recently used go first
 *   memory_limit_bytes     limit of the device memory that the plugin holds
 *   num_threads            limit of CPU threads; 0: as many as the process has
 *   max_isa                CPU: highest instruction set that is used:
 *                          generic|avx2|avx512, or generic|neon
 *   deterministic          "1": one kernel and GEMM path, whatever tuning says
 *   blocking_timeout_ms    OpenCL: close abandons builds and commands that take
 *                          longer; calls without a timeout that wait longer
 *                          return TANDEM_NOT_READY (default 300000; 0: never)
 *   compile_processes      OpenCL: limit of compile processes (default: 6)
 *   tuning                 the plugin's own section of the profile, JSON text
 *   self_test_only         "1": GEMM uses no sm_90a program (extensions.h)
 *   test.*                 keys of the extension "test.1" (extensions.h) */
struct tandem_open_options {
    size_t struct_size;
    uint32_t count; /* number of keys, and of values */
    uint32_t reserved;
    const char *const *keys; /* the strings are used only during open */
    const char *const *values;
    tandem_log_fn log; /* called until close returns; NULL: no messages */
    void *log_user;
};

/* ---- memory, streams ----------------------------------------------------- */

enum tandem_transfer_flags {
    /* The call returns at once. The caller must not change (upload) or use
     * (download) the host memory until the stream has finished the transfer. */
    TANDEM_TRANSFER_ASYNC = 1u << 0
};

enum tandem_map_flags {
    TANDEM_MAP_READ = 1u << 0,
    TANDEM_MAP_WRITE = 1u << 1
};

enum tandem_stream_flags {
    /* Enables event_elapsed_ns, and is slower. A device without
     * TANDEM_CAP_PROFILING ignores the flag. */
    TANDEM_STREAM_PROFILING = 1u << 0
};

struct tandem_alloc_options {
    size_t struct_size;
    uint64_t bytes; /* 0 is allowed */
    /* The address of the buffer on the device is a multiple of this power of
     * two. 0 means 64, the least alignment of every buffer. */
    uint32_t alignment;
    uint32_t reserved; /* 0 */
};

/* A pointer to the options of a buffer of `n` bytes, for C only. It is valid in
 * the block that contains it. */
#define TANDEM_BYTES(n)                                                        \
    (&(const struct tandem_alloc_options){                                     \
        .struct_size = sizeof(struct tandem_alloc_options), .bytes = (n)})

/* Callback for memory that the caller passed to a plugin. It means that the
 * device's work with the memory has ended, and that neither the plugin nor its
 * driver uses the memory any more. It is called exactly once, in any thread: in
 * that of free or close before they return, or later in a thread of the plugin
 * or of the driver, possibly after close. Locks of the driver may be held and
 * signals blocked, so the callback must not call the plugin or the driver, and
 * must not wait for another thread that does. */
typedef void (*tandem_release_fn)(void *user);

/* Callback of event_callback. The rules of tandem_release_fn hold. */
typedef void (*tandem_event_fn)(void *user, enum tandem_status status);

struct tandem_memory_stats {
    size_t struct_size;
    uint64_t allocated_bytes;     /* size of buffers that the caller holds */
    uint64_t cached_bytes;        /* memory that trim returns to the driver */
    uint64_t peak_bytes;          /* maximum of allocated plus cached bytes */
    uint64_t limit_bytes;         /* 0 means no limit */
    uint64_t alloc_count;         /* successful calls of alloc */
    uint64_t driver_alloc_count;  /* calls of alloc that used the driver */
    uint64_t buffer_count;        /* number of buffers that the caller holds */
    uint64_t cached_kernel_count; /* compiled operators in memory */
    /* Memory of the device that no process uses now, without cached_bytes;
     * limit_bytes does not change it. 0 means unknown. The CPU plugin: memory
     * of the machine that is available without swapping. OpenCL: known only if
     * the driver has AMD's query. */
    uint64_t free_bytes;
};

/* Minimum struct_size of the structs that the caller fills. It covers the
 * fields of version 1.0 and is constant within the major version. */
#define TANDEM_SIZE_THROUGH(type, field) \
    (offsetof(type, field) + sizeof(((type *)0)->field))
#define TANDEM_OP_MIN_SIZE_1_0 TANDEM_SIZE_THROUGH(struct tandem_op, floats)
#define TANDEM_GEMM_MIN_SIZE_1_0 \
    TANDEM_SIZE_THROUGH(struct tandem_gemm, activation_parameter)
#define TANDEM_ALLOC_OPTIONS_MIN_SIZE_1_0                                      \
    TANDEM_SIZE_THROUGH(struct tandem_alloc_options, reserved)
#define TANDEM_OPEN_OPTIONS_MIN_SIZE_1_0 \
    TANDEM_SIZE_THROUGH(struct tandem_open_options, log_user)

/* ---- prepared operators ---------------------------------------------------
 * prepare checks a call and chooses its kernels once, without memory;
 * launch runs it any number of times. */

/* An operand without its memory. Strides are in elements and may be 0 or
 * negative. An operand of rank 0 has one element. If the shape contains a 0,
 * the operand is empty and is neither read nor written. Strides that do not
 * affect the position of any element are ignored. */
struct tandem_operand_desc {
    uint32_t dtype; /* enum tandem_dtype */
    uint32_t rank;
    int64_t shape[TANDEM_MAX_RANK];
    int64_t strides[TANDEM_MAX_RANK];
    /* Element (0, ..., 0) of every launch is at a multiple of this power of two
     * of bytes in its buffer's memory, at least the element's size. 0 means the
     * element's size. More alignment can give faster kernels; more than 128
     * bytes do not. */
    uint32_t alignment_bytes;
    /* For an output: 1 + the number of the input which every launch passes as
     * this output, too: same shape and strides. 0: none. An output of class
     * UNARY to TERNARY, GRADIENT or OPTIMIZER may be any input, one of class
     * SCATTER input 0, and that of GEMM the residual. */
    uint32_t same_as_input;
    uint32_t reserved[4]; /* 0 */
};

/* The memory of an operand: element (0, ..., 0) is at byte_offset, a multiple
 * of the element's size. Every element must be inside the buffer. */
struct tandem_memory {
    struct tandem_buffer *buffer;
    uint64_t byte_offset;
};

enum tandem_prepare_flags {
    /* Only answers: makes no prepared operator and starts no compilation. */
    TANDEM_PREPARE_QUERY = 1u << 0,
    /* Compiles before it returns. [blocks] Not with TANDEM_PREPARE_QUERY. */
    TANDEM_PREPARE_COMPILE_NOW = 1u << 1
};

/* Filled by prepare. */
struct tandem_prepared_info {
    size_t struct_size;
    /* Time of a launch on an idle device, in ns, from measured costs (option
     * "tuning"). 0 means that the plugin has no estimate. */
    double predicted_ns;
    uint64_t temporary_bytes; /* device memory that a launch needs besides */
    uint32_t is_ready;        /* 1: a launch compiles nothing */
    uint32_t reserved;        /* 0 */
};

struct tandem_prepared;

/* ---- the table ------------------------------------------------------------
 * A plugin may leave functions marked Optional NULL.  libtandem replaces these
 * by the fallback, and does not load a plugin without a Required function.
 * Every function is here since version 1.0. */
struct tandem_backend {
    size_t struct_size;
    uint32_t abi_major, abi_minor;
    const char *name;    /* "cpu", "opencl": [a-z0-9_-] only */
    const char *version; /* version of the plugin */

    /* Required. Returns the message of the calling thread's last failed call,
     * or "". Valid until the next call of the thread into the plugin. */
    const char *(*last_error)(void);

    /* -- devices -- */
    /* Required [blocks: driver start]. Counts the devices; only the first call
     * searches for them. If there is no device, returns TANDEM_NO_DEVICE, and
     * the message says what is missing and how to provide it. */
    enum tandem_status (*device_count)(uint32_t *out_count);
    /* Required. Describes a device. The caller sets out_info->struct_size. For
     * an index that is not below the number of devices, device_describe and
     * open return TANDEM_NO_DEVICE or TANDEM_INVALID_ARGUMENT. */
    enum tandem_status (*device_describe)(uint32_t index,
                                          struct tandem_device_info *out_info);
    /* Required [blocks: driver start]. Opens a device; options may be NULL.
     * Each call returns an independent device, which the caller closes. */
    enum tandem_status (*open)(uint32_t index,
                               const struct tandem_open_options *options,
                               struct tandem_device **out_device);
    /* Required [blocks]. Waits for the device's work and frees all its objects.
     * Their handles are then invalid; prepared_release is still allowed. Call
     * close before exit: a driver that is still busy at exit may crash. */
    void (*close)(struct tandem_device *device);
    /* Optional. Returns the table of an extension (extensions.h), or NULL if
     * the plugin does not have it or the name is NULL. The table never changes.
     * Does no device work and takes no lock. Any thread. Fallback: NULL. */
    const void *(*extension)(const char *name);

    /* -- memory -- */
    /* Required. Allocates a buffer of options->bytes bytes with undefined
     * content. The caller frees the buffer. If memory runs out, trims the pool
     * of freed memory and retries once. Returns TANDEM_UNSUPPORTED for an
     * alignment above 64 that the plugin does not offer, and TANDEM_NOT_READY
     * if the device stays busy beyond a time limit. */
    enum tandem_status (*alloc)(struct tandem_device *device,
                                const struct tandem_alloc_options *options,
                                struct tandem_buffer **out_buffer);
    /* Required. Frees a buffer and returns at once, even if work that uses the
     * buffer is incomplete. The memory belongs to the last stream that used it.
     * If another stream reuses it, the device first waits for this work. */
    void (*free)(struct tandem_buffer *buffer);
    /* Required. Copies from host to device. source may be reused on return,
     * except with TANDEM_TRANSFER_ASYNC. 0 bytes do nothing. Returns
     * TANDEM_NOT_READY if the stream stays busy until a time limit of the
     * plugin; the buffer is then unchanged, or poisoned if partly written. */
    enum tandem_status (*upload)(struct tandem_stream *stream,
                                 struct tandem_buffer *buffer, uint64_t offset,
                                 const void *source, uint64_t bytes,
                                 uint32_t flags);
    /* Required [blocks, except with TANDEM_TRANSFER_ASYNC]. Copies from device
     * to host, after all earlier work of the stream. After TANDEM_NOT_READY the
     * stream is unchanged, and target may be partly written and must stay valid
     * until the stream is idle. */
    enum tandem_status (*download)(struct tandem_stream *stream,
                                   struct tandem_buffer *buffer,
                                   uint64_t offset, void *target,
                                   uint64_t bytes, uint32_t flags,
                                   uint64_t timeout_ns);
    /* Required. Copies within a device. The two ranges must not overlap. */
    enum tandem_status (*copy)(struct tandem_stream *stream,
                               struct tandem_buffer *target,
                               uint64_t target_offset,
                               struct tandem_buffer *source,
                               uint64_t source_offset, uint64_t bytes);
    /* Required. Fills a range with repetitions of pattern, which has 1, 2, 4 or
     * 8 bytes. offset and bytes are multiples of pattern_bytes. */
    enum tandem_status (*fill)(struct tandem_stream *stream,
                               struct tandem_buffer *buffer, uint64_t offset,
                               uint64_t bytes, const void *pattern,
                               uint32_t pattern_bytes);
    /* Optional. Allocates 4096-aligned host memory, for fast transfers.
     * Fallback: pageable memory. */
    enum tandem_status (*host_alloc)(struct tandem_device *device,
                                     uint64_t bytes, void **out_memory);
    /* Optional. Frees memory of host_alloc. NULL exactly if host_alloc is. */
    void (*host_free)(struct tandem_device *device, void *memory);
    /* Optional. Makes a buffer in the caller's memory, which must be aligned to
     * its elements (any pointer or NULL for 0 bytes) and stay valid until
     * release is called. The caller does not touch the memory while work uses
     * it. release(user) is called after the buffer was freed, by free or close,
     * and the work that used it has ended; free submits this work. If close
     * gives up waiting for the work (blocking_timeout_ms), a later open or
     * close calls release, when the work has ended. release is not called if
     * import_host fails. It may be NULL: the memory is then used until the
     * buffer was freed and the streams that used it are idle.
     * Fallback, and result if a copy would be needed: TANDEM_UNSUPPORTED. */
    enum tandem_status (*import_host)(struct tandem_device *device,
                                      void *memory, uint64_t bytes,
                                      tandem_release_fn release, void *user,
                                      struct tandem_buffer **out_buffer);
    /* Optional [blocks]. Maps a range of the buffer to host memory until unmap.
     * Device work on the buffer, and another map, are an error until then.
     * Fallback: TANDEM_UNSUPPORTED. */
    enum tandem_status (*map)(struct tandem_stream *stream,
                              struct tandem_buffer *buffer, uint64_t offset,
                              uint64_t bytes, uint32_t flags,
                              uint64_t timeout_ns, void **out_memory);
    /* Optional. Ends a mapping of map. NULL exactly if map is NULL. */
    enum tandem_status (*unmap)(struct tandem_stream *stream,
                                struct tandem_buffer *buffer, void *memory);
    /* Optional. Promises that the content of the buffer, after the work that
     * was enqueued before, never changes, so that the plugin can keep copies of
     * it in another layout. Every later write (upload, fill, copy to the
     * buffer, map with TANDEM_MAP_WRITE, output of a launch or GEMM) is
     * TANDEM_INVALID_ARGUMENT, and so is sealing a mapped buffer. The owner of
     * imported memory must not write it either. Any thread, but not during a
     * call that writes the buffer. Fallback: does nothing and returns
     * TANDEM_OK. */
    enum tandem_status (*buffer_seal)(struct tandem_buffer *buffer);
    /* Required. Fills out_stats; the caller sets out_stats->struct_size. */
    enum tandem_status (*memory_stats)(struct tandem_device *device,
                                       struct tandem_memory_stats *out_stats);
    /* Optional. Returns cached memory to the driver until the cache has at most
     * keep_bytes. Fallback: does nothing and returns TANDEM_OK. */
    enum tandem_status (*trim)(struct tandem_device *device,
                               uint64_t keep_bytes);

    /* -- operators -- */
    /* Required. Checks a call without memory, chooses its kernels, and starts
     * to compile them in the background. inputs[i] is NULL for a scalar (see
     * struct tandem_op). Copies what it needs. Fills out_info unless it is
     * NULL; sets *out_prepared to an operator that the caller releases. With
     * TANDEM_PREPARE_QUERY it is set to NULL, and out_prepared may be NULL.
     * TANDEM_INVALID_ARGUMENT if the call is invalid on every device,
     * TANDEM_UNSUPPORTED if the device does not support it.
     * Any thread. */
    enum tandem_status (*prepare)(
        struct tandem_device *device, const struct tandem_op *op,
        const struct tandem_operand_desc *const *inputs, uint32_t input_count,
        const struct tandem_operand_desc *const *outputs, uint32_t output_count,
        uint32_t flags, struct tandem_prepared_info *out_info,
        struct tandem_prepared **out_prepared);
    /* Required [blocks]. Waits until the operator is compiled: TANDEM_OK.
     * Returns TANDEM_NOT_READY if that takes longer (timeout_ns 0: polls), or
     * the error of the compilation. Any thread. */
    enum tandem_status (*prepared_wait)(struct tandem_prepared *prepared,
                                        uint64_t timeout_ns);
    /* Required. Releases the operator, also while work of its launches is not
     * complete, and after its device was closed. No other call with it may be
     * in progress. Any thread. */
    void (*prepared_release)(struct tandem_prepared *prepared);
    /* Required [blocks only to compile]. Enqueues the operator on a stream of
     * its device. Any number of threads may launch it at the same time, each on
     * its own stream. memory has the inputs, then the outputs; that of a scalar
     * is ignored. TANDEM_INVALID_ARGUMENT if a buffer is not live, is mapped or
     * belongs to another device, if an operand reaches outside its buffer or is
     * less aligned than described, or if an output shares a byte with another
     * operand, except with the input that same_as_input names, and with inputs
     * that are exactly this input (x * x in place). Disjoint slices of one
     * tensor, also transposed, are accepted. With other strides, a plugin that
     * is not sure may report an overlap.
     * scalars replace op->floats for this launch, for the operators with scalar
     * inputs, optimizers (those of adam are followed by step) and gemm; NULL:
     * as prepared.  alpha and beta are 0 exactly if they were when the operator
     * was prepared.  Other operators: TANDEM_UNSUPPORTED. */
    enum tandem_status (*launch)(struct tandem_stream *stream,
                                 struct tandem_prepared *prepared,
                                 const struct tandem_memory *memory,
                                 uint32_t count, const double *scalars,
                                 uint32_t scalar_count);
    /* Required [blocks only to compile]. Enqueues a GEMM on the stream. A
     * plugin without GEMM returns TANDEM_UNSUPPORTED. */
    enum tandem_status (*gemm)(struct tandem_stream *stream,
                               const struct tandem_gemm *gemm);

    /* -- streams and events -- */
    /* Required. Creates a stream, which the caller destroys. */
    enum tandem_status (*stream_create)(struct tandem_device *device,
                                        uint32_t flags,
                                        struct tandem_stream **out_stream);
    /* Required [blocks]. Waits for the work of the stream and frees it. */
    void (*stream_destroy)(struct tandem_stream *stream);
    /* Required [blocks]. Waits until the stream is idle, also if it has an
     * error; then returns the error and clears it. With timeout 0 it polls. */
    enum tandem_status (*stream_synchronize)(struct tandem_stream *stream,
                                             uint64_t timeout_ns);
    /* Required. Later work of the stream starts after the event, which may
     * belong to another stream of the same device. */
    enum tandem_status (*stream_wait_event)(struct tandem_stream *stream,
                                            struct tandem_event *event);
    /* Required. Puts an event at the stream's end. The caller destroys it. It
     * stays valid after stream_destroy, until close. */
    enum tandem_status (*event_record)(struct tandem_stream *stream,
                                       struct tandem_event **out_event);
    /* Required. Frees the event, which need not have passed. */
    void (*event_destroy)(struct tandem_event *event);
    /* Required [blocks]. Waits until the event has passed. With timeout 0 it
     * polls. */
    enum tandem_status (*event_wait)(struct tandem_event *event,
                                     uint64_t timeout_ns);
    /* Optional. Calls fn(user, status) once, when event_wait does not return
     * TANDEM_NOT_READY any more, with its status: in this call or later, by
     * close at the latest, even if the event was destroyed. fn is not called if
     * event_callback fails. Any thread. Fallback: TANDEM_UNSUPPORTED. */
    enum tandem_status (*event_callback)(struct tandem_event *event,
                                         tandem_event_fn fn, void *user);
    /* Optional. Returns the device time between two events that one profiling
     * stream has passed. Fallback: TANDEM_UNSUPPORTED. */
    enum tandem_status (*event_elapsed_ns)(struct tandem_event *start,
                                           struct tandem_event *end,
                                           uint64_t *out_ns);
};

#if defined(_WIN32)
#define TANDEM_EXPORT __declspec(dllexport)
#else
#define TANDEM_EXPORT __attribute__((visibility("default")))
#endif

/* The only exported function. Returns NULL if the plugin does not support the
 * host's major version. The table never changes and is valid while the plugin
 * is loaded. Does no device work and takes no lock. May be called from any
 * thread at any time. */
TANDEM_EXPORT const struct tandem_backend *
tandem_backend_query(uint32_t host_abi_major);

typedef const struct tandem_backend *(*tandem_backend_query_fn)(uint32_t);
#define TANDEM_BACKEND_QUERY_SYMBOL "tandem_backend_query"

#ifdef __cplusplus
}
#endif
#endif
