/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Promises of the OpenCL plugin beyond the conformance suite: its memory pool,
 * imported memory, uploads whose source may be reused, and errors if there is
 * no OpenCL. Runs on the first device, in the build directory.
 */
#include <config.h>

#include <check.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "support/test_list.h"
#include "support.h"

static struct tandem_device *device_new(const char *key, const char *value)
{
    struct tandem_device *device;
    struct tandem_open_options options = {.struct_size = sizeof(options),
                                          .count = 1,
                                          .keys = &key,
                                          .values = &value};
    expect_ok(backend->open(0, &options, &device), "open");
    return device;
}

TEST(missing_driver_is_reported)
{
    ck_assert_int_eq(process_end(process_start("/proc/self/exe", "no-driver")),
                     0);
}

TEST(fork_is_reported)
{
    struct tandem_device *device = device_new("cache_dir", "");
    struct tandem_buffer *buffer;
    pid_t child = fork();
    if (child == 0) {
        enum tandem_status status = backend->alloc(device, 64, &buffer);
        backend->close(device); /* close does nothing and does not hang. */
        _exit(status == TANDEM_DEVICE_LOST ? 0 : 1);
    }
    ck_assert_int_eq(process_end(child), 0);
    backend->close(device);
}

/* A kernel that was not timed is never selected if others were timed. */
TEST(kernels_are_timed_in_little_memory)
{
    ck_assert_int_eq(process_end(process_start("/proc/self/exe", "tune")), 0);
}

static struct tandem_memory_stats stats_of(struct tandem_device *device)
{
    struct tandem_memory_stats stats = {.struct_size = sizeof(stats)};
    expect_ok(backend->memory_stats(device, &stats), "memory_stats");
    return stats;
}

TEST(pool_reuses_driver_memory)
{
    struct tandem_buffer *buffer;
    struct tandem_device *device = device_new("cache_dir", "");
    for (int i = 0; i < 100; i++) {
        expect_ok(backend->alloc(device, 100000 + (uint64_t)i, &buffer),
                  "alloc");
        backend->free(buffer);
    }
    struct tandem_memory_stats stats = stats_of(device);
    ck_assert_uint_eq(stats.alloc_count, 100);
    ck_assert_uint_eq(stats.driver_alloc_count, 1);
    ck_assert_uint_eq(stats.allocated_bytes, 0);
    ck_assert_uint_ge(stats.cached_bytes, 100000);
    expect_ok(backend->trim(device, 0), "trim");
    ck_assert_uint_eq(stats_of(device).cached_bytes, 0);
    backend->close(device);
}

TEST(memory_limit_is_kept)
{
    struct tandem_buffer *first, *second;
    struct tandem_device *device = device_new("memory_limit_bytes", "1048576");
    expect_ok(backend->alloc(device, 600000, &first), "alloc");
    ck_assert_int_eq(backend->alloc(device, 600000, &second),
                     TANDEM_OUT_OF_MEMORY);
    ck_assert_ptr_null(second);
    backend->free(first);
    /* Cached blocks are released for the request. */
    expect_ok(backend->alloc(device, 900000, &second), "alloc");
    struct tandem_memory_stats stats = stats_of(device);
    ck_assert_uint_le(stats.allocated_bytes + stats.cached_bytes, 1048576);
    backend->free(second);
    backend->close(device);
}

/*
 * False if the driver cannot run the requested kernel. CLBlast then replaces
 * it, which needs no temporary memory.
 */
static bool parallel_gemm_run;

static void disabled_kernel_note(void *user, enum tandem_log_level level,
                                 const char *message)
{
    (void)user;
    (void)level;
    if (strstr(message, "is disabled on") != NULL)
        parallel_gemm_run = false;
}

/*
 * Runs a GEMM with four splits along k, without enough memory for the partial
 * sums. Other kernels add in another order, so they replace it only if
 * deterministic is off.
 */
