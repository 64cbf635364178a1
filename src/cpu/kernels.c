/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which instruction sets this machine has, and the table of kernels of each
 * level.  Made once; any thread.
 */
#include "config.h"

#include "cpu/kernels.h"

#include <pthread.h>
#include <string.h>

enum level { LEVEL_GENERIC, LEVEL_AVX2, LEVEL_AVX512, LEVELS };

static struct kernels tables[LEVELS];
static enum level highest;
static pthread_once_t once = PTHREAD_ONCE_INIT;

#ifdef TANDEM_CPU_X86
/* The builtin asks the processor and the operating system. */
static enum level level_find(void)
{
    __builtin_cpu_init();
    if (!__builtin_cpu_supports("avx2") || !__builtin_cpu_supports("fma"))
        return LEVEL_GENERIC;
    if (!__builtin_cpu_supports("avx512f") ||
        !__builtin_cpu_supports("avx512dq") ||
        !__builtin_cpu_supports("avx512bw") ||
        !__builtin_cpu_supports("avx512vl"))
        return LEVEL_AVX2;
    return LEVEL_AVX512;
}
#endif

static void tables_make(void)
{
    kernels_generic(&tables[LEVEL_GENERIC]);
    highest = LEVEL_GENERIC;
#ifdef TANDEM_CPU_X86
    highest = level_find();
    if (highest >= LEVEL_AVX2) {
        tables[LEVEL_AVX2] = tables[LEVEL_GENERIC];
        kernels_avx2(&tables[LEVEL_AVX2]);
    }
    if (highest >= LEVEL_AVX512) {
        tables[LEVEL_AVX512] = tables[LEVEL_AVX2];
        kernels_avx512(&tables[LEVEL_AVX512]);
    }
#endif
    /* NEON: a level of its own beside these, from arm/. */
}

const struct kernels *kernels_choose(const char *limit)
{
    static const char *const names[LEVELS] = {"generic", "avx2", "avx512"};
    pthread_once(&once, tables_make);
    if (limit == NULL)
        return &tables[highest];
    for (enum level level = LEVEL_GENERIC; level < LEVELS; level++)
        if (strcmp(limit, names[level]) == 0)
            return &tables[level < highest ? level : highest];
    return NULL;
}

const char *kernels_levels(void)
{
    pthread_once(&once, tables_make);
    return highest == LEVEL_AVX512 ? "generic avx2 avx512"
           : highest == LEVEL_AVX2 ? "generic avx2"
                                   : "generic";
}
