/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The pack cache: after any write to a weight, the next GEMM uses the new
 * content. Also tests the cache's limit, and memory that is needed for other
 * purposes. Uses a kernel that reads only vectors of four elements, and
 * weights with an odd row length.
 */
#include <config.h>

#include <check.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support/test_list.h"
#include "support.h"

/* c = a b. The rows of a are aligned, those of b are not. */
#define M 5
#define N 7
#define K 8
#define WEIGHTS 3
#define SIDE 256 /* Size of a GEMM that runs for a while. */

struct bench {
    struct tandem_device *device;
    struct tandem_stream *stream;
    struct tandem_buffer *a, *c, *b[WEIGHTS];
    float a_host[M * K], b_host[WEIGHTS][K * N];
};

static float number(uint32_t seed)
{
    return (float)((seed * 1664525u + 1013904223u) >> 16 & 63u) - 31;
}

static void bench_open(struct bench *out, const char *cap_key, const char *cap,
                       const char *packed)
{
    const char *keys[] = {"test.gemm_kernel", "pack_cache_limit_bytes",
                          cap_key};
    const char *values[] = {"simt-128x128", packed, cap};
    struct tandem_open_options options = {.struct_size = sizeof(options),
                                          .count = cap_key != NULL ? 3 : 2,
                                          .keys = keys,
                                          .values = values};
    expect_ok(backend->open(0, &options, &out->device), "open");
    expect_ok(backend->stream_create(out->device, 0, &out->stream), "stream");
    expect_ok(backend->alloc(out->device, sizeof(out->a_host), &out->a), "a");
    expect_ok(backend->alloc(out->device, M * N * 4, &out->c), "c");
    for (uint32_t i = 0; i < M * K; i++)
        out->a_host[i] = number(i);
    expect_ok(backend->upload(out->stream, out->a, 0, out->a_host,
                              sizeof(out->a_host), 0),
              "upload a");
    for (uint32_t w = 0; w < WEIGHTS; w++) {
        for (uint32_t i = 0; i < K * N; i++)
            out->b_host[w][i] = number(1000 * w + i);
        expect_ok(backend->alloc(out->device, K * N * 4, &out->b[w]), "b");
        expect_ok(backend->upload(out->stream, out->b[w], 0, out->b_host[w],
                                  K * N * 4, 0),
                  "upload b");
    }
}

static void bench_close(struct bench *bench)
{
    backend->stream_destroy(bench->stream);
    backend->close(bench->device);
}

