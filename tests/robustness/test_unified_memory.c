/* SPDX-License-Identifier: Apache-2.0 */
/*
 * libtandem with a GPU that shares the host's memory. The layer makes OpenCL
 * on a CPU report such a device. Tensors that the GPU and the CPU plugin both
 * use occupy one memory if the driver really shares it.
 */
#include <config.h>

#include <stdlib.h>

#include "unit/host/support.h"
#include "plugin_under_layer.h"

/*
 * The number of elements of a shared tensor: large enough to be shared, and
 * not whole pages.
 */
#define SHARED ((1 << 19) + 1076)
#define SHARED_BYTES (SHARED * sizeof(float))
/* The device is read by this many bytes to find out if its work has failed. */
#define ERROR_QUERY_BYTES 1u

static struct plug plug;
static float x[SHARED];

static void layer_setup(void)
{
    plug_layer(&plug);
}

static void gpu_setup(void)
{
    unsetenv("TANDEM_LAYER_NONCOHERENT_IMPORT");
    setenv("TANDEM_LAYER_GPU", "1", 1);
}

struct pair {
    struct tandem_context *context;
    uint32_t cpu, gpu;
};

static struct pair pair_new(void)
{
    const struct tandem_context_options options = {.log_level =
                                                       TANDEM_LOG_DEBUG};
    struct pair pair;

    pair.context = context_new(&options);
    OK(tandem_device_find(pair.context, "opencl", &pair.gpu));
    OK(tandem_device_find(pair.context, "cpu", &pair.cpu));
    return pair;
}

/* Computes to = -from. */
static void negate(const struct pair *pair, uint32_t device,
                   struct tandem_tensor *from, struct tandem_tensor *to)
{
    unary_on(pair->context, device, TANDEM_OP_NEG, from, to);
}

static void numbers_write(struct tandem_tensor *tensor, float first)
{
    for (int64_t i = 0; i < SHARED; i++)
        x[i] = first + (float)(i % 4093);
    OK(tandem_tensor_write(tensor, x, SHARED_BYTES));
}

static void numbers_check(const float *data, float first, float sign)
{
    for (int64_t i = 0; i < SHARED; i++) {
        const float want = sign * (first + (float)(i % 4093));

        if (data[i] != want)
            ck_abort_msg("element %lld is %g, not %g", (long long)i,
                         (double)data[i], (double)want);
    }
}

static void content_check(struct tandem_tensor *tensor, float first, float sign)
{
    const void *data;

    OK(tandem_tensor_host_data(tensor, TANDEM_TIMEOUT_INFINITE, &data));
    numbers_check(data, first, sign);
}

static uint64_t bytes_moved(void)
{
    struct layer_counts counts;

    counts = plug_counts(&plug);
    return counts.bytes;
}

/*
 * In each round the device negates, the CPU negates back, and the host reads
 * and writes. Returns the largest number of bytes moved in a round after the
 * first.
 */
static uint64_t rounds_moved_bytes(const struct pair *pair, int rounds)
{
    struct tandem_tensor *a = vector_new(pair->context, SHARED);
    struct tandem_tensor *b = vector_new(pair->context, SHARED);
    uint64_t most = 0;

    for (int i = 0; i < rounds; i++) {
        const uint64_t before = bytes_moved();
        uint64_t moved;

        numbers_write(a, (float)i);
        negate(pair, pair->gpu, a, b);
        content_check(b, (float)i, -1);
        negate(pair, pair->cpu, b, a);
        negate(pair, pair->gpu, a, b);
        negate(pair, pair->gpu, b, a);
        negate(pair, pair->cpu, a, b);
        content_check(b, (float)i, -1);
        content_check(a, (float)i, 1);
        moved = bytes_moved() - before;
        if (i > 0 && moved > most)
            most = moved;
    }
    tandem_tensor_destroy(a);
    tandem_tensor_destroy(b);
    return most;
}

TEST(test_tensors_of_both_devices_are_not_copied)
{
    const struct pair pair = pair_new();

    ck_assert_uint_le(rounds_moved_bytes(&pair, 6), 4 * ERROR_QUERY_BYTES);
    expect_warnings(log_count(TANDEM_LOG_WARNING, "not calibrated: "), NULL);
}

TEST(test_memory_that_is_not_shared_is_copied)
{
    struct pair pair;

    setenv("TANDEM_LAYER_NONCOHERENT_IMPORT", "1", 1);
    pair = pair_new();
    ck_assert_uint_ge(rounds_moved_bytes(&pair, 6), 2 * SHARED_BYTES);
    rounds_moved_bytes(&pair, 2);
    expect_warnings(1, "tensors are copied");
    expect_warnings(1 + log_count(TANDEM_LOG_WARNING, "not calibrated: "),
                    NULL);
}

/* The round trip is checked with kernels, too. */
TEST(test_a_round_trip_that_fails_means_copies)
{
    const struct layer_script script = {
        .fault = LAYER_FAULT_CALL,
        .function = "clEnqueueNDRangeKernel",
        .nth = 1,
        .times = 1,
        .code = -59, /* CL_INVALID_OPERATION */
    };
    const struct pair pair = pair_new();
    struct layer_counts counts;
    uint64_t moved;

    plug.script_set(&script);
    moved = rounds_moved_bytes(&pair, 3);
    counts = plug_counts(&plug);
    plug.script_set(NULL);
    ck_assert_uint_eq(counts.faults, 1);
    ck_assert_uint_ge(moved, 2 * SHARED_BYTES);
    expect_warnings(1, "tensors are copied");
}

