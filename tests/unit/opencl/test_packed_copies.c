/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Packed copies of GEMM operands: when they are made, shared and dropped. After
 * any write to a weight, the next GEMM uses the new content. Uses a kernel that
 * reads only vectors of four elements, and weights with an odd row length.
 */
#include <config.h>

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "support/test_list.h"
#include "opencl/memory/packed_copy.h"
#include "support.h"

/* c = a b. The rows of a are aligned, those of b are not. */
#define M 5
#define N 7
#define K 8
#define WEIGHTS 3
#define SIDE 256 /* Size of a GEMM that runs for a while. */

static struct tandem_buffer *left, *result, *weights[WEIGHTS];
static float left_host[M * K], weight_host[WEIGHTS][K * N];

static float number(uint32_t seed)
{
    return (float)((seed * 1664525u + 1013904223u) >> 16 & 63u) - 31;
}

static void start(const char *cap_key, const char *cap, const char *packed)
{
    const char *const pairs[] = {"test.gemm_kernel",
                                 "simt-128x128",
                                 "test.packed_limit_bytes",
                                 packed,
                                 cap_key,
                                 cap,
                                 NULL};
    device_open(pairs, NULL);
    left = buffer_new(sizeof(left_host));
    result = buffer_new(M * N * 4);
    for (uint32_t i = 0; i < M * K; i++)
        left_host[i] = number(i);
    buffer_write(left, left_host, sizeof(left_host));
    for (uint32_t w = 0; w < WEIGHTS; w++) {
        for (uint32_t i = 0; i < K * N; i++)
            weight_host[w][i] = number(1000 * w + i);
        weights[w] = buffer_new(K * N * 4);
        buffer_write(weights[w], weight_host[w], K * N * 4);
    }
}

/* Returns the product of the left matrix and a weight. */
static struct tandem_gemm product(struct tandem_buffer *weight)
{
    return gemm_of(M, N, K, left, weight, result);
}

static void result_check(const float *got, const float *a, const float *b,
                         const char *what)
{
    for (uint32_t i = 0; i < M * N; i++) {
        float sum = 0;
        for (uint32_t k = 0; k < K; k++)
            sum += a[i / N * K + k] * b[k * N + i % N];
        ck_assert_msg(got[i] == sum, "%s: element %u is %g, not %g", what, i,
                      (double)got[i], (double)sum);
    }
}

/* Runs GEMMs with weight w until it has a packed copy, and once more. */
static void gemms_check(uint32_t w, const char *what)
{
    float got[M * N];
    struct tandem_gemm gemm = product(weights[w]);
    for (uint32_t turn = 0; turn < 3; turn++) {
        expect_ok(backend->gemm(stream, &gemm), what);
        expect_ok(backend->download(stream, result, 0, got, sizeof(got), 0,
                                    TANDEM_TIMEOUT_INFINITE),
                  what);
        result_check(got, left_host, weight_host[w], what);
    }
}

/* Returns the number of packed copies of a buffer. */
static uint32_t copies(const struct tandem_buffer *buffer)
{
    uint32_t count = 0;

    for (const struct packed_copy *copy = buffer->packed_copies; copy != NULL;
         copy = copy->next)
        count += copy->is_packed;
    return count;
}

/* Launches a GEMM and returns the number of commands: 1, or more if it packs.
 */
static uint64_t commands(struct tandem_gemm gemm)
{
    const uint64_t before = atomic_load(&stream->issued_seqno);

    OK(backend->gemm(stream, &gemm));
    return atomic_load(&stream->issued_seqno) - before;
}

/* ---- when copies are made ---- */

TEST(the_second_use_makes_a_copy)
{
    start(NULL, NULL, "1048576");
    struct tandem_gemm gemm = product(weights[0]);
    ck_assert_uint_eq(commands(gemm), 2);
    ck_assert_uint_eq(copies(weights[0]), 0);
    ck_assert_uint_eq(commands(gemm), 2);
    ck_assert_uint_eq(copies(weights[0]), 1);
    ck_assert_uint_eq(commands(gemm), 1);
    ck_assert_uint_eq(copies(weights[1]), 0);
}

TEST(the_first_use_of_a_sealed_buffer_makes_a_copy)
{
    start(NULL, NULL, "1048576");
    struct tandem_gemm gemm = product(weights[0]);
    void *memory;
    OK(backend->buffer_seal(weights[0]));
    ck_assert_uint_eq(commands(gemm), 2);
    ck_assert_uint_eq(copies(weights[0]), 1);
    ck_assert_uint_eq(commands(gemm), 1);
    /* A map to read does not change the content. */
    OK(backend->map(stream, weights[0], 0, 4, TANDEM_MAP_READ,
                    TANDEM_TIMEOUT_INFINITE, &memory));
    OK(backend->unmap(stream, weights[0], memory));
    ck_assert_uint_eq(commands(gemm), 1);
    gemms_check(0, "sealed");
}

