/* SPDX-License-Identifier: Apache-2.0 */
/* Parameters of CLBlast's GEMM kernels; see clblast_params.h. */
#include "opencl/gemm/clblast_params.h"

#include <clblast_c.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

/* ---- conditions ---- */

static bool is_multiple(uint64_t a, uint64_t b)
{
    return b != 0 && a % b == 0;
}

/* Returns true if b * c / d is an integer that divides a. */
static bool is_multiple_of_quotient(uint64_t a, uint64_t b, uint64_t c,
                                    uint64_t d)
{
    return is_multiple(b * c, d) && is_multiple(a, b * c / d);
}

static bool device_supports(const struct tandem_device_info *device,
                            uint64_t group_size, uint64_t local_floats)
{
    /* Some drivers reserve a few bytes of local memory for themselves. */
    const uint64_t reserved_bytes = 64;
    return group_size <= device->max_work_group_size &&
           local_floats * sizeof(float) + reserved_bytes <=
               device->local_memory_bytes;
}

/* Indices of the Xgemm kernel's parameters in clblast_kernels. */
enum { KWG = 2, KWI, MDIMA, MDIMC, MWG, NDIMB, NDIMC, NWG, SA, SB };
enum { VWM = 14, VWN };

static bool xgemm_fits(const uint32_t *v,
                       const struct tandem_device_info *device)
{
    /* A work-item with more than 128 accumulators needs too many registers. */
    const uint64_t max_accumulators = 128;
    return is_multiple(v[KWG], v[KWI]) &&
           is_multiple(v[MWG], v[MDIMC] * v[VWM]) &&
           is_multiple(v[NWG], v[NDIMC] * v[VWN]) &&
           is_multiple(v[MWG], v[MDIMA] * v[VWM]) &&
           is_multiple(v[NWG], v[NDIMB] * v[VWN]) &&
           is_multiple_of_quotient(v[KWG], v[MDIMC], v[NDIMC], v[MDIMA]) &&
           is_multiple_of_quotient(v[KWG], v[MDIMC], v[NDIMC], v[NDIMB]) &&
           v[MWG] * v[NWG] <= max_accumulators * v[MDIMC] * v[NDIMC] &&
           device_supports(device, v[MDIMC] * v[NDIMC],
                           v[KWG] * (v[SA] * v[MWG] + v[SB] * v[NWG]));
}

enum { KWID, MDIMAD, MDIMCD, NDIMBD, NDIMCD, PADA, PADB, VWMD, VWND, WGD };

static bool direct_fits(const uint32_t *v,
                        const struct tandem_device_info *device)
{
    return is_multiple(v[WGD], v[KWID]) &&
           is_multiple(v[WGD], v[MDIMCD] * v[VWMD]) &&
           is_multiple(v[WGD], v[NDIMCD] * v[VWND]) &&
           is_multiple(v[WGD], v[MDIMAD] * v[VWMD]) &&
           is_multiple(v[WGD], v[NDIMBD] * v[VWND]) &&
           is_multiple_of_quotient(v[WGD], v[MDIMCD], v[NDIMCD], v[MDIMAD]) &&
           is_multiple_of_quotient(v[WGD], v[MDIMCD], v[NDIMCD], v[NDIMBD]) &&
           device_supports(device, v[MDIMCD] * v[NDIMCD],
                           v[WGD] * (2 * v[WGD] + v[PADA] + v[PADB]));
}

static bool copy_fits(const uint32_t *v,
                      const struct tandem_device_info *device)
{
    return device_supports(device, v[0] * v[1], 0);
}

enum { TRA_DIM, TRA_PAD, TRA_SHUFFLE, TRA_WPT };

static bool transpose_fits(const uint32_t *v,
                           const struct tandem_device_info *device)
{
    return device_supports(device, v[TRA_DIM] * v[TRA_DIM],
                           (uint64_t)v[TRA_WPT] * v[TRA_WPT] * v[TRA_DIM] *
                               (v[TRA_DIM] + v[TRA_PAD]));
}

enum { PADTRA_PAD, PADTRA_TILE, PADTRA_WPT };

