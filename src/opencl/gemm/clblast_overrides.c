/* SPDX-License-Identifier: Apache-2.0 */
/* Overrides CLBlast's kernel parameters; see clblast_overrides.h. The state
 * belongs to the process, because CLBlast's parameters do. */
#include "opencl/gemm/clblast_overrides.h"

#include <clblast_c.h>
#include <pthread.h>
#include <string.h>

#include "opencl/gemm/clblast.h"
#include "opencl/device/device.h"

#define MAX_DEVICES 32u

/* Overridden parameters of a device in this process; guarded by `mutex`. */
struct device_overrides {
    cl_device_id id;
    uint32_t changed; /* bit i is set if CLBlast kernel i has overrides */
    struct clblast_params defaults[CLBLAST_KERNEL_COUNT];
    struct clblast_params current[CLBLAST_KERNEL_COUNT];
    /* Bit 0: single GEMMs were self-tested. Bit 1: batched GEMMs were. */
    uint32_t self_tested;
    bool failed;        /* a self-test failed, so overrides stay disabled */
    uint32_t alignment; /* required operand alignment in bytes; 0 if unknown */
};

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static struct device_overrides devices[MAX_DEVICES];

/* Returns the state of a device, or NULL if there are more than MAX_DEVICES
 * devices. The caller must hold the mutex. */
static struct device_overrides *device_overrides_get(cl_device_id id)
{
    for (uint32_t i = 0; i < MAX_DEVICES; i++) {
        if (devices[i].id == NULL)
            devices[i].id = id;
        if (devices[i].id == id)
            return &devices[i];
    }
    return NULL;
}

bool clblast_overrides_parse(struct clblast_overrides *overrides,
                             const struct platform_device *hardware,
                             const char *key, const char *value)
{
    enum clblast_kernel_id id = CLBLAST_XGEMM;
    struct clblast_params set;
    while (id < CLBLAST_KERNEL_COUNT &&
           strcmp(clblast_kernels[id].name, key) != 0)
        id++;
    if (id == CLBLAST_KERNEL_COUNT)
        return true;
    if (!clblast_params_parse(id, value, &set) ||
        !clblast_params_valid(id, &set, &hardware->info))
        return false;
    overrides->sets[id] = set;
    overrides->given |= 1u << id;
    return true;
}

/* Sets the parameters of a CLBlast kernel. Before the first override, saves
 * CLBlast's own parameters. The caller must hold the mutex. */
static bool device_overrides_set(struct device_overrides *state,
                                 enum clblast_kernel_id id,
                                 const struct clblast_params *set)
{
    uint32_t bit = 1u << id;
    if ((state->changed & bit) == 0 &&
        !clblast_params_get(state->id, id, &state->defaults[id]))
        return false;
    if ((state->changed & bit) != 0 &&
        memcmp(set, &state->current[id], sizeof(*set)) == 0)
        return true;
    if (clblast_params_set(state->id, id, set) != CLBlastSuccess)
        return false;
    state->changed |= bit;
    state->current[id] = *set;
    state->self_tested = 0;
    state->alignment = 0;
    return true;
}

/* Restores CLBlast's own parameters. The caller must hold the mutex. */
static void device_overrides_restore(struct device_overrides *state)
{
    for (uint32_t i = 0; i < CLBLAST_KERNEL_COUNT; i++)
        if ((state->changed >> i & 1u) != 0)
            clblast_params_set(state->id, (enum clblast_kernel_id)i,
                               &state->defaults[i]);
    state->changed = 0;
    state->self_tested = 0;
    state->alignment = 0;
}

void clblast_overrides_apply(struct tandem_device *device)
{
    const struct clblast_overrides *overrides = &device->clblast_overrides;
    bool whole = true;
    if (overrides->given == 0)
        return;
    clblast_init_once(&device->utility);
    pthread_mutex_lock(&mutex);
    struct device_overrides *state = device_overrides_get(device->hardware->id);
    bool failed = state != NULL && state->failed;
    for (uint32_t i = 0; i < CLBLAST_KERNEL_COUNT && state != NULL && !failed;
         i++)
        if ((overrides->given >> i & 1u) != 0)
            whole &= device_overrides_set(state, (enum clblast_kernel_id)i,
                                          &overrides->sets[i]);
    pthread_mutex_unlock(&mutex);
    if (state == NULL || !whole)
        device_log(device, TANDEM_LOG_WARNING,
                   "%s: CLBlast rejects parameters of the profile; calibrate "
                   "again",
                   device->hardware->info.name);
}

