/* SPDX-License-Identifier: Apache-2.0 */
/* What CLBlast was told, by device; see clblast_overrides.h. */
#include "opencl/gemm/clblast_overrides.h"

#include <clblast_c.h>
#include <pthread.h>
#include <string.h>

#include "config.h"
#include "opencl/gemm/clblast.h"
#include "opencl/device/device.h"

#define MOST_DEVICES 32u

enum proof_bit { PROVED_SINGLE = 1, PROVED_BATCHED = 2 };

/* One piece of hardware's. */
struct applied {
    cl_device_id id;
    uint32_t changed; /* bits of families that are not CLBlast's own */
    struct parameter_set own[FAMILIES], present[FAMILIES];
    uint32_t proved; /* enum proof_bit */
    bool bad;        /* they were wrong: never again */
    uint32_t alignment; /* parameters_alignment's; 0: not known */
};

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static struct applied all[MOST_DEVICES];

/* The mutex is held; NULL where there is no room. */
static struct applied *applied_of(cl_device_id id)
{
    for (uint32_t i = 0; i < MOST_DEVICES; i++) {
        if (all[i].id == NULL)
            all[i].id = id;
        if (all[i].id == id)
            return &all[i];
    }
    return NULL;
}

/* ---- the profile's ---- */

struct family_limits parameters_limits(const struct platform_device *hardware)
{
    return (struct family_limits){hardware->info.max_work_group_size,
                                  hardware->info.local_memory_bytes};
}

bool parameters_take(struct parameters *parameters,
                     const struct platform_device *hardware, const char *key,
                     const char *value)
{
    enum family_id id = family_find(key);
    struct family_limits limits = parameters_limits(hardware);
    struct parameter_set set;
    if (id == FAMILIES)
        return true;
    if (!family_read(id, value, &set) || !family_valid(id, &set, &limits))
        return false;
    parameters->sets[id] = set;
    parameters->given |= 1u << id;
    return true;
}

/* ---- CLBlast's ---- */

static void names_fill(enum family_id id, const char *names[])
{
    for (uint32_t i = 0; i < families[id].count; i++)
        names[i] = families[id].parameters[i].name;
}

bool parameters_current(cl_device_id device, enum family_id id,
                        struct parameter_set *out)
{
#ifdef TANDEM_CLBLAST_PARAMETERS
    const char *names[FAMILY_PARAMETERS];
    memset(out, 0, sizeof(*out));
    names_fill(id, names);
    return clblast_parameters(device, families[id].name, families[id].count,
                              names, out->values);
#else
    (void)device;
    (void)id;
    memset(out, 0, sizeof(*out));
    return false;
#endif
}

int parameters_set(cl_device_id device, enum family_id id,
                   const struct parameter_set *set)
{
    const char *names[FAMILY_PARAMETERS];
    size_t values[FAMILY_PARAMETERS];
    names_fill(id, names);
    for (uint32_t i = 0; i < families[id].count; i++)
        values[i] = set->values[i];
    return CLBlastOverrideParameters(device, families[id].name,
                                     CLBlastPrecisionSingle,
                                     families[id].count, names, values);
}

/* ---- giving and taking back ---- */

/* The mutex is held. */
static bool applied_change(struct applied *applied, enum family_id id,
                           const struct parameter_set *set)
{
    uint32_t bit = 1u << id;
    if ((applied->changed & bit) == 0 &&
        !parameters_current(applied->id, id, &applied->own[id]))
        return false;
    if ((applied->changed & bit) != 0 &&
        family_same(id, set, &applied->present[id]))
        return true;
    if (parameters_set(applied->id, id, set) != CLBlastSuccess)
        return false;
    applied->changed |= bit;
    applied->present[id] = *set;
    applied->proved = 0;
    applied->alignment = 0;
    return true;
}

/* The mutex is held. */
static void applied_undo(struct applied *applied)
{
    for (uint32_t i = 0; i < FAMILIES; i++)
        if ((applied->changed >> i & 1u) != 0)
            parameters_set(applied->id, (enum family_id)i, &applied->own[i]);
    applied->changed = 0;
    applied->proved = 0;
    applied->alignment = 0;
}