static bool padtranspose_fits(const uint32_t *v,
                              const struct tandem_device_info *device)
{
    uint64_t side = v[PADTRA_WPT] * v[PADTRA_TILE];
    return device_supports(device, v[PADTRA_TILE] * v[PADTRA_TILE],
                           side * (side + v[PADTRA_PAD]));
}

const struct clblast_kernel clblast_kernels[CLBLAST_KERNEL_COUNT] = {
    [CLBLAST_XGEMM] = {"Xgemm",
                       xgemm_fits,
                       16,
                       {{"GEMMK", 1, {0}},
                        {"KREG", 1, {1}},
                        {"KWG", 2, {16, 32}},
                        {"KWI", 2, {2, 8}},
                        {"MDIMA", 3, {8, 16, 32}},
                        {"MDIMC", 3, {8, 16, 32}},
                        {"MWG", 4, {16, 32, 64, 128}},
                        {"NDIMB", 3, {8, 16, 32}},
                        {"NDIMC", 3, {8, 16, 32}},
                        {"NWG", 4, {16, 32, 64, 128}},
                        {"SA", 2, {0, 1}},
                        {"SB", 2, {0, 1}},
                        {"STRM", 2, {0, 1}},
                        {"STRN", 2, {0, 1}},
                        {"VWM", 4, {1, 2, 4, 8}},
                        {"VWN", 4, {1, 2, 4, 8}}}},
    [CLBLAST_XGEMM_DIRECT] = {"XgemmDirect",
                              direct_fits,
                              10,
                              {{"KWID", 3, {2, 8, 16}},
                               {"MDIMAD", 3, {8, 16, 32}},
                               {"MDIMCD", 3, {8, 16, 32}},
                               {"NDIMBD", 3, {8, 16, 32}},
                               {"NDIMCD", 3, {8, 16, 32}},
                               {"PADA", 2, {0, 1}},
                               {"PADB", 2, {0, 1}},
                               {"VWMD", 4, {1, 2, 4, 8}},
                               {"VWND", 4, {1, 2, 4, 8}},
                               {"WGD", 4, {8, 16, 32, 64}}}},
    [CLBLAST_GEMM_ROUTINE] = {"GemmRoutine",
                              NULL,
                              1,
                              {{"XGEMM_MIN_INDIRECT_SIZE", 0, {0, 2048}}}},
    [CLBLAST_COPY] = {"Copy",
                      copy_fits,
                      4,
                      {{"COPY_DIMX", 3, {8, 16, 32}},
                       {"COPY_DIMY", 3, {8, 16, 32}},
                       {"COPY_VW", 4, {1, 2, 4, 8}},
                       {"COPY_WPT", 4, {1, 2, 4, 8}}}},
    [CLBLAST_PAD] = {"Pad",
                     copy_fits,
                     4,
                     {{"PAD_DIMX", 3, {8, 16, 32}},
                      {"PAD_DIMY", 3, {8, 16, 32}},
                      {"PAD_WPTX", 3, {1, 2, 4}},
                      {"PAD_WPTY", 3, {1, 2, 4}}}},
    [CLBLAST_TRANSPOSE] = {"Transpose",
                           transpose_fits,
                           4,
                           {{"TRA_DIM", 5, {4, 8, 16, 32, 64}},
                            {"TRA_PAD", 2, {0, 1}},
                            {"TRA_SHUFFLE", 2, {0, 1}},
                            {"TRA_WPT", 5, {1, 2, 4, 8, 16}}}},
    [CLBLAST_PADTRANSPOSE] = {"Padtranspose",
                              padtranspose_fits,
                              3,
                              {{"PADTRA_PAD", 2, {0, 1}},
                               {"PADTRA_TILE", 4, {8, 16, 32, 64}},
                               {"PADTRA_WPT", 5, {1, 2, 4, 8, 16}}}},
};

static bool is_value_allowed(const struct clblast_param *param, uint32_t value)
{
    if (param->count == 0)
        return value >= param->values[0] && value <= param->values[1];
    for (uint32_t i = 0; i < param->count; i++)
        if (param->values[i] == value)
            return true;
    return false;
}

bool clblast_params_valid(enum clblast_kernel_id id,
                          const struct clblast_params *set,
                          const struct tandem_device_info *device)
{
    const struct clblast_kernel *kernel = &clblast_kernels[id];
    for (uint32_t i = 0; i < kernel->count; i++)
        if (!is_value_allowed(&kernel->params[i], set->values[i]))
            return false;
    return kernel->fits == NULL || kernel->fits(set->values, device);
}