/* The number of rows of `a`, alpha and the bias do not matter. */
TEST(prepared_operators_share_a_copy)
{
    start(NULL, NULL, "1048576");
    gemms_check(0, "the first");
    struct tandem_gemm gemm = product(weights[0]);
    gemm.m = 2;
    ck_assert_uint_eq(commands(gemm), 1);
    gemm.activation = TANDEM_OP_RELU;
    ck_assert_uint_eq(commands(gemm), 1);
    ck_assert_uint_eq(copies(weights[0]), 1);
}

/* A weight that was written is packed twice again. */
TEST(writing_and_freeing_drop_the_copy)
{
    start(NULL, NULL, "1048576");
    struct tandem_gemm gemm = product(weights[0]);
    gemms_check(0, "before");
    const uint64_t bytes = device->pool.packed_bytes;
    ck_assert_uint_eq(bytes, 512);
    buffer_write(weights[0], weight_host[0], 4);
    ck_assert_uint_eq(commands(gemm), 2);
    ck_assert_uint_eq(copies(weights[0]), 0);
    ck_assert_uint_eq(device->pool.packed_bytes, 0);
    gemms_check(0, "after");
    ck_assert_uint_eq(device->pool.packed_bytes, bytes);
    const struct tandem_memory_stats before = memory_stats();
    backend->free(weights[0]);
    ck_assert_uint_eq(device->pool.packed_bytes, 0);
    /* The copy was and stays cached memory. */
    const struct tandem_memory_stats stats = memory_stats();
    ck_assert_uint_eq(stats.cached_bytes, before.cached_bytes + 512);
    ck_assert_uint_eq(stats.allocated_bytes, before.allocated_bytes - 512);
    OK(backend->trim(device, 0));
    ck_assert_uint_eq(memory_stats().cached_bytes, 0);
}

/* The plugin does not notice when the caller writes the memory, unless the
 * caller promised not to write it. */
TEST(imported_memory_has_copies_only_if_sealed)
{
    static _Alignas(4096) float memory[K * N];
    struct tandem_buffer *imported;
    float got[M * N];
    start(NULL, NULL, "1048576");
    enum tandem_status status = backend->import_host(
        device, memory, sizeof(memory), NULL, NULL, &imported);
    if (status == TANDEM_UNSUPPORTED)
        return;
    OK(status);
    const struct tandem_gemm gemm = product(imported);
    for (uint32_t turn = 0; turn < 4; turn++) {
        memcpy(memory, weight_host[turn % WEIGHTS], sizeof(memory));
        OK(backend->gemm(stream, &gemm));
        buffer_read(result, got, sizeof(got));
        result_check(got, left_host, memory, "imported");
    }
    ck_assert_uint_eq(copies(imported), 0);
    OK(backend->buffer_seal(imported));
    ck_assert_uint_eq(commands(gemm), 2);
    ck_assert_uint_eq(commands(gemm), 1);
    buffer_read(result, got, sizeof(got));
    result_check(got, left_host, memory, "imported and sealed");
}

/* ---- operations that write a weight ---- */

static void write_upload(void)
{
    for (uint32_t i = 0; i < K * N; i++)
        weight_host[0][i] += 1;
    buffer_write(weights[0], weight_host[0], K * N * 4);
}

static void write_part(void)
{
    weight_host[0][K * N - 1] += 3;
    OK(backend->upload(stream, weights[0], (K * N - 1) * 4,
                       &weight_host[0][K * N - 1], 4, TANDEM_TRANSFER_ASYNC));
}

static void write_copy(void)
{
    memcpy(weight_host[0], weight_host[1], K * N * 4);
    OK(backend->copy(stream, weights[0], 0, weights[1], 0, K * N * 4));
}

static void write_fill(void)
{
    const float five = 5;
    for (uint32_t i = 0; i < N; i++)
        weight_host[0][i] = five;
    OK(backend->fill(stream, weights[0], 0, N * 4, &five, 4));
}

static struct tandem_tensor_desc weight_desc(struct tandem_buffer *buffer)
{
    return (struct tandem_tensor_desc){.buffer = buffer,
                                       .dtype = TANDEM_F32,
                                       .rank = 1,
                                       .shape = {K * N},
                                       .strides = {1}};
}

