/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Usage: samples all|few SEED|KEY
 *
 * Builds kernel variants for the first OpenCL device and runs the warm-up call
 * of each, as the plugin does before a variant's first use: all variants that
 * run without NVIDIA's instructions, or one of each kernel and access pattern,
 * or the one with this hexadecimal key. A tool that observes the device can
 * check which memory the calls access.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../../offline/variants.h"
#include "opencl/plan/tensor_core_packing.h"
#include "opencl/program/variant_options.h"
#include "opencl/program/warmup_launch.h"
#include "support/case_summary.h"

struct bench {
    cl_context context;
    cl_device_id device;
    /*
     * The device for which plans are made, and the one for which kernels are
     * compiled. NVIDIA devices have the longest cached rows.
     */
    struct platform_device planned, compiled;
};

static bool bench_open(struct bench *bench)
{
    cl_platform_id platform;
    cl_int code = clGetPlatformIDs(1, &platform, NULL);
    memset(bench, 0, sizeof(*bench));
    if (code == CL_SUCCESS)
        code = clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, 1, &bench->device,
                              NULL);
    if (code == CL_SUCCESS)
        bench->context =
            clCreateContext(NULL, 1, &bench->device, NULL, NULL, &code);
    bench->planned.info.kind = TANDEM_DEVICE_GPU;
    bench->planned.info.compute_units = 64;
    bench->planned.nvidia = true;
    bench->planned.group_limit = 1024;
    if (code != CL_SUCCESS)
        fprintf(stderr, "there is no OpenCL device (%d)\n", (int)code);
    return code == CL_SUCCESS;
}

static cl_int kernel_make(const struct bench *bench, uint64_t key,
                          cl_kernel *out_kernel)
{
    struct variant_source text;
    cl_int code;
    variant_source_make(&text, key, &bench->compiled);
    cl_program program =
        clCreateProgramWithSource(bench->context, 1, &text.source, NULL, &code);
    if (code == CL_SUCCESS)
        code = clBuildProgram(program, 1, &bench->device, text.options, NULL,
                              NULL);
    if (code == CL_SUCCESS)
        *out_kernel = clCreateKernel(program, text.function, &code);
    if (program != NULL)
        clReleaseProgram(program);
    return code;
}

/*
 * Returns true if the variant runs on any device. Tensor-core programs, and the
 * kernels that round floats to TF32 or split them for such programs, contain
 * NVIDIA assembly.
 */
static bool runs_on_any_device(uint64_t key)
{
    switch (KEY_KERNEL(key)) {
    case KERNEL_GEMM_3XTF32:
    case KERNEL_GEMM_MMA:
    case KERNEL_GEMM_WGMMA:
    case KERNEL_PACK_MAXIMA:
    case KERNEL_PACK_SINGLE_PASS:
        return false;
    case KERNEL_PACK_OPERANDS:
        return KEY_FORMAT(key) != FORMAT_TF32 &&
               KEY_FORMAT(key) != FORMAT_FP16X3;
    default:
        return true;
    }
}

static bool warmup_call_run(const struct bench *bench, uint64_t key)
{
    static struct warmup_call sample;
    cl_kernel kernel = NULL;
    cl_int code = kernel_make(bench, key, &kernel);
    bool made = warmup_call_make(&sample, key, &bench->planned);
    if (made && code == CL_SUCCESS)
        code =
            warmup_launch_run(bench->context, bench->device, kernel, &sample);
    if (kernel != NULL)
        clReleaseKernel(kernel);
    if (made && code == CL_SUCCESS)
        return true;
    fprintf(stderr, "%016llx: kernel %u: %s %d\n", (unsigned long long)key,
            (unsigned)KEY_KERNEL(key), made ? "OpenCL says" : "no sample",
            (int)code);
    return false;
}

static bool warmup_calls_run(const struct bench *bench, const struct keys *keys)
{
    uint32_t ran = 0, failed = 0;
    for (uint32_t i = 0; i < keys->count; i++) {
        if (!runs_on_any_device(keys->key[i]))
            continue;
        printf("%016llx\n", (unsigned long long)keys->key[i]);
        fflush(stdout);
        failed += !warmup_call_run(bench, keys->key[i]);
        ran++;
    }
    return case_summary(ran - failed, failed) == EXIT_SUCCESS;
}

/* Keeps the first variant of each kernel and access pattern of rows. */
static void keys_keep_one_per_kernel(struct keys *keys)
{
    bool seen[KERNEL_COUNT][8] = {{false}};
    uint32_t kept = 0;
    for (uint32_t i = 0; i < keys->count; i++) {
        uint64_t key = keys->key[i];
        uint32_t kernel = KEY_KERNEL(key);
        bool rows = kernel == KERNEL_SOFTMAX_SINGLE_PASS ||
                    kernel == KERNEL_NORM_SINGLE_PASS;
        bool *met = &seen[kernel][rows ? KEY_ROW_ACCESS(key) : 0];
        if (!*met)
            keys->key[kept++] = key;
        *met = true;
    }
    keys->count = kept;
}

static bool keys_make(struct keys *keys, const struct bench *bench, int argc,
                      char **argv)
{
    bool all = strcmp(argv[1], "all") == 0;
    if (!all && argc == 2) {
        keys->key = malloc(sizeof(*keys->key));
        keys->count = keys->key != NULL;
        if (keys->key != NULL)
            keys->key[0] = strtoull(argv[1], NULL, 16);
        return keys->count == 1;
    }
    bool found = keys_find(keys, &bench->planned, 8);
    if (found && !all) {
        found = keys_choose(keys, strtoull(argv[2], NULL, 10));
        keys_keep_one_per_kernel(keys);
    }
    return found;
}

int main(int argc, char **argv)
{
    struct bench bench;
    struct keys keys = {NULL, 0};
    bool few = argc == 3 && strcmp(argv[1], "few") == 0;
    if (!few && argc != 2) {
        fprintf(stderr, "usage: %s all|few SEED|KEY\n", argv[0]);
        return 2;
    }
    if (!bench_open(&bench))
        return 77;
    bool right =
        keys_make(&keys, &bench, argc, argv) && warmup_calls_run(&bench, &keys);
    free(keys.key);
    clReleaseContext(bench.context);
    return right ? 0 : 1;
}