static enum tandem_status
gemm_without_temporary_memory(const char *deterministic)
{
    const char *keys[] = {"test.gemm_kernel", "memory_limit_bytes",
                          "deterministic"};
    const char *values[] = {"simt-64x64:4", "560000", deterministic};
    const struct tandem_open_options options = {.struct_size = sizeof(options),
                                                .count = 3,
                                                .keys = keys,
                                                .values = values,
                                                .log = disabled_kernel_note};
    const int64_t n = 128, k = 256;
    struct tandem_device *device;
    struct tandem_stream *stream;
    struct tandem_buffer *a, *b, *c;
    const float one = 1.0f;
    float got = 0;
    parallel_gemm_run = true;
    expect_ok(backend->open(0, &options, &device), "open");
    expect_ok(backend->stream_create(device, 0, &stream), "stream_create");
    expect_ok(backend->alloc(device, (uint64_t)(n * k) * 4, &a), "alloc");
    expect_ok(backend->alloc(device, (uint64_t)(n * k) * 4, &b), "alloc");
    expect_ok(backend->alloc(device, (uint64_t)(n * n) * 4, &c), "alloc");
    expect_ok(backend->fill(stream, a, 0, (uint64_t)(n * k) * 4, &one, 4),
              "fill");
    expect_ok(backend->fill(stream, b, 0, (uint64_t)(n * k) * 4, &one, 4),
              "fill");
    const struct tandem_gemm gemm = {.struct_size = sizeof(gemm),
                                     .dtype = TANDEM_F32,
                                     .m = n,
                                     .n = n,
                                     .k = k,
                                     .batch = 1,
                                     .alpha = 1,
                                     .a = {a, 0, k, 0},
                                     .b = {b, 0, n, 0},
                                     .c = {c, 0, n, 0}};
    enum tandem_status status = backend->gemm(stream, &gemm);
    if (status == TANDEM_OK) {
        expect_ok(backend->download(stream, c, 0, &got, sizeof(got), 0,
                                    TANDEM_TIMEOUT_INFINITE),
                  "download");
        expect_ok(backend->stream_synchronize(stream, TANDEM_TIMEOUT_INFINITE),
                  "stream_synchronize");
        ck_assert(got == (float)k);
    }
    backend->free(a);
    backend->free(b);
    backend->free(c);
    backend->stream_destroy(stream);
    backend->close(device);
    return status;
}

TEST(deterministic_gemm_fails_without_memory)
{
    ck_assert_int_eq(gemm_without_temporary_memory("0"), TANDEM_OK);
    enum tandem_status fixed = gemm_without_temporary_memory("1");
    ck_assert_int_eq(fixed,
                     parallel_gemm_run ? TANDEM_OUT_OF_MEMORY : TANDEM_OK);
}

/*
 * The sum of 1 and many terms, each of which is lost when added to 1. The
 * small tile sums slices separately, so it loses only the terms of the first
 * slice.
 */
TEST(small_tiles_sum_slices_separately)
{
    enum { DEPTH = 1024, SLICE = 32, N = 8 };
    static float a[N * DEPTH], b[DEPTH * N], c[N * N];
    const double term = ldexp(1.0, -25);
    const char *keys[] = {"test.gemm_kernel"}, *values[] = {"simt-32x64"};
    const struct tandem_open_options options = {.struct_size = sizeof(options),
                                                .count = 1,
                                                .keys = keys,
                                                .values = values,
                                                .log = disabled_kernel_note};
    struct tandem_device *device;
    struct tandem_stream *stream;
    struct tandem_buffer *matrices[3];
    for (int i = 0; i < N * DEPTH; i++) {
        a[i] = i % DEPTH == 0 ? 1.0f : (float)term;
        b[i] = 1.0f;
    }
    parallel_gemm_run = true;
    expect_ok(backend->open(0, &options, &device), "open");
    expect_ok(backend->stream_create(device, 0, &stream), "stream_create");
    expect_ok(backend->alloc(device, sizeof(a), &matrices[0]), "alloc");
    expect_ok(backend->alloc(device, sizeof(b), &matrices[1]), "alloc");
    expect_ok(backend->alloc(device, sizeof(c), &matrices[2]), "alloc");
    expect_ok(backend->upload(stream, matrices[0], 0, a, sizeof(a), 0),
              "upload");
    expect_ok(backend->upload(stream, matrices[1], 0, b, sizeof(b), 0),
              "upload");
    const struct tandem_gemm gemm = {.struct_size = sizeof(gemm),
                                     .dtype = TANDEM_F32,
                                     .m = N,
                                     .n = N,
                                     .k = DEPTH,
                                     .batch = 1,
                                     .alpha = 1,
                                     .a = {matrices[0], 0, DEPTH, 0},
                                     .b = {matrices[1], 0, N, 0},
                                     .c = {matrices[2], 0, N, 0}};
    expect_ok(backend->gemm(stream, &gemm), "gemm");
    expect_ok(backend->download(stream, matrices[2], 0, c, sizeof(c), 0,
                                TANDEM_TIMEOUT_INFINITE),
              "download");
    /* Half an ULP of a float in [1, 2) for each sum of a slice. */
    const double most = term * (SLICE - 1) + DEPTH / SLICE * ldexp(1.0, -24);
    for (int i = 0; i < N * N; i++)
        ck_assert(!parallel_gemm_run ||
                  fabs(c[i] - (1.0 + term * (DEPTH - 1))) <= most);
    for (int i = 0; i < 3; i++)
        backend->free(matrices[i]);
    backend->stream_destroy(stream);
    backend->close(device);
}

