/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Promises of the OpenCL plugin beyond the conformance suite: its memory pool,
 * imported memory, uploads whose source may be reused, and errors if there is
 * no OpenCL. Runs on the first device, in the build directory.
 */
#include <config.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <tandem/extensions.h>

#include "support/test_list.h"
#include "support.h"

TEST(missing_driver_is_reported)
{
    ck_assert_int_eq(process_end(process_start("/proc/self/exe", "no-driver")),
                     0);
}

TEST(fork_is_reported)
{
    device_open_with("cache_dir", "");
    struct tandem_buffer *buffer;
    pid_t child = fork();
    if (child == 0) {
        enum tandem_status status =
            backend->alloc(device, TANDEM_BYTES(64), &buffer);
        backend->close(device); /* close does nothing and does not hang. */
        _exit(status == TANDEM_DEVICE_LOST ? 0 : 1);
    }
    ck_assert_int_eq(process_end(child), 0);
}

/* A kernel that was not timed is never selected if others were timed. */
TEST(kernels_are_timed_in_little_memory)
{
    ck_assert_int_eq(process_end(process_start("/proc/self/exe", "tune")), 0);
}

TEST(pool_reuses_driver_memory)
{
    device_open_with("cache_dir", "");
    for (int i = 0; i < 100; i++)
        backend->free(buffer_new(100000 + (uint64_t)i));
    struct tandem_memory_stats stats = memory_stats();
    ck_assert_uint_eq(stats.alloc_count, 100);
    ck_assert_uint_eq(stats.driver_alloc_count, 1);
    ck_assert_uint_eq(stats.allocated_bytes, 0);
    ck_assert_uint_ge(stats.cached_bytes, 100000);
    OK(backend->trim(device, 0));
    ck_assert_uint_eq(memory_stats().cached_bytes, 0);
}

TEST(memory_limit_is_kept)
{
    struct tandem_buffer *first, *second;
    device_open_with("memory_limit_bytes", "1048576");
    first = buffer_new(600000);
    ck_assert_int_eq(backend->alloc(device, TANDEM_BYTES(600000), &second),
                     TANDEM_OUT_OF_MEMORY);
    ck_assert_ptr_null(second);
    backend->free(first);
    /* Cached blocks are released for the request. */
    second = buffer_new(900000);
    struct tandem_memory_stats stats = memory_stats();
    ck_assert_uint_le(stats.allocated_bytes + stats.cached_bytes, 1048576);
    backend->free(second);
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
    const char *const pairs[] = {"test.gemm_kernel",
                                 "simt-64x64:4",
                                 "memory_limit_bytes",
                                 "560000",
                                 "deterministic",
                                 deterministic,
                                 NULL};
    const int64_t n = 128, k = 256;
    struct tandem_buffer *a, *b, *c;
    const float one = 1.0f;
    float got = 0;
    parallel_gemm_run = true;
    device_open(pairs, disabled_kernel_note);
    a = buffer_new((uint64_t)(n * k) * 4);
    b = buffer_new((uint64_t)(n * k) * 4);
    c = buffer_new((uint64_t)(n * n) * 4);
    OK(backend->fill(stream, a, 0, (uint64_t)(n * k) * 4, &one, 4));
    OK(backend->fill(stream, b, 0, (uint64_t)(n * k) * 4, &one, 4));
    const struct tandem_gemm gemm = gemm_of(n, n, k, a, b, c);
    enum tandem_status status = backend->gemm(stream, &gemm);
    if (status == TANDEM_OK) {
        buffer_read(c, &got, sizeof(got));
        stream_wait(stream);
        ck_assert(got == (float)k);
    }
    device_close();
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
    const char *const pairs[] = {"test.gemm_kernel", "simt-32x64", NULL};
    struct tandem_buffer *matrices[3];
    for (int i = 0; i < N * DEPTH; i++) {
        a[i] = i % DEPTH == 0 ? 1.0f : (float)term;
        b[i] = 1.0f;
    }
    parallel_gemm_run = true;
    device_open(pairs, disabled_kernel_note);
    matrices[0] = buffer_new(sizeof(a));
    matrices[1] = buffer_new(sizeof(b));
    matrices[2] = buffer_new(sizeof(c));
    buffer_write(matrices[0], a, sizeof(a));
    buffer_write(matrices[1], b, sizeof(b));
    const struct tandem_gemm gemm =
        gemm_of(N, N, DEPTH, matrices[0], matrices[1], matrices[2]);
    OK(backend->gemm(stream, &gemm));
    buffer_read(matrices[2], c, sizeof(c));
    /* Half an ULP of a float in [1, 2) for each sum of a slice. */
    const double most = term * (SLICE - 1) + DEPTH / SLICE * ldexp(1.0, -24);
    for (int i = 0; i < N * N; i++)
        ck_assert(!parallel_gemm_run ||
                  fabs(c[i] - (1.0 + term * (DEPTH - 1))) <= most);
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
    device_open_with("test.device_scope_visibility", "1");
    struct tandem_stream *const streams[] = {stream, stream_new()};
    struct tandem_buffer *from, *to[2];
    for (int i = 0; i < ROWS * COLUMNS + 2 * TURNS; i++)
        x[i] = (float)(i * 7919 % 251);
    from = buffer_new(sizeof(x));
    for (int i = 0; i < 2; i++)
        to[i] = buffer_new(sizeof(poison));
    buffer_write(from, x, sizeof(x));
    stream_wait(stream);
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
        OK(backend->upload(streams[on], to[on], 0, poison, sizeof(poison), 0));
        OK(tensors_launch(backend, device, streams[on], &op, inputs, 1, outputs,
                          1, 64));
        OK(backend->download(streams[on], to[on], 0, got[turn], sizeof(poison),
                             TANDEM_TRANSFER_ASYNC, TANDEM_TIMEOUT_INFINITE));
    }
    for (int i = 0; i < 2; i++)
        stream_wait(streams[i]);
    for (int turn = 0; turn < 2 * TURNS; turn++)
        for (int row = 0; row < ROWS; row++) {
            double want = 0;
            for (int i = 0; i < COLUMNS; i++)
                want += (double)x[turn + row * COLUMNS + i];
            ck_assert_double_eq((double)got[turn][row], want);
        }
}

