/* SPDX-License-Identifier: Apache-2.0 */
/* Sets the default floating-point environment (rounding, flushing of
 * subnormals, traps) in the calling thread and restores that of the host
 * program. Both are fast enough for every launch: the control register is read
 * once, and written only if its value is not the default. Exception flags that
 * our arithmetic raises stay set, because reading the register again would wait
 * for the arithmetic to end. May be called from any thread. */
#ifndef TANDEM_COMMON_FP_ENVIRONMENT_H
#define TANDEM_COMMON_FP_ENVIRONMENT_H

#include <stdbool.h>

#if defined(__x86_64__)

#include <xmmintrin.h>

/* Value of MXCSR, the SSE control register. The x87 control word affects only
 * long double, which we do not use. */
struct float_env {
    unsigned int control;
};
#define FLOAT_ENV_FLAGS 0x3fu /* exception flags */
#define FLOAT_ENV_DEFAULT 0x1f80u
#define FLOAT_ENV_IS_DEFAULT(env)                                              \
    (((env).control & ~FLOAT_ENV_FLAGS) == FLOAT_ENV_DEFAULT)

static inline struct float_env float_env_read(void)
{
    return (struct float_env){_mm_getcsr()};
}

static inline void float_env_write(struct float_env to)
{
    _mm_setcsr(to.control);
}

#elif defined(__aarch64__)

#include <stdint.h>

/* Value of FPCR, the AArch64 control register. Exception flags are in FPSR. */
struct float_env {
    uint64_t control;
};
#define FLOAT_ENV_DEFAULT 0u
#define FLOAT_ENV_IS_DEFAULT(env) ((env).control == FLOAT_ENV_DEFAULT)

static inline struct float_env float_env_read(void)
{
    struct float_env now;
    __asm__ volatile("mrs %0, fpcr" : "=r"(now.control));
    return now;
}

static inline void float_env_write(struct float_env to)
{
    __asm__ volatile("msr fpcr, %0" : : "r"(to.control));
}

#else /* any other CPU: use the functions of fenv.h */

#include <fenv.h>

struct float_env {
    fenv_t control;
};
#define FLOAT_ENV_DEFAULT *FE_DFL_ENV
#define FLOAT_ENV_IS_DEFAULT(env) ((void)(env), false)

static inline struct float_env float_env_read(void)
{
    struct float_env now;
    fegetenv(&now.control);
    return now;
}

static inline void float_env_write(struct float_env to)
{
    fesetenv(&to.control);
}

#endif

/* The asm statements are compiler barriers: arithmetic on memory operands stays
 * between float_env_enter and float_env_leave. */
static inline struct float_env float_env_enter(void)
{
    const struct float_env host = float_env_read();
    if (__builtin_expect(!FLOAT_ENV_IS_DEFAULT(host), 0))
        float_env_write((struct float_env){FLOAT_ENV_DEFAULT});
    __asm__ volatile("" : : : "memory");
    return host;
}

static inline void float_env_leave(struct float_env host)
{
    __asm__ volatile("" : : : "memory");
    if (__builtin_expect(!FLOAT_ENV_IS_DEFAULT(host), 0))
        float_env_write(host);
}

#endif
