/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Parts of tandem-bench: the rows of the list, the operands of GEMMs, and the
 * check of results.
 */
#include <config.h>

#include "../../../tools/bench/gemm_case.h"

#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../../support/test_list.h"
#ifdef BENCH_OPENCL
#include "../../../tools/bench/opencl_device_match.h"
#endif

#define M 40
#define N 50
#define K 60

TEST(details_are_words)
{
    const struct row row = {.detail = "bias+relu"};
    const struct row other = {.detail = "bf16"};

    ck_assert(row_has(&row, "bias"));
    ck_assert(row_has(&row, "relu"));
    ck_assert(!row_has(&row, "rel"));
    ck_assert(!row_has(&row, "ta"));
    ck_assert(row_has(&other, "bf16"));
    ck_assert(!row_has(&other, "f16"));
}

TEST(rows_have_names_and_fit_the_scale)
{
    struct list list = {.scale = SCALE_TINY, .suite = "gemm"};

    list_add(&list, "gemm", "64x64x64", "ta+tb", "stream");
    list_add(&list, "add", "16384", "", "host");
    list_add(&list, "add", "16385", "", "host");
    list_add(&list, "gemm", "200x200x200", "", "stream");
    list_add(&list, "transfer", "4096", "pinned", "upload");
    ck_assert_uint_eq(list.count, 3);
    ck_assert_uint_eq(list.skipped_rows, 2);
    ck_assert_str_eq(list.rows[0].name, "gemm 64x64x64, ta+tb");
    ck_assert_str_eq(list.rows[1].name, "add 16384, host");
    ck_assert_str_eq(list.rows[2].name, "transfer 4 KiB, pinned, upload");
    list_destroy(&list);
}

TEST(memory_and_choice_bound_the_list)
{
    const struct tandem_device_info info = {.memory_bytes = UINT64_C(1) << 32,
                                            .max_alloc_bytes = UINT64_C(1)
                                                               << 30};
    struct list list = {.scale = SCALE_FULL, .chosen = true};

    ck_assert_double_eq(list_fitting_elements(&list), 0x1p28);
    list.device = &info;
    ck_assert_double_eq(list_fitting_elements(&list), 0x1p26);
    list_add(&list, "add", "10", "", "stream");
    list_add(&list, "add", "10", "", "host");
    ck_assert_uint_eq(list.count, 1);
    list_destroy(&list);
}

/* pytorch_baseline.py must create these values; see check-bench. */
TEST(operands_are_stable)
{
    struct gemm_case p = {.dtype = TANDEM_F32};

    ck_assert_float_eq(gemm_case_value(&p, 'a', 0), 7407119 * 0x1p-23f);
    ck_assert_float_eq(gemm_case_value(&p, 'b', 1000003), -229484 * 0x1p-23f);
    ck_assert_float_eq(gemm_case_value(&p, '+', 2000006), -291850 * 0x1p-23f);
    p.dtype = TANDEM_BF16;
    ck_assert_float_eq(gemm_case_value(&p, 'a', 7), -3 / 128.0f);
}

/* Returns an element of an operand of this kind, divided by its base value. */
static float scale_at(enum inputs kind, char operand, int row, int column)
{
    struct gemm_case p = {.dtype = TANDEM_F32,
                          .gemm = {.m = M, .n = N, .k = K, .batch = 2}};
    uint64_t index = (uint64_t)(row * (operand == 'a' ? K : N) + column);
    float alike = gemm_case_value(&p, operand, index);

    p.inputs = kind;
    return gemm_case_value(&p, operand, index) / alike;
}

TEST(scaled_operands_have_their_scale)
{
    bool differs = false;

    for (int i = 1; i < M; i++) {
        float rows = scale_at(ROWSCALE, 'a', i, 0);
        float columns = scale_at(COLUMNSCALE, 'b', 0, i);
        float depths = scale_at(DEPTHSCALE, 'a', 0, i);

        differs |= rows != scale_at(ROWSCALE, 'a', i - 1, 0);
        ck_assert(rows >= 0x1p-10f && rows <= 0x1p10f);
        ck_assert_float_eq(scale_at(ROWSCALE, 'a', i, 7), rows);
        /* The same in the second batch. */
        ck_assert_float_eq(scale_at(ROWSCALE, 'a', M + i, 7), rows);
        ck_assert_float_eq(scale_at(ROWSCALE, 'b', i, 7), 1);
        ck_assert_float_eq(scale_at(COLUMNSCALE, 'b', 9, i), columns);
        ck_assert_float_eq(scale_at(COLUMNSCALE, 'a', 9, i), 1);
        ck_assert_float_eq(scale_at(DEPTHSCALE, 'a', 9, i), depths);
        ck_assert_float_eq(scale_at(DEPTHSCALE, 'b', i, 9), 1 / depths);
    }
    ck_assert(differs);
    ck_assert_float_eq(scale_at(EXTREME, 'a', 3, 3), 1e25f);
    ck_assert(fabsf(scale_at(EXTREME, 'b', 3, 3) / 1e-25f - 1) < 1e-6f);
    ck_assert_float_eq(scale_at(EXTREME, '+', 0, 3), 1);
}