static void write_launch(void)
{
    struct tandem_tensor_desc weight = weight_desc(weights[0]);
    const struct tandem_tensor_desc *descs[1] = {&weight};
    struct tandem_op op = {.struct_size = sizeof(op), .id = TANDEM_OP_NEG};
    for (uint32_t i = 0; i < K * N; i++)
        weight_host[0][i] = -weight_host[0][i];
    OK(tensors_launch(backend, device, stream, &op, descs, 1, descs, 1, 64));
}

static void write_gemm(void)
{
    struct tandem_gemm gemm = gemm_of(M, N, K, left, weights[1], weights[0]);
    for (uint32_t i = 0; i < M * N; i++) {
        float sum = 0;
        for (uint32_t k = 0; k < K; k++)
            sum += left_host[i / N * K + k] * weight_host[1][k * N + i % N];
        weight_host[0][i] = sum;
    }
    OK(backend->gemm(stream, &gemm));
}

static void write_map(void)
{
    void *memory;
    OK(backend->map(stream, weights[0], 0, K * N * 4,
                    TANDEM_MAP_READ | TANDEM_MAP_WRITE, TANDEM_TIMEOUT_INFINITE,
                    &memory));
    weight_host[0][1] += 7;
    memcpy(memory, weight_host[0], K * N * 4);
    OK(backend->unmap(stream, weights[0], memory));
}

/* The new buffer gets the block of the freed one. */
static void write_new_buffer(void)
{
    backend->free(weights[0]);
    weights[0] = buffer_new(K * N * 4);
    write_upload();
}

static const struct {
    void (*write)(void);
    const char *name;
} writes[] = {
    {write_upload, "upload"}, {write_part, "upload of a part"},
    {write_copy, "copy"},     {write_fill, "fill"},
    {write_launch, "launch"}, {write_gemm, "gemm"},
    {write_map, "map"},       {write_new_buffer, "freed and allocated"}};

TEST(results_are_right_after_every_write)
{
    start(NULL, NULL, "1048576");
    for (uint32_t turn = 0; turn < 2; turn++)
        for (uint32_t i = 0; i < sizeof(writes) / sizeof(writes[0]); i++) {
            gemms_check(0, "before");
            writes[i].write();
            gemms_check(0, writes[i].name);
        }
}

static void long_work(struct tandem_stream *other, struct tandem_buffer *memory)
{
    const uint64_t third = SIDE * SIDE * 4;
    struct tandem_gemm slow = gemm_of(SIDE, SIDE, SIDE, memory, memory, memory);
    slow.b.byte_offset = third;
    slow.c.byte_offset = 2 * third;
    for (uint32_t i = 0; i < 4; i++)
        OK(backend->gemm(other, &slow));
}

/* Enqueues long work and then a write of b. */
static void write_after_long_work(struct tandem_stream *other,
                                  struct tandem_buffer *memory)
{
    const float five = 5;
    long_work(other, memory);
    for (uint32_t i = 0; i < K * N; i++)
        weight_host[0][i] = five;
    OK(backend->fill(other, weights[0], 0, K * N * 4, &five, 4));
}

/*
 * A GEMM that does not wait for another stream's write uses the old content,
 * but makes no copy.
 */
TEST(writes_of_another_stream_are_waited_for)
{
    struct tandem_stream *other;
    struct tandem_buffer *memory;
    const float zero = 0;
    start(NULL, NULL, "1048576");
    struct tandem_gemm gemm = product(weights[0]);
    other = stream_new();
    memory = buffer_new(3 * SIDE * SIDE * 4);
    OK(backend->fill(other, memory, 0, 3 * SIDE * SIDE * 4, &zero, 4));
    gemms_check(0, "before");
    write_after_long_work(other, memory);
    for (uint32_t turn = 0; turn < 3; turn++)
        OK(backend->gemm(stream, &gemm));
    stream_wait(other);
    stream_wait(stream);
    gemms_check(0, "after");
}

/*
 * A GEMM on another stream waits for the packing. The memory of the copy had
 * another content before.
 */
