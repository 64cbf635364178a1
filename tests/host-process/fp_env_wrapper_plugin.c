/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The CPU plugin, called by a host with an unusual floating-point environment.
 * Its launches and GEMMs run in a thread with a changed environment, which they
 * must preserve. The conformance suite over this plugin shows
 * that results do not depend on the host's environment. TANDEM_TEST_FLOAT is
 * traps, flush, down or up.
 *
 * Any thread may call it.
 */
#include <config.h>

#include <dlfcn.h>
#include <fenv.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <tandem/backend.h>

#ifdef __SSE__
#include <xmmintrin.h>
#define FLUSHING (_mm_getcsr() & 0x8040)
#else
#define FLUSHING 0u
#endif

static pthread_once_t once = PTHREAD_ONCE_INIT;
static const struct tandem_backend *inner;
static struct tandem_backend table;
static char mode[16];

static void environment_set(void)
{
    if (strcmp(mode, "traps") == 0) {
        feclearexcept(FE_ALL_EXCEPT);
        feenableexcept(FE_ALL_EXCEPT);
    } else if (strcmp(mode, "down") == 0) {
        fesetround(FE_DOWNWARD);
    } else if (strcmp(mode, "up") == 0) {
        fesetround(FE_UPWARD);
    }
#ifdef __SSE__
    else if (strcmp(mode, "flush") == 0)
        _mm_setcsr(_mm_getcsr() | 0x8040);
#endif
}

struct fp_environment {
    int rounding, traps;
    unsigned flushing;
};

static struct fp_environment fp_environment_read(void)
{
    return (struct fp_environment){fegetround(), fegetexcept(), FLUSHING};
}

/* Ends the process if the environment changed. Restores the default one. */
static enum tandem_status expect_unchanged(enum tandem_status status,
                                           const struct fp_environment *before)
{
    const struct fp_environment after = fp_environment_read();

    fesetenv(FE_DFL_ENV);
    if (after.rounding != before->rounding || after.traps != before->traps ||
        after.flushing != before->flushing) {
        fputs("the call changed the floating-point environment\n", stderr);
        abort();
    }
    return status;
}

/* Makes a call in the changed environment, and returns its status. */
#define RETURN_CHECKED(call)                                                   \
    do {                                                                       \
        struct fp_environment before_;                                         \
                                                                               \
        environment_set();                                                     \
        before_ = fp_environment_read();                                       \
        return expect_unchanged(call, &before_);                               \
    } while (0)

static enum tandem_status wrapped_prepare(
    struct tandem_device *device, const struct tandem_op *op,
    const struct tandem_operand_desc *const *inputs, uint32_t input_count,
    const struct tandem_operand_desc *const *outputs, uint32_t output_count,
    uint32_t flags, struct tandem_prepared_info *out_info,
    struct tandem_prepared **out_prepared)
{
    RETURN_CHECKED(inner->prepare(device, op, inputs, input_count, outputs,
                                  output_count, flags, out_info, out_prepared));
}

static enum tandem_status wrapped_launch(struct tandem_stream *stream,
                                         struct tandem_prepared *prepared,
                                         const struct tandem_memory *memory,
                                         uint32_t count, const double *scalars,
                                         uint32_t scalar_count)
{
    RETURN_CHECKED(
        inner->launch(stream, prepared, memory, count, scalars, scalar_count));
}

static enum tandem_status wrapped_gemm(struct tandem_stream *stream,
                                       const struct tandem_gemm *gemm)
{
    RETURN_CHECKED(inner->gemm(stream, gemm));
}

static void inner_load(void)
{
    const char *wanted = secure_getenv("TANDEM_TEST_FLOAT");
    tandem_backend_query_fn query;
    char path[4096];
    const char *slash;
    Dl_info info;
    void *object, *symbol;

    snprintf(mode, sizeof mode, "%s", wanted ? wanted : "");
    if (!dladdr((void *)&once, &info) || !info.dli_fname ||
        !(slash = strrchr(info.dli_fname, '/')))
        return;
    snprintf(path, sizeof path, "%.*s/tandem-cpu.so",
             (int)(slash - info.dli_fname), info.dli_fname);
    object = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    symbol = object ? dlsym(object, TANDEM_BACKEND_QUERY_SYMBOL) : NULL;
    if (!symbol)
        return;
    memcpy(&query, &symbol, sizeof query);
    inner = query(TANDEM_ABI_MAJOR);
    if (!inner)
        return;
    table = *inner;
    table.name = "fp-env-wrapper";
    table.prepare = wrapped_prepare;
    table.launch = wrapped_launch;
    table.gemm = wrapped_gemm;
}

const struct tandem_backend *tandem_backend_query(uint32_t host_abi_major)
{
    pthread_once(&once, inner_load);
    return inner && host_abi_major == TANDEM_ABI_MAJOR ? &table : NULL;
}