/*
 * The elements are integers, so that the sums are exact in any order. Two
 * streams alternate, each with its own arrival counters, and each launch
 * starts one element later and has its own result.
 */
TEST(the_last_group_combines_the_splits)
{
    enum { ROWS = 2, COLUMNS = 60013, TURNS = 50 };
    static float x[ROWS * COLUMNS + 2 * TURNS], got[2 * TURNS][ROWS];
    static const float poison[ROWS] = {-1.0f, -1.0f};
    const int64_t ints[] = {2, 0};
    const struct tandem_op op = {.struct_size = sizeof(op),
                                 .id = TANDEM_OP_SUM,
                                 .ints = ints,
                                 .int_count = 2};
    struct tandem_device *device =
        device_new("test.device_scope_visibility", "1");
    struct tandem_stream *streams[2];
    struct tandem_buffer *from, *to[2];
    for (int i = 0; i < ROWS * COLUMNS + 2 * TURNS; i++)
        x[i] = (float)(i * 7919 % 251);
    expect_ok(backend->alloc(device, sizeof(x), &from), "alloc");
    for (int i = 0; i < 2; i++) {
        expect_ok(backend->stream_create(device, 0, &streams[i]),
                  "stream_create");
        expect_ok(backend->alloc(device, sizeof(poison), &to[i]), "alloc");
    }
    expect_ok(backend->upload(streams[0], from, 0, x, sizeof(x), 0), "upload");
    expect_ok(backend->stream_synchronize(streams[0], TANDEM_TIMEOUT_INFINITE),
              "stream_synchronize");
    for (int turn = 0; turn < 2 * TURNS; turn++) {
        const int on = turn % 2;
        const struct tandem_tensor_desc input = {from,
                                                 (uint64_t)turn * sizeof(float),
                                                 TANDEM_F32,
                                                 2,
                                                 {ROWS, COLUMNS},
                                                 {COLUMNS, 1}};
        const struct tandem_tensor_desc output = {to[on], 0,      TANDEM_F32,
                                                  1,      {ROWS}, {1}};
        const struct tandem_tensor_desc *inputs[] = {&input};
        const struct tandem_tensor_desc *outputs[] = {&output};
        expect_ok(
            backend->upload(streams[on], to[on], 0, poison, sizeof(poison), 0),
            "upload");
        expect_ok(backend->launch(streams[on], &op, inputs, 1, outputs, 1),
                  "launch");
        expect_ok(backend->download(streams[on], to[on], 0, got[turn],
                                    sizeof(poison), TANDEM_TRANSFER_ASYNC,
                                    TANDEM_TIMEOUT_INFINITE),
                  "download");
    }
    for (int i = 0; i < 2; i++)
        expect_ok(
            backend->stream_synchronize(streams[i], TANDEM_TIMEOUT_INFINITE),
            "stream_synchronize");
    for (int turn = 0; turn < 2 * TURNS; turn++)
        for (int row = 0; row < ROWS; row++) {
            double want = 0;
            for (int i = 0; i < COLUMNS; i++)
                want += (double)x[turn + row * COLUMNS + i];
            ck_assert_double_eq((double)got[turn][row], want);
        }
    for (int i = 0; i < 2; i++) {
        backend->free(to[i]);
        backend->stream_destroy(streams[i]);
    }
    backend->free(from);
    backend->close(device);
}