TEST(another_stream_waits_for_the_packing)
{
    float got[M * N];
    start(NULL, NULL, "1048576");
    struct tandem_stream *other = stream_new();
    struct tandem_buffer *memory = buffer_new(3 * SIDE * SIDE * 4);
    struct tandem_buffer *c = buffer_new(sizeof(got));
    const float zero = 0;
    struct tandem_gemm gemm = product(weights[0]);
    OK(backend->fill(stream, memory, 0, 3 * SIDE * SIDE * 4, &zero, 4));
    commands(gemm);
    commands(product(weights[1]));
    stream_wait(stream);
    long_work(stream, memory);
    commands(gemm);
    ck_assert_uint_eq(copies(weights[0]), 1);
    gemm.c.buffer = c;
    OK(backend->gemm(other, &gemm));
    OK(backend->download(other, c, 0, got, sizeof(got), 0,
                         TANDEM_TIMEOUT_INFINITE));
    result_check(got, left_host, weight_host[0], "on another stream");
    stream_wait(stream);
    gemms_check(0, "on the first stream");
}

/* ---- limits ---- */

/* Returns the number of copies of all weights. */
static uint32_t copies_within(const char *limit_bytes)
{
    uint32_t count = 0;
    start(NULL, NULL, limit_bytes);
    for (uint32_t i = 0; i < 2 * WEIGHTS; i++)
        gemms_check(i % WEIGHTS, "a weight");
    for (uint32_t i = 0; i < WEIGHTS; i++)
        count += copies(weights[i]);
    device_close();
    return count;
}

/* A copy has 256 bytes, in a block of 512 bytes. */
TEST(the_limit_of_copies_is_kept)
{
    ck_assert_uint_eq(copies_within("0"), 0);
    ck_assert_uint_eq(copies_within("255"), 0);
    ck_assert_uint_eq(copies_within("256"), 1);
    ck_assert_uint_eq(copies_within("768"), 2);
    ck_assert_uint_eq(copies_within("1048576"), WEIGHTS);
}

TEST(a_buffer_has_a_limited_number_of_copies)
{
    start(NULL, NULL, "1048576");
    struct tandem_buffer *large = buffer_new((MAX_PACKED_COPIES + 4) * N * 4);
    const float zero = 0;
    OK(backend->fill(stream, large, 0, (MAX_PACKED_COPIES + 4) * N * 4, &zero,
                     4));
    for (uint32_t i = 0; i <= MAX_PACKED_COPIES; i++) {
        struct tandem_gemm gemm = product(large);
        gemm.k = 4;
        gemm.b.byte_offset = i * N * 4;
        commands(gemm);
        ck_assert_uint_eq(commands(gemm), 2);
        ck_assert_uint_eq(commands(gemm), i < MAX_PACKED_COPIES ? 1 : 2);
    }
    ck_assert_uint_eq(copies(large), MAX_PACKED_COPIES);
}

TEST(parts_of_a_buffer_have_own_copies)
{
    float got[M * N];
    start(NULL, NULL, "1048576");
    /* Half of the rows of b from row `first` on, as stored and transposed. */
    for (uint32_t turn = 0; turn < 12; turn++) {
        struct tandem_gemm gemm = product(weights[0]);
        float a[M * K] = {0}, b[K * N] = {0};
        bool transposed = turn % 2 != 0;
        uint32_t first = turn % 3, depth = K / 2;
        gemm.k = depth;
        gemm.b.byte_offset = first * 4;
        gemm.flags = transposed ? TANDEM_GEMM_TRANSPOSE_B : 0;
        for (uint32_t i = 0; i < M * depth; i++)
            a[i / depth * K + i % depth] = left_host[i / depth * K + i % depth];
        for (uint32_t k = 0; k < depth; k++)
            for (uint32_t j = 0; j < N; j++)
                b[k * N + j] =
                    weight_host[0]
                               [first + (transposed ? j * N + k : k * N + j)];
        OK(backend->gemm(stream, &gemm));
        buffer_read(result, got, sizeof(got));
        result_check(got, a, b, "a part");
    }
    ck_assert_uint_eq(copies(weights[0]), 6);
}

/* A block has at least 512 bytes. */
TEST(copies_are_dropped_for_allocations)
{
    struct tandem_buffer *more[5];
    start("memory_limit_bytes", "5120", "1048576");
    for (uint32_t i = 0; i < WEIGHTS; i++)
        gemms_check(i, "kept");
    ck_assert_uint_eq(copies(weights[0]), 1);
    /* The caller allocates five blocks. */
    for (uint32_t i = 0; i < 5; i++)
        more[i] = buffer_new(512);
    for (uint32_t i = 0; i < WEIGHTS; i++)
        ck_assert_uint_eq(copies(weights[i]), 0);
    struct tandem_memory_stats stats = memory_stats();
    ck_assert_uint_le(stats.allocated_bytes + stats.cached_bytes, 5120);
    ck_assert_int_eq(backend->alloc(device, TANDEM_BYTES(512), &more[0]),
                     TANDEM_OUT_OF_MEMORY);
    backend->free(more[4]);
    gemms_check(0, "with room for a temporary");
    ck_assert_uint_eq(copies(weights[0]), 0);
}

