/* SPDX-License-Identifier: Apache-2.0 */
/* Detects the instruction sets of this machine.  Builds the kernel table of
 * each instruction set level, once per process.  Callable from any thread. */
#include "config.h"

#include "cpu/kernels/kernel_table.h"

#include <pthread.h>
#include <string.h>
#ifdef TANDEM_CPU_X86
#include <cpuid.h>
#endif

/* An instruction set level.  Each level requires all preceding levels. */
struct level {
    const char *name;
    bool (*present)(void); /* NULL if every machine supports the level */
    void (*fill)(struct kernels *table);
};

#ifdef TANDEM_CPU_X86
/* __builtin_cpu_supports tests the processor and the operating system.  In some
 * compilers, this built-in function does not know F16C. avx2_present therefore
 * reads the F16C bit of CPUID.  The operating system supports F16C if it
 * supports AVX. */
static bool avx2_present(void)
{
    unsigned a, b, c, d;
    __builtin_cpu_init();
    return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
           __get_cpuid(1, &a, &b, &c, &d) != 0 && (c & bit_F16C) != 0;
}

static bool avx512_present(void)
{
    return __builtin_cpu_supports("avx512f") &&
           __builtin_cpu_supports("avx512dq") &&
           __builtin_cpu_supports("avx512bw") &&
           __builtin_cpu_supports("avx512vl");
}
#endif

static const struct level levels[] = {
    {"generic", NULL, kernels_generic},
#ifdef TANDEM_CPU_X86
    {"avx2", avx2_present, kernels_avx2},
    {"avx512", avx512_present, kernels_avx512},
#endif
#ifdef TANDEM_CPU_NEON
    {"neon", NULL, kernels_neon},
#endif
};
#define LEVELS (sizeof levels / sizeof levels[0])

static struct kernels tables[LEVELS];
static size_t count; /* number of levels that this machine supports */
static char names[64];
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void tables_make(void)
{
    for (count = 0; count < LEVELS; count++) {
        if (levels[count].present != NULL && !levels[count].present())
            break;
        if (count > 0)
            tables[count] = tables[count - 1];
        levels[count].fill(&tables[count]);
        strcat(strcat(names, count > 0 ? " " : ""), levels[count].name);
    }
}

const struct kernels *kernels_choose(const char *limit)
{
    pthread_once(&once, tables_make);
    if (limit == NULL)
        return &tables[count - 1];
    for (size_t i = 0; i < LEVELS; i++)
        if (strcmp(limit, levels[i].name) == 0)
            return &tables[i < count ? i : count - 1];
    return NULL;
}

const char *kernels_levels(void)
{
    pthread_once(&once, tables_make);
    return names;
}
