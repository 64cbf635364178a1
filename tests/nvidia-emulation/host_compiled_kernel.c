/* SPDX-License-Identifier: Apache-2.0 */
/* Compiles kernels for the host CPU; see host_compiled_kernel.h. */
#include "host_compiled_kernel.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "ptx_emulator.h"
#include "opencl/memory/buffer.h"
#include "opencl/plan/gemm_plan.h"
#include "opencl/plan/kernel_step.h"
#include "support/case_summary.h"

#define MAX_WORDS 64
#define MAX_KERNELS 512u

static struct {
    const char *directory; /* The directory for compiled kernels. */
    char *const *words;    /* The compiler and its options, ended by NULL. */
    const struct platform_device *hardware;
} compiler;

/* ---- kernels ---- */

typedef void run_function(void *const *buffers, const void *params);

static struct {
    struct kernel_key key;
    run_function *run;
} kernels[MAX_KERNELS];
static uint32_t kernel_count;

static bool command_run(char *const *words)
{
    int status = -1;
    pid_t child = fork();
    if (child == 0) {
        execvp(words[0], words);
        _exit(127);
    }
    return child > 0 && waitpid(child, &status, 0) == child && status == 0;
}

/*
 * Writes the source of a kernel, and a function that calls it with the buffers
 * and parameters of a step.
 */
static bool source_write(const char *path, const struct kernel_info *kernel,
                         uint32_t buffers)
{
    char name[64], type[64] = "";
    snprintf(name, sizeof(name), "KERNEL void %s(", kernel->function);
    const char *at = strstr(kernel->source, name);
    const char *params = at != NULL ? strstr(at, "const struct ") : NULL;
    if (params == NULL || sscanf(params, "const struct %60[a-z_]", type) != 1)
        return false;
    /* The first type in the text is that of kernels that read patches. */
    if (strcmp(type, "patches_gemm_params") == 0 &&
        kernel->param_bytes != sizeof(struct patches_gemm_params))
        strcpy(type, "gemm_params");
    FILE *file = fopen(path, "we");
    if (file == NULL)
        return false;
    fprintf(file,
            "%s\nvoid run(__global void **b, __global const void *p)\n"
            "{\n    %s(",
            kernel->source, kernel->function);
    for (uint32_t i = 0; i < buffers; i++)
        fprintf(file, "b[%u], ", i);
    fprintf(file, "*(__global const struct %s *)p);\n}\n", type);
    return fclose(file) == 0;
}

static run_function *kernel_build(const struct kernel_step *step)
{
    char source[4096], object[4096], *words[MAX_WORDS + 1];
    struct kernel_source text;
    uint32_t count = 0;
    kernel_source_make(&text, &step->key, compiler.hardware);
    snprintf(source, sizeof(source), "%s/%u.cl", compiler.directory,
             kernel_count);
    snprintf(object, sizeof(object), "%s/%u.so", compiler.directory,
             kernel_count);
    if (!source_write(source, text.kernel, step->buffer_count))
        return NULL;
    while (compiler.words[count] != NULL && count < MAX_WORDS / 2) {
        words[count] = compiler.words[count];
        count++;
    }
    char *rest = NULL;
    for (char *word = strtok_r(text.options, " ", &rest);
         word != NULL && count < MAX_WORDS - 3;
         word = strtok_r(NULL, " ", &rest))
        words[count++] = word;
    words[count++] = source;
    words[count++] = "-o";
    words[count++] = object;
    words[count] = NULL;
    if (!command_run(words))
        return NULL;
    void *library = dlopen(object, RTLD_NOW | RTLD_LOCAL);
    if (library == NULL) {
        fprintf(stderr, "%s\n", dlerror());
        return NULL;
    }
    run_function *run;
    *(void **)&run = dlsym(library, "run");
    return run;
}

static run_function *kernel_of(const struct kernel_step *step)
{
    uint32_t i = 0;
    while (i < kernel_count && !kernel_key_equal(&kernels[i].key, &step->key))
        i++;
    if (i < kernel_count)
        return kernels[i].run;
    if (kernel_count == MAX_KERNELS)
        return NULL;
    kernels[i].key = step->key;
    kernels[i].run = kernel_build(step);
    kernel_count++;
    return kernels[i].run;
}

/* ---- steps ---- */

struct call {
    run_function *run;
    void *buffers[MAX_STEP_BUFFERS];
    const void *params;
};

static void item_call(void *argument)
{
    const struct call *call = argument;
    call->run(call->buffers, call->params);
}

static bool steps_run(const struct launch_plan *plan, void *memory[SLOT_COUNT],
                      const uint64_t offsets[SLOT_COUNT])
{
    struct slot_address addresses[SLOT_COUNT] = {{0}};
    for (uint32_t i = 0; i < SLOT_COUNT; i++)
        addresses[i].byte_offset = offsets[i];
    for (uint32_t i = 0; i < plan->step_count; i++) {
        const struct kernel_step *step = &plan->step[i];
        _Alignas(8) unsigned char params[MAX_PARAM_BYTES];
        struct call call = {.run = kernel_of(step), .params = params};
        if (call.run == NULL) {
            fprintf(stderr, "step %u does not compile\n", i);
            return false;
        }
        step_params_patch(params, step, addresses);
        for (uint32_t j = 0; j < step->buffer_count; j++)
            call.buffers[j] = memory[step->slots[j]];
        if (!groups_run(step->groups, 1u << step->key.group_log2, item_call,
                        &call))
            return false;
    }
    return true;
}

bool plan_run(const struct launch_plan *plan, void *memory[SLOT_COUNT],
              const uint64_t offsets[SLOT_COUNT])
{
    void *temporary = aligned_alloc(256, (plan->temp_bytes + 511) / 256 * 256);
    memory[SLOT_TEMP] = temporary;
    bool done = temporary != NULL && steps_run(plan, memory, offsets);
    free(temporary);
    return done;
}

float random_next(void)
{
    static uint32_t seed = 7;
    seed = seed * 1664525u + 1013904223u;
    return (float)(int32_t)seed / 2147483648.0f;
}

bool emulation_begin(int argc, char **argv,
                     const struct platform_device *hardware)
{
    if (argc < 3) {
        fprintf(stderr, "usage: %s DIRECTORY COMPILER OPTION...\n", argv[0]);
        return false;
    }
    compiler.directory = argv[1];
    compiler.words = argv + 2;
    compiler.hardware = hardware;
    return true;
}

int emulation_end(uint64_t passed, uint64_t failed)
{
    if (copies_misaligned() != 0) {
        printf("%" PRIu64 " misaligned copies\n", copies_misaligned());
        failed++;
    }
    return case_summary(passed, failed);
}