/*
 * A GEMM on memory that is not aligned to CLBlast's vectors. CLBlast's kernels
 * would crash the process.
 */
TEST(imported_memory_may_be_unaligned)
{
    enum { N = 32, FLOATS = N * N };
    static _Alignas(64) float memory[3][FLOATS + 16];
    const char *keys[] = {"test.gemm_kernel", "tuning"};
    const char *values[] = {
        "clblast", "{\"clblast.XgemmDirect\": \"KWID=2 MDIMAD=8 MDIMCD=8 "
                   "NDIMBD=8 NDIMCD=8 PADA=1 PADB=1 VWMD=4 VWND=2 WGD=32\"}"};
    const struct tandem_open_options options = {
        .struct_size = sizeof(options), .count = 2, .keys = keys,
        .values = values};
    struct tandem_device *device;
    struct tandem_stream *stream;
    struct tandem_buffer *matrices[3];
    expect_ok(backend->open(0, &options, &device), "open");
    expect_ok(backend->stream_create(device, 0, &stream), "stream_create");
    for (int i = 0; i < 3; i++) {
        for (int j = 0; j < FLOATS; j++)
            memory[i][j + 1] = (float)(i + 1);
        expect_ok(backend->import_host(device, memory[i] + 1,
                                       FLOATS * sizeof(float), &matrices[i]),
                  "import_host");
    }
    const struct tandem_gemm gemm = {.struct_size = sizeof(gemm),
                                     .dtype = TANDEM_F32,
                                     .m = N,
                                     .n = N,
                                     .k = N,
                                     .batch = 1,
                                     .alpha = 1,
                                     .beta = 1,
                                     .a = {matrices[0], 0, N, 0},
                                     .b = {matrices[1], 0, N, 0},
                                     .c = {matrices[2], 0, N, 0}};
    expect_ok(backend->gemm(stream, &gemm), "gemm");
    expect_ok(backend->stream_synchronize(stream, TANDEM_TIMEOUT_INFINITE),
              "stream_synchronize");
    for (int j = 0; j < FLOATS; j++)
        ck_assert_float_eq(memory[2][j + 1], 2.0f * N + 3.0f);
    for (int i = 0; i < 3; i++)
        backend->free(matrices[i]);
    backend->close(device);
}

/*
 * The row pitch is so large that 64-bit indices are needed. Only the pages
 * that are accessed exist.
 */
TEST(large_pitches_are_transposed)
{
    enum { LINES = 9, ROWS = 100 };
    const int64_t pitch = (1 << 25) + 1, permutation[] = {1, 0};
    const size_t bytes = (size_t)((LINES - 1) * pitch + ROWS);
    uint8_t *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
                           MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    uint8_t got[ROWS][LINES];
    struct tandem_buffer *from, *to;
    struct tandem_stream *stream;
    ck_assert(memory != MAP_FAILED);
    for (int i = 0; i < LINES * ROWS; i++)
        memory[i / ROWS * pitch + i % ROWS] = (uint8_t)(i % 251 + 1);
    struct tandem_device *device = device_new("cache_dir", "");
    expect_ok(backend->stream_create(device, 0, &stream), "stream_create");
    expect_ok(backend->import_host(device, memory, bytes, &from),
              "import_host");
    expect_ok(backend->alloc(device, sizeof(got), &to), "alloc");
    const struct tandem_tensor_desc input = {.buffer = from,
                                             .dtype = TANDEM_U8,
                                             .rank = 2,
                                             .shape = {LINES, ROWS},
                                             .strides = {pitch, 1}};
    const struct tandem_tensor_desc output = {.buffer = to,
                                              .dtype = TANDEM_U8,
                                              .rank = 2,
                                              .shape = {ROWS, LINES},
                                              .strides = {LINES, 1}};
    const struct tandem_tensor_desc *inputs = &input, *outputs = &output;
    const struct tandem_op op = {.struct_size = sizeof(op),
                                 .id = TANDEM_OP_TRANSPOSE,
                                 .ints = permutation,
                                 .int_count = 2};
    expect_ok(backend->launch(stream, &op, &inputs, 1, &outputs, 1), "launch");
    expect_ok(backend->download(stream, to, 0, got, sizeof(got), 0,
                                TANDEM_TIMEOUT_INFINITE),
              "download");
    for (int i = 0; i < LINES * ROWS; i++)
        ck_assert_int_eq(got[i % ROWS][i / ROWS], i % 251 + 1);
    backend->free(from);
    backend->free(to);
    backend->stream_destroy(stream);
    backend->close(device);
    munmap(memory, bytes);
}