/* The next copy is made after eight times as many uses. */
TEST(trim_drops_copies_for_a_while)
{
    start(NULL, NULL, "1048576");
    gemms_check(0, "before");
    OK(backend->trim(device, 0));
    ck_assert_uint_eq(memory_stats().cached_bytes, 0);
    ck_assert_uint_eq(copies(weights[0]), 0);
    for (uint32_t use = 1; use < 16; use++)
        ck_assert_uint_eq(commands(product(weights[0])), 2);
    ck_assert_uint_eq(copies(weights[0]), 0);
    gemms_check(0, "after trim");
    ck_assert_uint_eq(copies(weights[0]), 1);
}

/*
 * The limit also holds if a temporary block is needed while a GEMM uses a
 * copy, which cannot be dropped then.
 */
TEST(the_memory_limit_holds_while_a_copy_is_used)
{
    float got[M * N];
    start("memory_limit_bytes", "5120", "1048576");
    gemms_check(0, "kept");
    for (uint32_t i = 0; i < 4; i++)
        buffer_new(512);
    gemms_check(0, "without a temporary");
    /* a starts at its second element, so it is packed too. */
    struct tandem_gemm gemm = product(weights[0]);
    gemm.m = M - 1;
    gemm.a.byte_offset = 4;
    OK(backend->gemm(stream, &gemm));
    buffer_read(result, got, sizeof(got));
    for (uint32_t i = 0; i < (M - 1) * N; i++) {
        float sum = 0;
        for (uint32_t k = 0; k < K; k++)
            sum += left_host[i / N * K + k + 1] * weight_host[0][k * N + i % N];
        ck_assert_float_eq(got[i], sum);
    }
    ck_assert_uint_le(memory_stats().peak_bytes, 5120);
}

/* ---- two threads ---- */

#define ROUNDS 40

struct worker {
    pthread_barrier_t *barrier;
    struct tandem_stream *stream;
    struct tandem_buffer *c;
    float got[2][M * N];
    enum tandem_status status;
};

/* Multiplies by the weight between the other thread's writes. */
static void *worker_run(void *argument)
{
    struct worker *worker = argument;
    for (uint32_t round = 0; round < ROUNDS; round++) {
        pthread_barrier_wait(worker->barrier);
        for (uint32_t i = 0; i < 2; i++) {
            struct tandem_gemm gemm =
                gemm_of(M, N, K, left, weights[0], worker->c);
            if (worker->status == TANDEM_OK)
                worker->status = backend->gemm(worker->stream, &gemm);
            if (worker->status == TANDEM_OK)
                worker->status = backend->download(
                    worker->stream, worker->c, 0, worker->got[i],
                    sizeof(worker->got[i]), 0, TANDEM_TIMEOUT_INFINITE);
        }
        pthread_barrier_wait(worker->barrier);
    }
    return NULL;
}

TEST(threads_share_the_copies)
{
    pthread_barrier_t barrier;
    pthread_t threads[2];
    struct worker workers[2];
    start(NULL, NULL, "1048576");
    pthread_barrier_init(&barrier, NULL, 3);
    for (uint32_t i = 0; i < 2; i++) {
        workers[i] = (struct worker){.barrier = &barrier};
        workers[i].stream = stream_new();
        workers[i].c = buffer_new(M * N * 4);
        ck_assert_int_eq(
            pthread_create(&threads[i], NULL, worker_run, &workers[i]), 0);
    }
    for (uint32_t round = 0; round < ROUNDS; round++) {
        if (round % 4 == 0)
            write_upload();
        OK(backend->stream_synchronize(stream, TANDEM_TIMEOUT_INFINITE));
        pthread_barrier_wait(&barrier);
        pthread_barrier_wait(&barrier);
        for (uint32_t i = 0; i < 4; i++) {
            OK(workers[i / 2].status);
            result_check(workers[i / 2].got[i % 2], left_host, weight_host[0],
                         "a thread's");
        }
    }
    for (uint32_t i = 0; i < 2; i++) {
        pthread_join(threads[i], NULL);
        backend->stream_destroy(workers[i].stream);
    }
    pthread_barrier_destroy(&barrier);
}

TEST_MAIN(opencl_tests_run("packed copies", NULL, device_close))