static float a[M * K], b[K * N], bias[N], c[M * N];

/* Computes a GEMM by definition, with bias and relu. */
static void gemm_case_compute(struct gemm_case *p, bool transposed)
{
    memset(p, 0, sizeof *p);
    p->dtype = TANDEM_F32;
    p->gemm.m = M;
    p->gemm.n = N;
    p->gemm.k = K;
    p->gemm.batch = 1;
    p->bias = p->relu = true;
    p->a = a;
    p->b = b;
    p->bias_values = bias;
    if (transposed)
        p->gemm.flags = TANDEM_GEMM_TRANSPOSE_A | TANDEM_GEMM_TRANSPOSE_B;
    for (uint64_t i = 0; i < M * K; i++)
        a[i] = gemm_case_value(p, 'a', i);
    for (uint64_t i = 0; i < K * N; i++)
        b[i] = gemm_case_value(p, 'b', i);
    for (uint64_t i = 0; i < N; i++)
        bias[i] = gemm_case_value(p, '+', i);
    for (int i = 0; i < M; i++)
        for (int j = 0; j < N; j++) {
            double sum = (double)bias[j];

            for (int q = 0; q < K; q++)
                sum += (double)(transposed ? a[q * M + i] : a[i * K + q]) *
                       (double)(transposed ? b[j * K + q] : b[q * N + j]);
            c[i * N + j] = sum > 0 ? (float)sum : 0;
        }
}

static void errors_compute(const struct sampled_entries *samples,
                           double *out_componentwise, double *out_max_relative)
{
    float rows[SAMPLE_SIDE * N];

    for (uint32_t i = 0; i < samples->row_count; i++)
        memcpy(rows + i * N, c + samples->rows[i] * N, N * sizeof *c);
    gemm_reference_errors(samples, rows, N, out_componentwise,
                          out_max_relative);
}

LOOP_TEST(correct_results_have_small_errors, 2)
{
    struct gemm_case p;
    struct sampled_entries samples;
    double componentwise, max_relative;

    gemm_case_compute(&p, _i == 1);
    samples_fill(&p, &samples);
    ck_assert_uint_eq(samples.row_count, SAMPLE_SIDE);
    ck_assert_uint_eq(samples.column_count, SAMPLE_SIDE);
    errors_compute(&samples, &componentwise, &max_relative);
    ck_assert_double_lt(componentwise, 1e-7);
    ck_assert_double_lt(max_relative, 1e-7);
}

TEST(one_wrong_element_is_detected)
{
    struct gemm_case p;
    struct sampled_entries samples;
    double componentwise, max_relative;
    float *entry;

    gemm_case_compute(&p, false);
    samples_fill(&p, &samples);
    entry = &c[samples.rows[3] * N + samples.columns[5]];
    *entry += 1;
    errors_compute(&samples, &componentwise, &max_relative);
    ck_assert_double_gt(componentwise, 0.01);
    ck_assert_double_gt(max_relative, 0.01);
    *entry = NAN;
    errors_compute(&samples, &componentwise, &max_relative);
    ck_assert(isinf(componentwise) && isinf(max_relative));
}

/* Simulated device memory for the operands. */
static unsigned char device_memory[4 * 256];

static enum tandem_status upload(struct tandem_stream *stream,
                                 struct tandem_buffer *buffer, uint64_t offset,
                                 const void *source, uint64_t bytes,
                                 uint32_t flags)
{
    (void)stream;
    (void)buffer;
    (void)flags;
    ck_assert_uint_le(offset + bytes, sizeof device_memory);
    memcpy(device_memory + offset, source, bytes);
    return TANDEM_OK;
}