TEST(imported_memory_is_shared)
{
    float *memory = aligned_alloc(4096, 4096);
    struct tandem_buffer *buffer;
    struct tandem_stream *stream;
    struct tandem_device *device = device_new("cache_dir", "");
    enum tandem_status status =
        backend->import_host(device, memory, 4096, &buffer);
    if (status == TANDEM_OK) {
        const float two = 2.0f;
        expect_ok(backend->stream_create(device, 0, &stream), "stream_create");
        expect_ok(backend->fill(stream, buffer, 0, 4096, &two, sizeof(two)),
                  "fill");
        expect_ok(backend->stream_synchronize(stream, TANDEM_TIMEOUT_INFINITE),
                  "stream_synchronize");
        ck_assert(memory[0] == 2.0f && memory[1023] == 2.0f);
        backend->free(buffer);
    } else {
        ck_assert_int_eq(status, TANDEM_UNSUPPORTED);
    }
    backend->close(device);
    free(memory);
}

/* STAGING_SEGMENT_BYTES of the plugin; STAGING_BYTES is a multiple. */
#define CHUNK ((size_t)512 << 10)
#define STAGED (8 * CHUNK)
#define LARGEST (2 * STAGED + 77)

/* Returns a byte that differs between neighbours, chunks and uploads. */
static unsigned char pattern(size_t at, size_t seed)
{
    return (unsigned char)(at * 7 + at / CHUNK * 29 + seed * 101 + 1);
}

/* Enqueues work that runs for a while. */
static void long_work_enqueue(struct tandem_stream *stream,
                              struct tandem_buffer *buffer)
{
    const int64_t count = 1 << 18;
    struct tandem_tensor_desc tensor = {buffer, 0, TANDEM_F32, 1, {count}, {1}};
    const struct tandem_tensor_desc *operand = &tensor;
    struct tandem_op op = {.struct_size = sizeof(op), .id = TANDEM_OP_EXP};
    for (int i = 0; i < 3; i++)
        expect_ok(backend->launch(stream, &op, &operand, 1, &operand, 1),
                  "launch");
}

struct uploads {
    struct tandem_device *device;
    struct tandem_stream *stream;
    struct tandem_buffer *work, *target;
    unsigned char *source, *seen;
};

static struct uploads uploads_new(void)
{
    const uint32_t zero = 0;
    struct uploads uploads = {.device = device_new("cache_dir", "")};
    expect_ok(backend->stream_create(uploads.device, 0, &uploads.stream),
              "stream_create");
    expect_ok(backend->alloc(uploads.device, 1 << 20, &uploads.work), "alloc");
    expect_ok(backend->alloc(uploads.device, LARGEST + 3, &uploads.target),
              "alloc");
    expect_ok(backend->fill(uploads.stream, uploads.work, 0, 1 << 20, &zero, 4),
              "fill");
    uploads.source = malloc(LARGEST);
    uploads.seen = malloc(LARGEST);
    ck_assert(uploads.source != NULL && uploads.seen != NULL);
    return uploads;
}

static void uploads_free(struct uploads *uploads)
{
    backend->close(uploads->device);
    free(uploads->source);
    free(uploads->seen);
}

/* Uploads while work is running, and overwrites the source at once. */
static void upload_and_overwrite(struct uploads *uploads, void *source,
                                 size_t bytes, size_t seed)
{
    unsigned char *memory = source;
    for (size_t i = 0; i < bytes; i++)
        memory[i] = pattern(i, seed);
    expect_ok(
        backend->upload(uploads->stream, uploads->target, 3, memory, bytes, 0),
        "upload");
    memset(memory, 0xee, bytes);
}