void clblast_overrides_apply(struct tandem_device *device)
{
    const struct parameters *parameters = &device->parameters;
    bool whole = true;
    if (parameters->given == 0)
        return;
    clblast_begin(&device->utility);
    pthread_mutex_lock(&mutex);
    struct applied *applied = applied_of(device->hardware->id);
    bool bad = applied != NULL && applied->bad;
    for (uint32_t i = 0; i < FAMILIES && applied != NULL && !bad; i++)
        if ((parameters->given >> i & 1u) != 0)
            whole &= applied_change(applied, (enum family_id)i,
                                    &parameters->sets[i]);
    pthread_mutex_unlock(&mutex);
    if (applied == NULL || !whole)
        device_log(device, TANDEM_LOG_WARNING,
                   "%s: CLBlast does not take parameters of the profile",
                   device->hardware->info.name);
}

void parameters_restore(const struct platform_device *hardware)
{
    pthread_mutex_lock(&mutex);
    for (uint32_t i = 0; i < MOST_DEVICES; i++)
        if (all[i].id == hardware->id && all[i].changed != 0)
            applied_undo(&all[i]);
    pthread_mutex_unlock(&mutex);
}

/* ---- alignment ---- */

/* Of the longest vector of any device. */
#define MOST_ALIGNMENT 64u

/* The value of one parameter; false where CLBlast does not say. */
static bool value_current(cl_device_id device, enum family_id id,
                          const char *name, uint32_t *out)
{
    struct parameter_set set;
    if (!parameters_current(device, id, &set))
        return false;
    for (uint32_t i = 0; i < families[id].count; i++)
        if (strcmp(families[id].parameters[i].name, name) == 0)
            *out = set.values[i];
    return true;
}

static uint32_t alignment_of(cl_device_id device)
{
    static const struct {
        enum family_id id;
        const char *name; /* of the length of a vector, in floats */
    } lengths[] = {{FAMILY_XGEMM, "VWM"},    {FAMILY_XGEMM, "VWN"},
                   {FAMILY_DIRECT, "VWMD"},  {FAMILY_DIRECT, "VWND"},
                   {FAMILY_COPY, "COPY_VW"}, {FAMILY_TRANSPOSE, "TRA_WPT"}};
    uint32_t most = 1, length = 1;
    for (size_t i = 0; i < sizeof(lengths) / sizeof(lengths[0]); i++) {
        if (!value_current(device, lengths[i].id, lengths[i].name, &length))
            return MOST_ALIGNMENT;
        most = length > most ? length : most;
    }
    return most < MOST_ALIGNMENT / sizeof(float)
               ? most * (uint32_t)sizeof(float)
               : MOST_ALIGNMENT;
}

uint32_t parameters_alignment(const struct platform_device *hardware)
{
    uint32_t alignment = MOST_ALIGNMENT;
    pthread_mutex_lock(&mutex);
    struct applied *applied = applied_of(hardware->id);
    if (applied != NULL) {
        if (applied->alignment == 0)
            applied->alignment = alignment_of(hardware->id);
        alignment = applied->alignment;
    }
    pthread_mutex_unlock(&mutex);
    return alignment;
}

/* ---- proof ---- */

void clblast_overrides_self_test(struct tandem_device *device, bool batched)
{
    uint32_t bit = batched ? PROVED_BATCHED : PROVED_SINGLE;
    pthread_mutex_lock(&mutex);
    struct applied *applied = applied_of(device->hardware->id);
    bool proved = applied == NULL || applied->changed == 0 ||
                  (applied->proved & bit) != 0;
    struct parameter_set routine = {{0}};
    if (!proved)
        parameters_current(device->hardware->id, FAMILY_ROUTINE, &routine);
    pthread_mutex_unlock(&mutex);
    if (proved)
        return;
    enum tandem_status status =
        clblast_check(device, batched, routine.values[0]);
    /* No word about the parameters. */
    if (status == TANDEM_DEVICE_LOST || status == TANDEM_OUT_OF_MEMORY)
        return;
    pthread_mutex_lock(&mutex);
    bool drop = status != TANDEM_OK && applied->changed != 0;
    if (drop) {
        applied_undo(applied);
        applied->bad = true;
    }
    applied->proved |= bit;
    pthread_mutex_unlock(&mutex);
    if (drop)
        device_log(device, TANDEM_LOG_WARNING,
                   "%s: CLBlast's parameters of the profile are dropped: %s",
                   device->hardware->info.name, message_get());
}