/*
 * A GEMM on memory that is not aligned to CLBlast's vectors. CLBlast's kernels
 * would crash the process.
 */
TEST(imported_memory_may_be_unaligned)
{
    enum { N = 32, FLOATS = N * N };
    static _Alignas(64) float memory[3][FLOATS + 16];
    const char *const pairs[] = {"test.gemm_kernel", "clblast", NULL};
    struct tandem_buffer *matrices[3];
    device_open(pairs, NULL);
    for (int i = 0; i < 3; i++) {
        for (int j = 0; j < FLOATS; j++)
            memory[i][j + 1] = (float)(i + 1);
        OK(backend->import_host(device, memory[i] + 1, FLOATS * sizeof(float),
                                NULL, NULL, &matrices[i]));
    }
    struct tandem_gemm gemm =
        gemm_of(N, N, N, matrices[0], matrices[1], matrices[2]);
    gemm.beta = 1;
    OK(backend->gemm(stream, &gemm));
    stream_wait(stream);
    for (int j = 0; j < FLOATS; j++)
        ck_assert_float_eq(memory[2][j + 1], 2.0f * N + 3.0f);
}

/* Returns the time that prepare predicts for a product of 512 x 512 matrices
 * with this alignment. */
static double predicted_ns(const char *tuning, uint32_t alignment)
{
    const struct tandem_operand_desc matrix = {.dtype = TANDEM_F32,
                                               .rank = 2,
                                               .shape = {512, 512},
                                               .strides = {512, 1},
                                               .alignment_bytes = alignment};
    const struct tandem_operand_desc *operands[] = {&matrix, &matrix, &matrix};
    const int64_t ints[2] = {0};
    const double floats[4] = {1};
    const struct tandem_op op = {.struct_size = sizeof op,
                                 .id = TANDEM_OP_GEMM,
                                 .int_count = 2,
                                 .float_count = 4,
                                 .ints = ints,
                                 .floats = floats};
    struct tandem_prepared_info info = {.struct_size = sizeof info};
    device_open_with("tuning", tuning);
    OK(backend->prepare(device, &op, operands, 2, operands + 2, 1,
                        TANDEM_PREPARE_QUERY, &info, NULL));
    device_close();
    return info.predicted_ns;
}

/* The only kernel with costs takes at least 1 ms for each k. */
TEST(measured_costs_predict_the_time_of_gemm)
{
    const double once =
        predicted_ns("{\"gemm.kernel.simt-64x64\": \"10 1000000 10\"}", 64);
    const double twice =
        predicted_ns("{\"gemm.kernel.simt-64x64\": \"10 2000000 10\"}", 64);
    ck_assert_double_eq(predicted_ns("{}", 64), 0);
    ck_assert_double_ge(once, 512e6);
    ck_assert_double_eq_tol(twice, 2 * once, 1e-3 * once);
}

/* CLBlast is the fastest by far, but cannot read matrices that are known to be
 * unaligned. An alignment of 0 says nothing. */