static void upload_seen(struct uploads *uploads, size_t bytes, size_t seed)
{
    expect_ok(backend->download(uploads->stream, uploads->target, 3,
                                uploads->seen, bytes, 0,
                                TANDEM_TIMEOUT_INFINITE),
              "download");
    size_t same = 0; /* One assertion per byte would take minutes. */
    while (same < bytes && uploads->seen[same] == pattern(same, seed))
        same++;
    ck_assert_msg(same == bytes, "byte %zu of %zu is %u, not %u", same, bytes,
                  uploads->seen[same % bytes], pattern(same, seed));
}

static const size_t upload_sizes[] = {
    1,          63,        64,         65,        4096,      CHUNK - 64,
    CHUNK - 63, CHUNK - 1, CHUNK,      CHUNK + 1, 3 * CHUNK, 3 * CHUNK + 5,
    STAGED - 1, STAGED,    STAGED + 1, LARGEST};
#define UPLOAD_SIZES (sizeof(upload_sizes) / sizeof(upload_sizes[0]))

TEST(upload_source_is_reusable)
{
    struct uploads uploads = uploads_new();
    void *pinned;
    expect_ok(backend->host_alloc(uploads.device, LARGEST, &pinned),
              "host_alloc");
    for (size_t i = 0; i < UPLOAD_SIZES; i++) {
        long_work_enqueue(uploads.stream, uploads.work);
        upload_and_overwrite(&uploads, uploads.source, upload_sizes[i], i);
        upload_seen(&uploads, upload_sizes[i], i);
        /* The stream is idle. */
        upload_and_overwrite(&uploads, pinned, upload_sizes[i], i + 1);
        upload_seen(&uploads, upload_sizes[i], i + 1);
        long_work_enqueue(uploads.stream, uploads.work);
        upload_and_overwrite(&uploads, pinned, upload_sizes[i], i + 2);
        upload_seen(&uploads, upload_sizes[i], i + 2);
    }
    uploads_free(&uploads);
}

/*
 * A copy on the device saves each upload before the next overwrites it. All
 * uploads together are much larger than the staging memory.
 */
TEST(uploads_keep_their_order)
{
    enum { ROUNDS = 200, EACH = 65521 };
    struct uploads uploads = uploads_new();
    struct tandem_buffer *all;
    expect_ok(backend->alloc(uploads.device, (uint64_t)ROUNDS * EACH, &all),
              "alloc");
    long_work_enqueue(uploads.stream, uploads.work);
    for (size_t i = 0; i < ROUNDS; i++) {
        upload_and_overwrite(&uploads, uploads.source, EACH - i, i);
        expect_ok(backend->copy(uploads.stream, all, i * EACH, uploads.target,
                                3, EACH - i),
                  "copy");
    }
    for (size_t i = 0; i < ROUNDS; i++) {
        expect_ok(backend->copy(uploads.stream, uploads.target, 3, all,
                                i * EACH, EACH - i),
                  "copy");
        upload_seen(&uploads, EACH - i, i);
    }
    uploads_free(&uploads);
}

TEST(trim_frees_staging_at_any_time)
{
    struct uploads uploads = uploads_new();
    struct tandem_memory_stats before = stats_of(uploads.device), after;
    for (size_t i = 0; i < 8; i++) {
        long_work_enqueue(uploads.stream, uploads.work);
        upload_and_overwrite(&uploads, uploads.source, (i + 1) * 300000, i);
        if (i % 2 == 1)
            expect_ok(backend->stream_synchronize(uploads.stream,
                                                  TANDEM_TIMEOUT_INFINITE),
                      "stream_synchronize");
        expect_ok(backend->trim(uploads.device, 0), "trim");
        upload_seen(&uploads, (i + 1) * 300000, i);
    }
    after = stats_of(uploads.device);
    ck_assert_uint_eq(after.allocated_bytes, before.allocated_bytes);
    ck_assert_uint_eq(after.cached_bytes, before.cached_bytes);
    ck_assert_uint_eq(after.driver_alloc_count, before.driver_alloc_count);
    uploads_free(&uploads);
}

/* Listing the devices is enough to make OpenCL unusable in a forked child. */
TEST(fork_after_listing_is_reported)
{
    ck_assert_int_eq(process_end(process_start("/proc/self/exe", "fork")), 0);
}

/*
 * Runs in a child process: the device has more compute units than there is
 * memory for.
 */