/*
 * The device computes in place on whole pages of the caller's memory. Partial
 * pages and small tensors are copied.
 */
TEST(test_pages_of_the_caller_are_used_in_place)
{
    const struct pair pair = pair_new();
    const int64_t elements = SHARED_BYTES / 4096 * 1024;
    float *pages = aligned_alloc(4096, 3 * SHARED_BYTES / 4096 * 4096);
    const int64_t counts[] = {elements, elements, 1024};
    const int64_t skews[] = {0, 1, 0};

    ck_assert_ptr_nonnull(pages);
    for (int kind = 0; kind < 3; kind++) {
        float *from = pages + skews[kind], *to = from + elements;
        struct tandem_tensor *a = vector_wrap(pair.context, from, counts[kind]);
        struct tandem_tensor *b = vector_wrap(pair.context, to, counts[kind]);
        const uint64_t before = bytes_moved();
        uint64_t moved;

        count_up(from, counts[kind]);
        negate(&pair, pair.gpu, a, b);
        OK(tandem_tensor_sync(b, TANDEM_TIMEOUT_INFINITE));
        for (int64_t i = 0; i < counts[kind]; i++) {
            if (to[i] != -(float)(i + 1))
                ck_abort_msg("kind %d: element %lld is %g", kind, (long long)i,
                             (double)to[i]);
        }
        moved = bytes_moved() - before;
        if (kind == 0)
            ck_assert_uint_lt(moved,
                              65536); /* Bytes of the round-trip check. */
        else
            ck_assert_uint_ge(moved, 2 * 4 * (uint64_t)counts[kind]);
        tandem_tensor_destroy(a);
        tandem_tensor_destroy(b);
    }
    free(pages);
}

/*
 * Neither the host nor the CPU's operators may write to memory that the device
 * may still read, and memory that the device may still use is not freed.
 */
TEST(test_memory_in_use_is_not_written_or_freed)
{
    const struct pair pair = pair_new();

    for (int i = 0; i < 20; i++) {
        struct tandem_tensor *a = vector_new(pair.context, SHARED);
        struct tandem_tensor *b = vector_new(pair.context, SHARED);
        struct tandem_tensor *c = vector_new(pair.context, SHARED);

        numbers_write(a, 1);
        numbers_write(b, 2);
        negate(&pair, pair.gpu, a, c);
        negate(&pair, pair.gpu, a, c);
        if (i % 2 == 0)
            numbers_write(a, 3);
        else
            negate(&pair, pair.cpu, b, a);
        content_check(c, 1, -1);
        negate(&pair, pair.gpu, c, b);
        negate(&pair, pair.gpu, b, a);
        if (i % 4 < 2)
            content_check(a, 1, -1);
        tandem_tensor_destroy(a);
        tandem_tensor_destroy(b);
        tandem_tensor_destroy(c);
    }
    OK(tandem_context_synchronize(pair.context, TANDEM_TIMEOUT_INFINITE));
}

TEST(test_a_shared_tensor_is_everywhere_and_costs_no_transfer)
{
    const struct pair pair = pair_new();
    struct tandem_tensor *a = vector_new(pair.context, SHARED);
    struct tandem_tensor *b = vector_new(pair.context, SHARED);
    struct tandem_explanation out;
    const uint32_t all = TANDEM_RESIDENT_HOST | 1u << pair.cpu | 1u << pair.gpu;

    numbers_write(a, 1);
    negate(&pair, pair.gpu, a, b);
    out = last_explanation(pair.context);
    for (uint32_t i = 0; i < out.candidate_count; i++)
        ck_assert_double_eq(out.candidates[i].transfer_ns, 0);
    ck_assert_uint_eq(residency(a), all);
    /* The tensor has no host memory; its only copy is on the device. */
    ck_assert_uint_eq(residency(b), 1u << pair.gpu);
    content_check(b, 1, -1);
    negate(&pair, pair.gpu, a, b);
    ck_assert_uint_eq(residency(b), all);
}

/* A constant is shared like other tensors, and not written. */
TEST(test_a_constant_is_shared)
{
    const struct pair pair = pair_new();
    struct tandem_tensor *a = vector_new(pair.context, SHARED);
    struct tandem_tensor *b = vector_new(pair.context, SHARED);
    const uint32_t all = TANDEM_RESIDENT_HOST | 1u << pair.cpu | 1u << pair.gpu;

    numbers_write(a, 1);
    OK(tandem_tensor_set_constant(a));
    negate(&pair, pair.gpu, a, b);
    ck_assert_uint_eq(residency(a), all);
    content_check(b, 1, -1);
    negate(&pair, pair.cpu, a, b);
    content_check(b, 1, -1);
    BAD(unary_status(pair.context, pair.gpu, TANDEM_OP_NEG, b, a));
    content_check(a, 1, 1);
}

int main(void)
{
    TCase *tests = opencl_case_new("unified");

    tcase_add_unchecked_fixture(tests, layer_setup, NULL);
    tcase_add_checked_fixture(tests, gpu_setup, NULL);
    tests_add(tests);
    return runner_run_case("unified", tests);
}