TEST(unaligned_matrices_are_not_planned_for_clblast)
{
    const char *const tuning =
        "{\"gemm.kernel.simt-64x64\": \"10 1000000 10\", "
        "\"gemm.clblast\": \"512 512 512 1000\"}";
    ck_assert_double_lt(predicted_ns(tuning, 64), 2000);
    ck_assert_double_lt(predicted_ns(tuning, 0), 2000);
    ck_assert_double_ge(predicted_ns(tuning, 4), 512e6);
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
    ck_assert(memory != MAP_FAILED);
    for (int i = 0; i < LINES * ROWS; i++)
        memory[i / ROWS * pitch + i % ROWS] = (uint8_t)(i % 251 + 1);
    device_open_with("cache_dir", "");
    OK(backend->import_host(device, memory, bytes, NULL, NULL, &from));
    to = buffer_new(sizeof(got));
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
    OK(tensors_launch(backend, device, stream, &op, &inputs, 1, &outputs, 1,
                      64));
    buffer_read(to, got, sizeof(got));
    for (int i = 0; i < LINES * ROWS; i++)
        ck_assert_int_eq(got[i % ROWS][i / ROWS], i % 251 + 1);
    device_close();
    munmap(memory, bytes);
}

TEST(imported_memory_is_shared)
{
    float *memory = aligned_alloc(4096, 4096);
    struct tandem_buffer *buffer;
    device_open_with("cache_dir", "");
    enum tandem_status status =
        backend->import_host(device, memory, 4096, NULL, NULL, &buffer);
    if (status == TANDEM_OK) {
        const float two = 2.0f;
        OK(backend->fill(stream, buffer, 0, 4096, &two, sizeof(two)));
        stream_wait(stream);
        ck_assert(memory[0] == 2.0f && memory[1023] == 2.0f);
        backend->free(buffer);
    } else {
        ck_assert_int_eq(status, TANDEM_UNSUPPORTED);
    }
    device_close();
    free(memory);
}

/* The plugin's FIRST_CHUNK_BYTES and MAX_BUSY_RING_BYTES, and more than its
 * ring of pinned memory. */
#define CHUNK ((size_t)512 << 10)
#define MAX_BUSY (8 * CHUNK)
#define LARGEST (34 * CHUNK + 77)

/* Returns a byte that differs between neighbours, chunks and uploads. */
static unsigned char pattern(size_t at, size_t seed)
{
    return (unsigned char)(at * 7 + at / CHUNK * 29 + seed * 101 + 1);
}

/* Enqueues work that runs for a while. */
static void long_work_enqueue(struct tandem_buffer *buffer)
{
    const int64_t count = 1 << 18;
    struct tandem_tensor_desc tensor = {buffer, 0, TANDEM_F32, 1, {count}, {1}};
    const struct tandem_tensor_desc *operand = &tensor;
    struct tandem_op op = {.struct_size = sizeof(op), .id = TANDEM_OP_EXP};
    for (int i = 0; i < 3; i++)
        OK(tensors_launch(backend, device, stream, &op, &operand, 1, &operand,
                          1, 64));
}

struct uploads {
    struct tandem_buffer *work, *target;
    unsigned char *source, *seen;
};

static struct uploads uploads_new(void)
{
    const uint32_t zero = 0;
    struct uploads uploads;
    device_open_with("cache_dir", "");
    uploads.work = buffer_new(1 << 20);
    uploads.target = buffer_new(LARGEST + 3);
    OK(backend->fill(stream, uploads.work, 0, 1 << 20, &zero, 4));
    uploads.source = malloc(LARGEST);
    uploads.seen = malloc(LARGEST);
    ck_assert(uploads.source != NULL && uploads.seen != NULL);
    return uploads;
}

static void uploads_free(struct uploads *uploads)
{
    device_close();
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
    OK(backend->upload(stream, uploads->target, 3, memory, bytes, 0));
    memset(memory, 0xee, bytes);
}

static void upload_seen(struct uploads *uploads, size_t bytes, size_t seed)
{
    OK(backend->download(stream, uploads->target, 3, uploads->seen, bytes, 0,
                         TANDEM_TIMEOUT_INFINITE));
    size_t same = 0; /* One assertion per byte would take minutes. */
    while (same < bytes && uploads->seen[same] == pattern(same, seed))
        same++;
    ck_assert_msg(same == bytes, "byte %zu of %zu is %u, not %u", same, bytes,
                  uploads->seen[same % bytes], pattern(same, seed));
}