static struct tandem_gemm gemm_of(struct tandem_buffer *a,
                                  struct tandem_buffer *b,
                                  struct tandem_buffer *c)
{
    return (struct tandem_gemm){.struct_size = sizeof(struct tandem_gemm),
                                .dtype = TANDEM_F32,
                                .m = M,
                                .n = N,
                                .k = K,
                                .batch = 1,
                                .alpha = 1,
                                .a = {a, 0, K, 0},
                                .b = {b, 0, N, 0},
                                .c = {c, 0, N, 0}};
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

/* Runs GEMMs with weight w until it is in the pack cache, and once more. */
static void gemms_check(struct bench *bench, uint32_t w, const char *what)
{
    float got[M * N];
    struct tandem_gemm gemm = gemm_of(bench->a, bench->b[w], bench->c);
    for (uint32_t turn = 0; turn < 3; turn++) {
        expect_ok(backend->gemm(bench->stream, &gemm), what);
        expect_ok(backend->download(bench->stream, bench->c, 0, got,
                                    sizeof(got), 0, TANDEM_TIMEOUT_INFINITE),
                  what);
        result_check(got, bench->a_host, bench->b_host[w], what);
    }
}

static uint64_t driver_alloc_count(struct bench *bench)
{
    struct tandem_memory_stats stats = {.struct_size = sizeof(stats)};
    expect_ok(backend->memory_stats(bench->device, &stats), "memory_stats");
    return stats.driver_alloc_count;
}

/* ---- operations that write a weight ---- */

static void write_upload(struct bench *bench)
{
    for (uint32_t i = 0; i < K * N; i++)
        bench->b_host[0][i] += 1;
    expect_ok(backend->upload(bench->stream, bench->b[0], 0, bench->b_host[0],
                              K * N * 4, 0),
              "upload");
}

static void write_part(struct bench *bench)
{
    bench->b_host[0][K * N - 1] += 3;
    expect_ok(backend->upload(bench->stream, bench->b[0], (K * N - 1) * 4,
                              &bench->b_host[0][K * N - 1], 4,
                              TANDEM_TRANSFER_ASYNC),
              "upload of a part");
}

static void write_copy(struct bench *bench)
{
    memcpy(bench->b_host[0], bench->b_host[1], K * N * 4);
    expect_ok(backend->copy(bench->stream, bench->b[0], 0, bench->b[1], 0,
                            K * N * 4),
              "copy");
}

static void write_fill(struct bench *bench)
{
    const float five = 5;
    for (uint32_t i = 0; i < N; i++)
        bench->b_host[0][i] = five;
    expect_ok(backend->fill(bench->stream, bench->b[0], 0, N * 4, &five, 4),
              "fill");
}

static struct tandem_tensor_desc weight_desc(struct tandem_buffer *buffer)
{
    return (struct tandem_tensor_desc){.buffer = buffer,
                                       .dtype = TANDEM_F32,
                                       .rank = 1,
                                       .shape = {K * N},
                                       .strides = {1}};
}

static void write_launch(struct bench *bench)
{
    struct tandem_tensor_desc weight = weight_desc(bench->b[0]);
    const struct tandem_tensor_desc *descs[1] = {&weight};
    struct tandem_op op = {.struct_size = sizeof(op), .id = TANDEM_OP_NEG};
    for (uint32_t i = 0; i < K * N; i++)
        bench->b_host[0][i] = -bench->b_host[0][i];
    expect_ok(backend->launch(bench->stream, &op, descs, 1, descs, 1),
              "launch");
}

static void write_gemm(struct bench *bench)
{
    struct tandem_gemm gemm = gemm_of(bench->a, bench->b[1], bench->b[0]);
    for (uint32_t i = 0; i < M * N; i++) {
        float sum = 0;
        for (uint32_t k = 0; k < K; k++)
            sum += bench->a_host[i / N * K + k] *
                   bench->b_host[1][k * N + i % N];
        bench->b_host[0][i] = sum;
    }
    expect_ok(backend->gemm(bench->stream, &gemm), "gemm");
}

static void write_map(struct bench *bench)
{
    void *memory;
    expect_ok(backend->map(bench->stream, bench->b[0], 0, K * N * 4,
                           TANDEM_MAP_READ | TANDEM_MAP_WRITE,
                           TANDEM_TIMEOUT_INFINITE, &memory),
              "map");
    bench->b_host[0][1] += 7;
    memcpy(memory, bench->b_host[0], K * N * 4);
    expect_ok(backend->unmap(bench->stream, bench->b[0], memory), "unmap");
}

/* The new buffer gets the block of the freed one. */
static void write_new_buffer(struct bench *bench)
{
    backend->free(bench->b[0]);
    expect_ok(backend->alloc(bench->device, K * N * 4, &bench->b[0]), "alloc");
    write_upload(bench);
}

static const struct {
    void (*write)(struct bench *bench);
    const char *name;
} writes[] = {
    {write_upload, "upload"}, {write_part, "upload of a part"},
    {write_copy, "copy"},     {write_fill, "fill"},
    {write_launch, "launch"}, {write_gemm, "gemm"},
    {write_map, "map"},       {write_new_buffer, "freed and allocated"}};

TEST(every_write_invalidates_the_entry)
{
    struct bench bench;
    bench_open(&bench, NULL, NULL, "1048576");
    for (uint32_t turn = 0; turn < 2; turn++)
        for (uint32_t i = 0; i < sizeof(writes) / sizeof(writes[0]); i++) {
            gemms_check(&bench, 0, "before");
            writes[i].write(&bench);
            gemms_check(&bench, 0, writes[i].name);
        }
    bench_close(&bench);
}

/* Enqueues long work and then a write of b. */
static void write_after_long_work(struct bench *bench,
                                  struct tandem_stream *stream,
                                  struct tandem_buffer *memory)
{
    const float five = 5;
    const uint64_t third = SIDE * SIDE * 4;
    struct tandem_gemm slow = {.struct_size = sizeof(slow),
                               .dtype = TANDEM_F32,
                               .m = SIDE,
                               .n = SIDE,
                               .k = SIDE,
                               .batch = 1,
                               .alpha = 1,
                               .a = {memory, 0, SIDE, 0},
                               .b = {memory, third, SIDE, 0},
                               .c = {memory, 2 * third, SIDE, 0}};
    for (uint32_t i = 0; i < 4; i++)
        expect_ok(backend->gemm(stream, &slow), "slow");
    for (uint32_t i = 0; i < K * N; i++)
        bench->b_host[0][i] = five;
    expect_ok(backend->fill(stream, bench->b[0], 0, K * N * 4, &five, 4),
              "fill");
}

/*
 * A GEMM that does not wait for another stream's write uses the old content,
 * but does not cache it.
 */
TEST(writes_of_another_stream_are_waited_for)
{
    struct bench bench;
    struct tandem_stream *stream;
    struct tandem_buffer *memory;
    const float zero = 0;
    bench_open(&bench, NULL, NULL, "1048576");
    struct tandem_gemm gemm = gemm_of(bench.a, bench.b[0], bench.c);
    expect_ok(backend->stream_create(bench.device, 0, &stream), "stream");
    expect_ok(backend->alloc(bench.device, 3 * SIDE * SIDE * 4, &memory),
              "alloc");
    expect_ok(backend->fill(stream, memory, 0, 3 * SIDE * SIDE * 4, &zero, 4),
              "fill");
    gemms_check(&bench, 0, "before");
    write_after_long_work(&bench, stream, memory);
    for (uint32_t turn = 0; turn < 3; turn++)
        expect_ok(backend->gemm(bench.stream, &gemm), "gemm");
    expect_ok(backend->stream_synchronize(stream, TANDEM_TIMEOUT_INFINITE),
              "wait");
    expect_ok(
        backend->stream_synchronize(bench.stream, TANDEM_TIMEOUT_INFINITE),
        "wait");
    gemms_check(&bench, 0, "after");
    backend->free(memory);
    backend->stream_destroy(stream);
    bench_close(&bench);
}

/*
 * Returns the number of blocks allocated for the pack cache. A temporary block
 * becomes a cache entry, so the next temporary is another block unless an
 * entry is evicted.
 */
static uint64_t pack_cache_blocks(const char *packed)
{
    struct bench bench;
    uint64_t made[2];
    bench_open(&bench, NULL, NULL, packed);
    for (uint32_t turn = 0; turn < 2; turn++) {
        gemms_check(&bench, 0, "first");
        made[turn] = driver_alloc_count(&bench);
        for (uint32_t i = 0; i < 2 * WEIGHTS; i++)
            gemms_check(&bench, i % WEIGHTS, "a weight");
        made[turn] = driver_alloc_count(&bench) - made[turn];
    }
    ck_assert_uint_eq(made[1], 0);
    bench_close(&bench);
    return made[0];
}

TEST(pack_cache_limit_is_kept)
{
    ck_assert_uint_eq(pack_cache_blocks("0"), 0);
    ck_assert_uint_eq(pack_cache_blocks("255"), 0);
    ck_assert_uint_eq(pack_cache_blocks("256"), 1);
    ck_assert_uint_eq(pack_cache_blocks("1048576"), 2);
}

TEST(parts_of_a_buffer_have_own_entries)
{
    struct bench bench;
    float got[M * N];
    bench_open(&bench, NULL, NULL, "1048576");
    /*
     * Half of the rows of b from a given row on, both as stored and
     * transposed.
     */
    for (uint32_t turn = 0; turn < 12; turn++) {
        struct tandem_gemm gemm = gemm_of(bench.a, bench.b[0], bench.c);
        float a[M * K] = {0}, b[K * N] = {0};
        bool transposed = turn % 2 != 0;
        uint32_t first = turn % 3, depth = K / 2;
        gemm.k = depth;
        gemm.b.byte_offset = first * 4;
        gemm.flags = transposed ? TANDEM_GEMM_TRANSPOSE_B : 0;
        for (uint32_t i = 0; i < M * depth; i++)
            a[i / depth * K + i % depth] =
                bench.a_host[i / depth * K + i % depth];
        for (uint32_t k = 0; k < depth; k++)
            for (uint32_t j = 0; j < N; j++)
                b[k * N + j] =
                    bench.b_host[0]
                                [first + (transposed ? j * N + k : k * N + j)];
        expect_ok(backend->gemm(bench.stream, &gemm), "gemm");
        expect_ok(backend->download(bench.stream, bench.c, 0, got, sizeof(got),
                                    0, TANDEM_TIMEOUT_INFINITE),
                  "download");
        result_check(got, a, b, "a part");
    }
    bench_close(&bench);
}

/* A block has at least 512 bytes. */
TEST(entries_are_evicted_for_allocations)
{
    struct bench bench;
    struct tandem_buffer *more[5];
    bench_open(&bench, "memory_limit_bytes", "5120", "1048576");
    for (uint32_t i = 0; i < WEIGHTS; i++)
        gemms_check(&bench, i, "kept");
    /* The caller allocates five blocks. */
    for (uint32_t i = 0; i < 5; i++)
        expect_ok(backend->alloc(bench.device, 512, &more[i]), "alloc");
    struct tandem_memory_stats stats = {.struct_size = sizeof(stats)};
    expect_ok(backend->memory_stats(bench.device, &stats), "memory_stats");
    ck_assert_uint_le(stats.allocated_bytes + stats.cached_bytes, 5120);
    ck_assert_int_eq(backend->alloc(bench.device, 512, &more[0]),
                     TANDEM_OUT_OF_MEMORY);
    backend->free(more[4]);
    gemms_check(&bench, 0, "with room for a temporary");
    expect_ok(backend->trim(bench.device, 0), "trim");
    expect_ok(backend->memory_stats(bench.device, &stats), "memory_stats");
    ck_assert_uint_eq(stats.cached_bytes, 0);
    gemms_check(&bench, 0, "after trim");
    bench_close(&bench);
}

/*
 * The limit also holds if a temporary block is needed while a GEMM uses a
 * cache entry, which cannot be evicted then.
 */
TEST(the_memory_limit_holds_while_an_entry_is_used)
{
    struct bench bench;
    struct tandem_buffer *more;
    float got[M * N];
    struct tandem_memory_stats stats = {.struct_size = sizeof(stats)};
    bench_open(&bench, "memory_limit_bytes", "5120", "1048576");
    gemms_check(&bench, 0, "kept");
    for (uint32_t i = 0; i < 4; i++)
        expect_ok(backend->alloc(bench.device, 512, &more), "alloc");
    gemms_check(&bench, 0, "without a temporary");
    /* a starts at its second element, so it is packed too. */
    struct tandem_gemm gemm = gemm_of(bench.a, bench.b[0], bench.c);
    gemm.m = M - 1;
    gemm.a.byte_offset = 4;
    expect_ok(backend->gemm(bench.stream, &gemm), "gemm");
    expect_ok(backend->download(bench.stream, bench.c, 0, got, sizeof(got), 0,
                                TANDEM_TIMEOUT_INFINITE),
              "download");
    for (uint32_t i = 0; i < (M - 1) * N; i++) {
        float sum = 0;
        for (uint32_t k = 0; k < K; k++)
            sum += bench.a_host[i / N * K + k + 1] *
                   bench.b_host[0][k * N + i % N];
        ck_assert_float_eq(got[i], sum);
    }
    expect_ok(backend->memory_stats(bench.device, &stats), "memory_stats");
    ck_assert_uint_le(stats.peak_bytes, 5120);
    bench_close(&bench);
}

/* ---- two threads ---- */

#define ROUNDS 40

struct worker {
    struct bench *bench;
    pthread_barrier_t *barrier;
    struct tandem_stream *stream;
    struct tandem_buffer *c;
    float got[2][M * N];
    enum tandem_status status;
};

/*
 * Multiplies by the same weight on its own stream, between the other thread's
 * writes.
 */
static void *worker_run(void *argument)
{
    struct worker *worker = argument;
    struct bench *bench = worker->bench;
    for (uint32_t round = 0; round < ROUNDS; round++) {
        pthread_barrier_wait(worker->barrier);
        for (uint32_t i = 0; i < 2; i++) {
            struct tandem_gemm gemm = gemm_of(bench->a, bench->b[0], worker->c);
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

TEST(threads_share_the_pack_cache)
{
    struct bench bench;
    pthread_barrier_t barrier;
    pthread_t threads[2];
    struct worker workers[2];
    bench_open(&bench, NULL, NULL, "1048576");
    pthread_barrier_init(&barrier, NULL, 3);
    for (uint32_t i = 0; i < 2; i++) {
        workers[i] = (struct worker){.bench = &bench, .barrier = &barrier};
        expect_ok(backend->stream_create(bench.device, 0, &workers[i].stream),
                  "stream");
        expect_ok(backend->alloc(bench.device, M * N * 4, &workers[i].c), "c");
        ck_assert_int_eq(
            pthread_create(&threads[i], NULL, worker_run, &workers[i]), 0);
    }
    for (uint32_t round = 0; round < ROUNDS; round++) {
        if (round % 4 == 0)
            write_upload(&bench);
        expect_ok(backend->synchronize(bench.device, TANDEM_TIMEOUT_INFINITE),
                  "wait");
        pthread_barrier_wait(&barrier);
        pthread_barrier_wait(&barrier);
        for (uint32_t i = 0; i < 4; i++) {
            expect_ok(workers[i / 2].status, "a thread's");
            result_check(workers[i / 2].got[i % 2], bench.a_host,
                         bench.b_host[0], "a thread's");
        }
    }
    for (uint32_t i = 0; i < 2; i++) {
        pthread_join(threads[i], NULL);
        backend->stream_destroy(workers[i].stream);
    }
    pthread_barrier_destroy(&barrier);
    bench_close(&bench);
}

int main(void)
{
    return opencl_tests_run("pack-cache", NULL, NULL);
}
