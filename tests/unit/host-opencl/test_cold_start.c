/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A real OpenCL driver without any cache of compiled programs: while it
 * compiles, operators run on the CPU, and afterwards on its device. The test
 * does not depend on compile times.
 */
#include <config.h>

#include <math.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "unit/host/support.h"

#define ELEMENTS 1000
#define PAUSE_NS 10000000
#define MAX_PAUSES 10000 /* The maximum number of pauses. */

static float x[ELEMENTS], y[ELEMENTS];

/* Removes all compiled programs from all caches. */
static void caches_empty(void)
{
    directory_remove(scratch_path("programs"));
    directory_make(scratch_path("programs"));
    setenv("POCL_CACHE_DIR", scratch_path("programs"), 1);
    setenv("MESA_SHADER_CACHE_DIR", scratch_path("programs"), 1);
}

/* Creates a context whose profiles make the CPU expensive and OpenCL free. */
static struct tandem_context *context_with_expensive_cpu(void)
{
    struct script dear = script_free(), free_of_cost = script_free();

    script_all(&dear, 1e9, 0);
    script_save("cpu", &dear);
    script_save("opencl", &free_of_cost);
    return context_new(NULL);
}

/*
 * Runs an operator, checks its result, and returns the device on which it ran.
 */
static uint32_t exp_run(struct tandem_context *context,
                        struct tandem_tensor *in, struct tandem_tensor *out,
                        struct tandem_explanation *e)
{
    for (int i = 0; i < ELEMENTS; i++)
        y[i] = -1;
    OK(tandem_tensor_host_written(out));
    OK(tandem_unary(context, TANDEM_OP_EXP, in, out));
    *e = last_explanation(context);
    OK(tandem_tensor_sync(out, TANDEM_TIMEOUT_INFINITE));
    for (int i = 0; i < ELEMENTS; i++)
        ck_assert_float_eq_tol(y[i], expf(x[i]), 1e-6f * expf(x[i]));
    return e->chosen;
}

TEST(test_the_cpu_computes_until_the_driver_has_compiled)
{
    const struct timespec pause = {0, PAUSE_NS};
    struct tandem_context *context = context_with_expensive_cpu();
    uint32_t cpu = device_named(context, "cpu");
    uint32_t opencl = device_named(context, "opencl");
    struct tandem_explanation e;
    struct tandem_tensor *in, *out;
    int on_cpu = 0;

    for (int i = 0; i < ELEMENTS; i++)
        x[i] = (float)i / ELEMENTS;
    in = vector_wrap(context, x, ELEMENTS);
    out = vector_wrap(context, y, ELEMENTS);
    /* The kernel cannot be ready, because it was not requested before. */
    ck_assert_uint_eq(exp_run(context, in, out, &e), cpu);
    ck_assert_uint_eq(candidate_of(&e, opencl)->ready, 0);
    ck_assert_uint_eq(candidate_of(&e, cpu)->ready, 1);
    while (exp_run(context, in, out, &e) != opencl) {
        ck_assert_uint_eq(e.chosen, cpu);
        ck_assert_int_lt(++on_cpu, MAX_PAUSES);
        nanosleep(&pause, NULL);
    }
    for (int i = 0; i < 5; i++)
        ck_assert_uint_eq(exp_run(context, in, out, &e), opencl);
}

TEST_MAIN(host_opencl_tests_run("cold", caches_empty))