static const size_t upload_sizes[] = {1,
                                      63,
                                      64,
                                      65,
                                      4096,
                                      CHUNK - 64,
                                      CHUNK - 63,
                                      CHUNK - 1,
                                      CHUNK,
                                      CHUNK + 1,
                                      3 * CHUNK,
                                      3 * CHUNK + 5,
                                      MAX_BUSY - 1,
                                      MAX_BUSY,
                                      MAX_BUSY + 1,
                                      LARGEST};
#define UPLOAD_SIZES (sizeof(upload_sizes) / sizeof(upload_sizes[0]))

TEST(upload_source_is_reusable)
{
    struct uploads uploads = uploads_new();
    void *pinned;
    OK(backend->host_alloc(device, LARGEST, &pinned));
    for (size_t i = 0; i < UPLOAD_SIZES; i++) {
        long_work_enqueue(uploads.work);
        upload_and_overwrite(&uploads, uploads.source, upload_sizes[i], i);
        upload_seen(&uploads, upload_sizes[i], i);
        /* The stream is idle. */
        upload_and_overwrite(&uploads, pinned, upload_sizes[i], i + 1);
        upload_seen(&uploads, upload_sizes[i], i + 1);
        long_work_enqueue(uploads.work);
        upload_and_overwrite(&uploads, pinned, upload_sizes[i], i + 2);
        upload_seen(&uploads, upload_sizes[i], i + 2);
    }
    uploads_free(&uploads);
}

/*
 * A copy on the device saves each upload before the next overwrites it. All
 * uploads together are much larger than the first chunk of the ring.
 */
TEST(uploads_keep_their_order)
{
    enum { ROUNDS = 200, EACH = 65521 };
    struct uploads uploads = uploads_new();
    struct tandem_buffer *all;
    all = buffer_new((uint64_t)ROUNDS * EACH);
    long_work_enqueue(uploads.work);
    for (size_t i = 0; i < ROUNDS; i++) {
        upload_and_overwrite(&uploads, uploads.source, EACH - i, i);
        OK(backend->copy(stream, all, i * EACH, uploads.target, 3, EACH - i));
    }
    for (size_t i = 0; i < ROUNDS; i++) {
        OK(backend->copy(stream, uploads.target, 3, all, i * EACH, EACH - i));
        upload_seen(&uploads, EACH - i, i);
    }
    uploads_free(&uploads);
}

TEST(trim_frees_the_ring_at_any_time)
{
    struct uploads uploads = uploads_new();
    struct tandem_memory_stats before = memory_stats(), after;
    for (size_t i = 0; i < 8; i++) {
        long_work_enqueue(uploads.work);
        upload_and_overwrite(&uploads, uploads.source, (i + 1) * 300000, i);
        if (i % 2 == 1)
            stream_wait(stream);
        OK(backend->trim(device, 0));
        upload_seen(&uploads, (i + 1) * 300000, i);
    }
    after = memory_stats();
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

/* Runs in a child: there is too little memory for all compute units. */
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
static bool timing_operands_are_small(void)
{
    enum { BYTES = 4 << 20 }; /* The largest size within the limit. */
    struct tandem_memory_stats before = {.struct_size = sizeof(before)};
    struct tandem_memory_stats after = before;
    struct tandem_buffer *buffer = NULL;
    static float numbers[BYTES / sizeof(float)];
    bool small =
        backend->stream_create(device, 0, &stream) == TANDEM_OK &&
        backend->memory_stats(device, &before) == TANDEM_OK &&
        backend->alloc(device, TANDEM_BYTES(BYTES), &buffer) == TANDEM_OK &&
        backend->memory_stats(device, &after) == TANDEM_OK &&
        after.driver_alloc_count == before.driver_alloc_count &&
        backend->download(stream, buffer, 0, numbers, BYTES, 0,
                          TANDEM_TIMEOUT_INFINITE) == TANDEM_OK;
    for (size_t i = 0; i < BYTES / sizeof(float) && small; i++)
        small = fabsf(numbers[i]) <= 1;
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
    const struct tandem_open_options options = {.struct_size = sizeof(options),
                                                .count = 1,
                                                .keys = &key,
                                                .values = &cap};
    if (backend->open(0, &options, &device) != TANDEM_OK)
        return 4;
    const struct tandem_tune_extension *extension =
        backend->extension(TANDEM_EXTENSION_TUNE);
    enum tandem_status status =
        extension->tune(device, UINT64_C(4000000000), timed_kernel_note, &seen);
    bool small = status != TANDEM_OK || timing_operands_are_small();
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

/* Runs in a child, which forks and opens the device its parent listed. */
static int fork_after_listing(void)
{
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
    return opencl_tests_run("opencl", NULL, device_close);
}