static void timed_kernel_note(void *user, const char *key, const char *value)
{
    uint32_t *seen = user;
    (void)value;
    *seen |= strcmp(key, "gemm.kernel.simt-128x128") == 0 ? 1u
             : strncmp(key, "gemm.kernel.", 12) == 0      ? 2u
                                                          : 0;
}

/*
 * Allocates the memory in which the kernel was timed, which the pool has
 * cached. Operands are between -1 and 1 and results are no larger, so that
 * repeated GEMMs remain finite.
 */
static bool timing_operands_are_small(struct tandem_device *device)
{
    enum { BYTES = 4 << 20 }; /* The largest size within the limit. */
    struct tandem_memory_stats before = {.struct_size = sizeof(before)};
    struct tandem_memory_stats after = before;
    struct tandem_stream *stream = NULL;
    struct tandem_buffer *buffer = NULL;
    static float numbers[BYTES / sizeof(float)];
    bool small = backend->stream_create(device, 0, &stream) == TANDEM_OK &&
                 backend->memory_stats(device, &before) == TANDEM_OK &&
                 backend->alloc(device, BYTES, &buffer) == TANDEM_OK &&
                 backend->memory_stats(device, &after) == TANDEM_OK &&
                 after.driver_alloc_count == before.driver_alloc_count &&
                 backend->download(stream, buffer, 0, numbers, BYTES, 0,
                                   TANDEM_TIMEOUT_INFINITE) == TANDEM_OK;
    for (size_t i = 0; i < BYTES / sizeof(float) && small; i++)
        small = fabsf(numbers[i]) <= 1;
    if (buffer != NULL)
        backend->free(buffer);
    if (stream != NULL)
        backend->stream_destroy(stream);
    return small;
}

static int tune_in_little_memory(void)
{
    uint32_t count, seen = 0;
    setenv("POCL_MAX_PTHREAD_COUNT", "16", 1);
    backend = plugin_load();
    if (backend == NULL || backend->device_count(&count) != TANDEM_OK)
        return 2;
    const char *key = "memory_limit_bytes", *cap = "5000000";
    const struct tandem_open_options options = {
        .struct_size = sizeof(options), .count = 1, .keys = &key,
        .values = &cap};
    struct tandem_device *device;
    if (backend->open(0, &options, &device) != TANDEM_OK)
        return 4;
    enum tandem_status status =
        backend->tune(device, UINT64_C(4000000000), timed_kernel_note, &seen);
    bool small = status != TANDEM_OK || timing_operands_are_small(device);
    backend->close(device);
    if (!small)
        return 5;
    /* The first timed kernel, or none if there was no time. */
    return status == TANDEM_OK && seen != 2 ? 0 : 3;
}

/* Runs in a child process that finds no driver. */
static int no_driver(void)
{
    uint32_t count = 7;
    setenv("OCL_ICD_VENDORS", "/nonexistent", 1);
    backend = plugin_load();
    if (backend == NULL)
        return 2;
    enum tandem_status status = backend->device_count(&count);
    bool said = strstr(backend->last_error(),
                       "OCL_ICD_VENDORS is set to \"/nonexistent\"") != NULL;
    return status == TANDEM_NO_DEVICE && count == 0 && said ? 0 : 3;
}

/*
 * Runs in a child process, which forks and opens the device that its parent
 * listed.
 */
static int fork_after_listing(void)
{
    struct tandem_device *device;
    uint32_t count;
    backend = plugin_load();
    if (backend == NULL || backend->device_count(&count) != TANDEM_OK)
        return 2;
    pid_t child = fork();
    if (child == 0) {
        alarm(60);
        _exit(backend->open(0, NULL, &device) == TANDEM_DEVICE_LOST ? 0 : 3);
    }
    int status = 0;
    if (child < 0 || waitpid(child, &status, 0) != child)
        return 4;
    return WIFEXITED(status) ? WEXITSTATUS(status) : 5;
}

int main(int argc, char **argv)
{
    if (argc > 1 && strcmp(argv[1], "no-driver") == 0)
        return no_driver();
    if (argc > 1 && strcmp(argv[1], "fork") == 0)
        return fork_after_listing();
    if (argc > 1 && strcmp(argv[1], "tune") == 0)
        return tune_in_little_memory();
    return opencl_tests_run("opencl", NULL, NULL);
}
