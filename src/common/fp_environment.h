/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The floating-point environment of the calling thread: rounding, flushing of
 * subnormals, traps.  It is the host's, who may have set any of it; what we
 * compute is computed in the default one, and the host's comes back.  Cheap
 * enough for every launch: the register is read once, and written only where
 * it differs.  (The sticky flags may be raised, as by any arithmetic: to read
 * the register again behind the work waits for all of it.)  Any thread.
 */
#ifndef TANDEM_COMMON_FP_ENVIRONMENT_H
#define TANDEM_COMMON_FP_ENVIRONMENT_H

#include <stdbool.h>

#if defined(__x86_64__)

#include <xmmintrin.h>

/* MXCSR.  The x87's own words are for long double alone, which we do not
 * use. */
#define FLOAT_ENV_FLAGS 0x3fu
#define FLOAT_ENV_DEFAULT 0x1f80u

struct float_env {
    unsigned int control;
};

static inline bool float_env_plain(struct float_env host)
{
    return __builtin_expect(
        (host.control & ~FLOAT_ENV_FLAGS) == FLOAT_ENV_DEFAULT, 1);
}

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

/* FPCR; the flags are another register's. */
#define FLOAT_ENV_DEFAULT 0u

struct float_env {
    uint64_t control;
};

static inline bool float_env_plain(struct float_env host)
{
    return __builtin_expect(host.control == FLOAT_ENV_DEFAULT, 1);
}

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

#else /* any other, at the price of two library calls */

#include <fenv.h>

#define FLOAT_ENV_DEFAULT *FE_DFL_ENV

struct float_env {
    fenv_t control;
};

static inline bool float_env_plain(struct float_env host)
{
    (void)host;
    return false;
}

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

/* The empty statements keep the compiler from moving what is computed from
 * memory to the wrong side. */
static inline struct float_env float_env_enter(void)
{
    const struct float_env host = float_env_read();
    if (!float_env_plain(host))
        float_env_write((struct float_env){FLOAT_ENV_DEFAULT});
    __asm__ volatile("" : : : "memory");
    return host;
}

static inline void float_env_leave(struct float_env host)
{
    __asm__ volatile("" : : : "memory");
    if (!float_env_plain(host))
        float_env_write(host);
}

#endif
