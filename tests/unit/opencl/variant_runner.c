/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Usage: variant-runner all|few SEED [NUMBER]
 *
 * Builds kernel variants for the first OpenCL device and runs the trial launch
 * of each (opencl/program/trial_launch.h): all variants that run without
 * NVIDIA's instructions, or a random one for every second kernel and access
 * pattern, or only the one that was printed with this number. A tool that
 * observes the device can check which memory the launches access.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../../offline/variants.h"
#include "opencl/device/device_enumeration.h"
#include "opencl/plan/tensor_core_packing.h"
#include "opencl/program/trial_launch.h"
#include "support/case_summary.h"

/* The largest number of work-groups of a launch. It is smaller for gemm_simt,
 * because 32 of its groups need a minute in oclgrind; check-gemm-kernels runs
 * all groups of these kernels between guard pages. */
#define MAX_GROUPS 32u
#define MAX_GROUPS_OF_GEMM 4u

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
    bench->planned.info.local_memory_bytes = 65536;
    bench->planned.nvidia = true;
    bench->planned.group_limit = 1024;
    if (code != CL_SUCCESS)
        fprintf(stderr, "there is no OpenCL device (%d)\n", (int)code);
    return code == CL_SUCCESS;
}

static cl_int kernel_make(const struct bench *bench,
                          const struct kernel_key *key, cl_kernel *out_kernel)
{
    struct kernel_source text;
    const char *source = key->kernel->source;
    cl_int code;
    kernel_source_make(&text, key, &bench->compiled);
    cl_program program =
        clCreateProgramWithSource(bench->context, 1, &source, NULL, &code);
    if (code == CL_SUCCESS)
        code = clBuildProgram(program, 1, &bench->device, text.options, NULL,
                              NULL);
    if (code == CL_SUCCESS)
        *out_kernel = clCreateKernel(program, key->kernel->function, &code);
    if (program != NULL)
        clReleaseProgram(program);
    return code;
}

/*
 * Returns true if the variant runs on any device. Tensor-core programs, and the
 * kernels that round floats to TF32 or split them for such programs, contain
 * NVIDIA assembly.
 */
static bool runs_on_any_device(const struct kernel_key *key)
{
    const struct kernel_info *kernel = key->kernel;
    if ((kernel->flags & KERNEL_SELF_TEST) != 0 ||
        strcmp(kernel->file, "attention_mma.cl") == 0)
        return false;
    return strcmp(kernel->file, "pack_operands.cl") != 0 ||
           key->format == FORMAT_F16 || key->format == FORMAT_BF16;
}

static bool variant_run(const struct bench *bench, const struct keys *keys,
                        uint32_t i)
{
    bool is_gemm = strcmp(keys->key[i].kernel->file, "gemm_simt.cl") == 0;
    cl_kernel kernel = NULL;
    cl_int code = kernel_make(bench, &keys->key[i], &kernel);
    bool has_trial = keys->trial[i] != NULL;
    if (has_trial && code == CL_SUCCESS)
        code = trial_launch_run(keys->trial[i], bench->context, bench->device,
                                kernel,
                                is_gemm ? MAX_GROUPS_OF_GEMM : MAX_GROUPS);
    if (kernel != NULL)
        clReleaseKernel(kernel);
    if (has_trial && code == CL_SUCCESS)
        return true;
    fprintf(stderr, "%u: kernel %s: %s %d\n", i, keys->key[i].kernel->function,
            has_trial ? "OpenCL says" : "no call of at most 64 MiB,",
            (int)code);
    return false;
}

/* Returns true if a variant before the variant i has the same kernel and the
 * same access pattern of rows. */
static bool is_repeated(const struct keys *keys, uint32_t i)
{
    for (uint32_t j = 0; j < i; j++)
        if (keys->key[j].kernel == keys->key[i].kernel &&
            keys->key[j].row_access == keys->key[i].row_access)
            return true;
    return false;
}

/*
 * Runs all variants, or every second one of different kernels and access
 * patterns, or only the variant with this number. `seed` selects the first of
 * them.
 */
static bool variants_run(const struct bench *bench, const struct keys *keys,
                         bool all, uint64_t seed, const char *number)
{
    uint32_t ran = 0, failed = 0;
    for (uint32_t i = 0; i < keys->chosen; i++) {
        if (!runs_on_any_device(&keys->key[i]) ||
            (!all && (is_repeated(keys, i) || seed++ % 2 != 0)) ||
            (number != NULL && strtoul(number, NULL, 10) != i))
            continue;
        printf("%u\n", i);
        fflush(stdout);
        failed += !variant_run(bench, keys, i);
        ran++;
    }
    return case_summary(ran - failed, failed) == EXIT_SUCCESS;
}

int main(int argc, char **argv)
{
    struct bench bench;
    struct keys keys;
    bool all = argc > 1 && strcmp(argv[1], "all") == 0;
    int arguments = all ? 2 : 3;
    if ((!all && (argc < 3 || strcmp(argv[1], "few") != 0)) ||
        argc > arguments + 1) {
        fprintf(stderr, "usage: %s all|few SEED [NUMBER]\n", argv[0]);
        return 2;
    }
    if (!bench_open(&bench))
        return 77;
    uint64_t seed = all ? 0 : strtoull(argv[2], NULL, 10);
    bool right = keys_find(&keys, &bench.planned, 8) &&
                 (all || keys_choose(&keys, seed)) &&
                 variants_run(&bench, &keys, all, seed,
                              argc > arguments ? argv[arguments] : NULL);
    keys_free(&keys);
    clReleaseContext(bench.context);
    return right ? 0 : 1;
}