/* ---- text ---- */

/* Parses one parameter, such as "NAME=1", and skips spaces after it. Returns
 * the index of the parameter, or kernel->count if the text is malformed. */
static uint32_t param_parse(const struct clblast_kernel *kernel,
                            const char **text, uint32_t *out_value)
{
    size_t length = strcspn(*text, "=");
    uint32_t index = 0, value = 0;
    while (index < kernel->count &&
           (strlen(kernel->params[index].name) != length ||
            strncmp(kernel->params[index].name, *text, length) != 0))
        index++;
    const char *at = *text + length;
    if (*at++ != '=' || *at < '0' || *at > '9')
        return kernel->count;
    for (; *at >= '0' && *at <= '9'; at++) {
        value = value * 10 + (uint32_t)(*at - '0');
        if (value > 1000000)
            return kernel->count;
    }
    if (*at != ' ' && *at != '\0')
        return kernel->count;
    *text = at + strspn(at, " ");
    *out_value = value;
    return index;
}

bool clblast_params_parse(enum clblast_kernel_id id, const char *text,
                          struct clblast_params *out)
{
    const struct clblast_kernel *kernel = &clblast_kernels[id];
    uint32_t seen = 0, value;
    memset(out, 0, sizeof(*out));
    while (*text != '\0') {
        uint32_t index = param_parse(kernel, &text, &value);
        if (index == kernel->count || (seen >> index & 1u) != 0)
            return false;
        seen |= 1u << index;
        out->values[index] = value;
    }
    return seen == (1u << kernel->count) - 1;
}

void clblast_params_format(enum clblast_kernel_id id,
                           const struct clblast_params *set,
                           char out_text[CLBLAST_PARAMS_TEXT_BYTES])
{
    const struct clblast_kernel *kernel = &clblast_kernels[id];
    size_t used = 0;
    out_text[0] = '\0';
    for (uint32_t i = 0; i < kernel->count && used < CLBLAST_PARAMS_TEXT_BYTES;
         i++)
        used += (size_t)snprintf(
            out_text + used, CLBLAST_PARAMS_TEXT_BYTES - used, "%s%s=%u",
            i > 0 ? " " : "", kernel->params[i].name, set->values[i]);
}

/* ---- CLBlast's table ---- */

/* In the first call of the process, CLBlast fills its table of tuned parameters
 * without a lock. Two simultaneous first calls would free each other's table,
 * so one thread makes the first call, which needs no kernel, under a mutex. */
void clblast_init_once(cl_command_queue *queue)
{
    static atomic_bool done;
    static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
    const size_t n = 16;
    size_t bytes;
    if (atomic_load_explicit(&done, memory_order_acquire))
        return;
    pthread_mutex_lock(&mutex);
    if (!atomic_load_explicit(&done, memory_order_relaxed) &&
        CLBlastSGemmTempBufferSize(CLBlastLayoutRowMajor, CLBlastTransposeNo,
                                   CLBlastTransposeNo, n, n, n, 0, n, 0, n, 0,
                                   n, queue, &bytes) == CLBlastSuccess)
        atomic_store_explicit(&done, true, memory_order_release);
    pthread_mutex_unlock(&mutex);
}

#ifndef TANDEM_CLBLAST_PARAMETERS
bool clblast_params_get(cl_device_id device, enum clblast_kernel_id id,
                        struct clblast_params *out)
{
    (void)device;
    (void)id;
    memset(out, 0, sizeof(*out));
    return false;
}
#endif

int clblast_params_set(cl_device_id device, enum clblast_kernel_id id,
                       const struct clblast_params *set)
{
    const struct clblast_kernel *kernel = &clblast_kernels[id];
    const char *names[CLBLAST_MAX_PARAMS];
    size_t values[CLBLAST_MAX_PARAMS];
    for (uint32_t i = 0; i < kernel->count; i++) {
        names[i] = kernel->params[i].name;
        values[i] = set->values[i];
    }
    return CLBlastOverrideParameters(device, kernel->name,
                                     CLBlastPrecisionSingle, kernel->count,
                                     names, values);
}
