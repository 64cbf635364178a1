/* SPDX-License-Identifier: Apache-2.0 */
/* Overrides CLBlast's kernel parameters; see clblast_overrides.h. The state
 * belongs to the process, because CLBlast's parameters do. */
#include "opencl/gemm/clblast_overrides.h"
#include "opencl/gemm/clblast_params.h"

#include <clblast_c.h>
#include <pthread.h>
#include <string.h>

#include "opencl/gemm/clblast.h"
#include "opencl/device/device.h"

#define MAX_DEVICES 32u

enum self_test_bit { SELF_TESTED_SINGLE = 1, SELF_TESTED_BATCHED = 2 };

/* Overrides of one device for all opens in the process; guarded by `mutex`. */
struct device_overrides {
    cl_device_id id;
    uint32_t changed; /* bit i is set if CLBlast kernel i has overrides */
    struct clblast_params defaults[CLBLAST_KERNEL_COUNT];
    struct clblast_params current[CLBLAST_KERNEL_COUNT];
    uint32_t self_tested; /* finished self-tests; bits of enum self_test_bit */
    bool failed;          /* a self-test failed; overrides stay disabled */
    uint32_t alignment;   /* operand alignment in bytes; 0 means unknown */
};

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static struct device_overrides devices[MAX_DEVICES];

/* Returns the state of a device, or NULL if there are more than MAX_DEVICES.
 * The caller holds the mutex of `devices`. */
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

/* ---- tuning results ---- */

struct clblast_device_limits
clblast_device_limits_get(const struct platform_device *hardware)
{
    return (struct clblast_device_limits){hardware->info.max_work_group_size,
                                          hardware->info.local_memory_bytes};
}

bool clblast_overrides_parse(struct clblast_overrides *overrides,
                             const struct platform_device *hardware,
                             const char *key, const char *value)
{
    enum clblast_kernel_id id = clblast_kernel_find(key);
    struct clblast_device_limits limits = clblast_device_limits_get(hardware);
    struct clblast_params set;
    if (id == CLBLAST_KERNEL_COUNT)
        return true;
    if (!clblast_params_parse(id, value, &set) ||
        !clblast_params_valid(id, &set, &limits))
        return false;
    overrides->sets[id] = set;
    overrides->given |= 1u << id;
    return true;
}

/* ---- apply and restore ---- */

/* Sets the parameters of a CLBlast kernel. Saves CLBlast's own parameters
 * before the first override. The caller holds the mutex of `devices`. */
static bool device_overrides_set(struct device_overrides *state,
                                 enum clblast_kernel_id id,
                                 const struct clblast_params *set)
{
    uint32_t bit = 1u << id;
    if ((state->changed & bit) == 0 &&
        !clblast_params_get(state->id, id, &state->defaults[id]))
        return false;
    if ((state->changed & bit) != 0 &&
        clblast_params_equal(id, set, &state->current[id]))
        return true;
    if (clblast_params_set(state->id, id, set) != CLBlastSuccess)
        return false;
    state->changed |= bit;
    state->current[id] = *set;
    state->self_tested = 0;
    state->alignment = 0;
    return true;
}

/* Restores all kernels' parameters. The caller holds the mutex of `devices`. */
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

/* ---- alignment ---- */

/* Alignment that is sufficient for CLBlast's longest vector loads. */
#define MAX_ALIGNMENT_BYTES 64u

/* Reads a kernel parameter. Returns false if CLBlast does not report it. */
static bool param_get(cl_device_id device, enum clblast_kernel_id id,
                      const char *name, uint32_t *out)
{
    struct clblast_params set;
    if (!clblast_params_get(device, id, &set))
        return false;
    for (uint32_t i = 0; i < clblast_kernels[id].count; i++)
        if (strcmp(clblast_kernels[id].params[i].name, name) == 0)
            *out = set.values[i];
    return true;
}

static uint32_t operand_alignment(cl_device_id device)
{
    static const struct {
        enum clblast_kernel_id id;
        const char *name; /* parameter that sets a vector length in floats */
    } lengths[] = {
        {CLBLAST_XGEMM, "VWM"},         {CLBLAST_XGEMM, "VWN"},
        {CLBLAST_XGEMM_DIRECT, "VWMD"}, {CLBLAST_XGEMM_DIRECT, "VWND"},
        {CLBLAST_COPY, "COPY_VW"},      {CLBLAST_TRANSPOSE, "TRA_WPT"}};
    uint32_t max_length = 1, length = 1;
    for (size_t i = 0; i < sizeof(lengths) / sizeof(lengths[0]); i++) {
        if (!param_get(device, lengths[i].id, lengths[i].name, &length))
            return MAX_ALIGNMENT_BYTES;
        max_length = length > max_length ? length : max_length;
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

/* ---- self-test ---- */

void clblast_overrides_self_test(struct tandem_device *device, bool batched)
{
    uint32_t bit = batched ? SELF_TESTED_BATCHED : SELF_TESTED_SINGLE;
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
    /* A lost device or a lack of memory does not prove wrong parameters. */
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