void clblast_overrides_restore(const struct platform_device *hardware)
{
    pthread_mutex_lock(&mutex);
    for (uint32_t i = 0; i < MAX_DEVICES; i++)
        if (devices[i].id == hardware->id && devices[i].changed != 0)
            device_overrides_restore(&devices[i]);
    pthread_mutex_unlock(&mutex);
}

/* Alignment that is sufficient for CLBlast's longest vector loads. */
#define MAX_ALIGNMENT_BYTES 64u

static uint32_t operand_alignment(cl_device_id device)
{
    static const struct {
        enum clblast_kernel_id id;
        const char *name; /* parameter that sets a vector length in floats */
    } lengths[] = {
        {CLBLAST_XGEMM, "VWM"},         {CLBLAST_XGEMM, "VWN"},
        {CLBLAST_XGEMM_DIRECT, "VWMD"}, {CLBLAST_XGEMM_DIRECT, "VWND"},
        {CLBLAST_COPY, "COPY_VW"},      {CLBLAST_TRANSPOSE, "TRA_WPT"}};
    uint32_t max_length = 1;
    for (size_t i = 0; i < sizeof(lengths) / sizeof(lengths[0]); i++) {
        const struct clblast_kernel *kernel = &clblast_kernels[lengths[i].id];
        struct clblast_params set;
        if (!clblast_params_get(device, lengths[i].id, &set))
            return MAX_ALIGNMENT_BYTES;
        for (uint32_t j = 0; j < kernel->count; j++)
            if (strcmp(kernel->params[j].name, lengths[i].name) == 0 &&
                set.values[j] > max_length)
                max_length = set.values[j];
    }
    return max_length < MAX_ALIGNMENT_BYTES / sizeof(float)
               ? max_length * (uint32_t)sizeof(float)
               : MAX_ALIGNMENT_BYTES;
}

uint32_t clblast_operand_alignment(const struct platform_device *hardware)
{
    uint32_t alignment = MAX_ALIGNMENT_BYTES;
    pthread_mutex_lock(&mutex);
    struct device_overrides *state = device_overrides_get(hardware->id);
    if (state != NULL) {
        if (state->alignment == 0)
            state->alignment = operand_alignment(hardware->id);
        alignment = state->alignment;
    }
    pthread_mutex_unlock(&mutex);
    return alignment;
}

void clblast_overrides_self_test(struct tandem_device *device, bool batched)
{
    uint32_t bit = 1u << batched;
    pthread_mutex_lock(&mutex);
    struct device_overrides *state = device_overrides_get(device->hardware->id);
    bool self_tested =
        state == NULL || state->changed == 0 || (state->self_tested & bit) != 0;
    struct clblast_params routine = {{0}};
    if (!self_tested)
        clblast_params_get(device->hardware->id, CLBLAST_GEMM_ROUTINE,
                           &routine);
    pthread_mutex_unlock(&mutex);
    if (self_tested)
        return;
    enum tandem_status status =
        clblast_self_test_run(device, batched, routine.values[0]);
    /* These errors do not prove that the parameters are wrong. */
    if (status == TANDEM_DEVICE_LOST || status == TANDEM_OUT_OF_MEMORY)
        return;
    pthread_mutex_lock(&mutex);
    bool drop = status != TANDEM_OK && state->changed != 0;
    if (drop) {
        device_overrides_restore(state);
        state->failed = true;
    }
    state->self_tested |= bit;
    pthread_mutex_unlock(&mutex);
    if (drop)
        device_log(
            device, TANDEM_LOG_WARNING,
            "%s: CLBlast parameters of the profile are not used, because "
            "their self-test failed: %s",
            device->hardware->info.name, last_error_get());
}