static enum tandem_status download(struct tandem_stream *stream,
                                   struct tandem_buffer *buffer,
                                   uint64_t offset, void *target,
                                   uint64_t bytes, uint32_t flags,
                                   uint64_t timeout_ns)
{
    (void)stream;
    (void)buffer;
    (void)flags;
    (void)timeout_ns;
    ck_assert_uint_le(offset + bytes, sizeof device_memory);
    memcpy(target, device_memory + offset, bytes);
    return TANDEM_OK;
}

LOOP_TEST(operands_are_uploaded_unchanged, 3)
{
    static const uint32_t dtypes[] = {TANDEM_F32, TANDEM_F16, TANDEM_BF16};
    /* The values -1, 1/2 and 1/128. */
    static const uint16_t bits[][3] = {
        {0, 0, 0}, {0xbc00, 0x3800, 0x2000}, {0xbf80, 0x3f00, 0x3c00}};
    const struct tandem_backend backend = {.upload = upload,
                                           .download = download};
    struct bench bench = {.session = {.backend = &backend}};
    struct gemm_case p = {.bench = &bench, .dtype = dtypes[_i]};
    float values[256], row[64];
    uint16_t stored;

    p.gemm.n = 64;
    for (int i = 0; i < 256; i++)
        values[i] = (float)(i - 128) / 128;
    ck_assert_int_eq(operand_upload(&p, NULL, values, 256), TANDEM_OK);
    for (int64_t i = 0; i < 4; i++) {
        ck_assert(operand_row(&p, NULL, i, row));
        for (int j = 0; j < 64; j++)
            ck_assert_float_eq(row[j], values[64 * i + j]);
    }
    for (int i = 0; i < 3 && _i > 0; i++) {
        static const int at[] = {0, 192, 129};

        memcpy(&stored, device_memory + 2 * at[i], sizeof stored);
        ck_assert_uint_eq(stored, bits[_i][i]);
    }
}

#ifdef BENCH_OPENCL
/* Creates a directory that registers PoCL twice. */
static void vendors_make(char *directory)
{
    static const char pocl[] = "/etc/OpenCL/vendors/pocl.icd";

    ck_assert_ptr_nonnull(mkdtemp(directory));
    for (int i = 0; i < 2; i++) {
        char path[PATH_MAX];

        snprintf(path, sizeof path, "%s/%d.icd", directory, i);
        ck_assert_int_eq(symlink(pocl, path), 0);
    }
}

static void vendors_remove(const char *directory)
{
    for (int i = 0; i < 2; i++) {
        char path[PATH_MAX];

        snprintf(path, sizeof path, "%s/%d.icd", directory, i);
        unlink(path);
    }
    rmdir(directory);
}

/*
 * POCL_DEVICES makes PoCL list the CPU as two devices. Two .icd files make the
 * loader return PoCL's platform twice, which must add no device.
 */
TEST(equal_devices_are_distinguished)
{
    struct tandem_context *context;
    struct tandem_device_info infos[2] = {{.struct_size = sizeof *infos},
                                          {.struct_size = sizeof *infos}};
    uint32_t devices[2], third;
    cl_device_id found[2];
    char plugins[PATH_MAX], vendors[] = "bench-vendors-XXXXXX";

    vendors_make(vendors);
    setenv("OCL_ICD_VENDORS", vendors, 1);
    setenv("POCL_DEVICES", "pthread pthread", 1);
    ck_assert_ptr_nonnull(realpath(".libs", plugins));
    setenv("TANDEM_PLUGIN_PATH", plugins, 1);
    ck_assert_int_eq(tandem_context_create(NULL, &context), TANDEM_OK);
    if (tandem_device_find(context, "opencl", &devices[0]) != TANDEM_OK ||
        tandem_device_find(context, "opencl:1", &devices[1]) != TANDEM_OK) {
        tandem_context_destroy(context);
        vendors_remove(vendors);
        return;
    }
    ck_assert_int_eq(tandem_device_find(context, "opencl:2", &third),
                     TANDEM_NO_DEVICE);
    for (int i = 0; i < 2; i++) {
        tandem_device_describe(context, devices[i], &infos[i]);
        found[i] = reference_find(infos[i].platform, infos[i].name,
                                  reference_equals(context, devices[i]));
        ck_assert_ptr_nonnull(found[i]);
    }
    ck_assert_ptr_ne(found[0], found[1]);
    ck_assert_ptr_null(reference_find(infos[0].platform, infos[0].name, 2));
    tandem_context_destroy(context);
    vendors_remove(vendors);
}
#endif

TEST_MAIN(tests_run("bench"))
