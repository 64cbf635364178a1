/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The fault script: which calls fail, and how. Protected by one mutex, which
 * is not held while a call hangs.
 */
#include <config.h>

#include "internal.h"

#include <execinfo.h>
#include <link.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t released = PTHREAD_COND_INITIALIZER;
static struct layer_script script;
static uint64_t releases, hanging;
static enum function failed;
static cl_int failed_code;
static uint64_t calls[FUNCTIONS];
static bool build_failed;
static bool site_reached; /* The nth call of the script's site was made. */

/* ---- call sites ---- */

#define FRAMES 48
#define MAX_CALLS (1u << 16)

static struct recorded_call {
    enum function function;
    uint64_t site;
} recorded[MAX_CALLS];

/*
 * Returns true if the library's return addresses do not tell call sites apart:
 * this layer, the ICD loader and the program.
 */
static bool is_ignored(const struct link_map *library)
{
    struct dl_find_object own;

    return library->l_name[0] == '\0' ||
           strstr(library->l_name, "libOpenCL") != NULL ||
           (_dl_find_object((void *)(uintptr_t)is_ignored, &own) == 0 &&
            own.dlfo_link_map == library);
}

static uint64_t call_site(void)
{
    void *frames[FRAMES];
    const int depth = backtrace(frames, FRAMES);
    uint64_t hash = 1;

    for (int i = 0; i < depth; i++) {
        struct dl_find_object object;

        if (_dl_find_object(frames[i], &object) == 0 &&
            !is_ignored(object.dlfo_link_map))
            hash =
                (hash ^ ((uintptr_t)frames[i] - object.dlfo_link_map->l_addr)) *
                UINT64_C(0x9e3779b97f4a7c15);
    }
    return hash | 1;
}

static void call_record(enum function function)
{
    const uint64_t at = __atomic_fetch_add(&counts.asked, 1, __ATOMIC_RELAXED);

    if (at < MAX_CALLS)
        recorded[at] = (struct recorded_call){function, call_site()};
}

const char *layer_call(uint64_t nth, uint64_t *out_site)
{
    if (nth > counts.asked || nth > MAX_CALLS)
        return NULL;
    *out_site = recorded[nth - 1].site;
    return function_names[recorded[nth - 1].function];
}

/* ---- the script ---- */

void layer_set_fault(const struct layer_script *from)
{
    static const struct layer_script none;

    pthread_mutex_lock(&mutex);
    script = from ? *from : none;
    build_failed = site_reached = false;
    for (int i = 0; i < FUNCTIONS; i++)
        __atomic_store_n(&calls[i], 0, __ATOMIC_RELAXED);
    __atomic_store_n(&counts.calls, 0, __ATOMIC_RELAXED);
    __atomic_store_n(&counts.asked, 0, __ATOMIC_RELAXED);
    __atomic_store_n(&counts.faults, 0, __ATOMIC_RELAXED);
    pthread_mutex_unlock(&mutex);
}

void layer_release(void)
{
    pthread_mutex_lock(&mutex);
    script.fault = LAYER_FAULT_NONE;
    releases++;
    pthread_cond_broadcast(&released);
    pthread_mutex_unlock(&mutex);
}

uint64_t layer_hanging(void)
{
    return __atomic_load_n(&hanging, __ATOMIC_ACQUIRE);
}

const char *layer_failed(int32_t *out_code)
{
    *out_code = failed_code;
    return function_names[failed];
}

const char *layer_function(uint32_t index, uint64_t *out_calls)
{
    *out_calls = 0;
    if (index >= FUNCTIONS)
        return NULL;
    *out_calls = __atomic_load_n(&calls[index], __ATOMIC_RELAXED);
    return function_names[index];
}

uint64_t fault_releases(void)
{
    return __atomic_load_n(&releases, __ATOMIC_ACQUIRE);
}

void fault_hang(void)
{
    pthread_mutex_lock(&mutex);
    const uint64_t before = releases;

    __atomic_fetch_add(&hanging, 1, __ATOMIC_RELEASE);
    while (releases == before)
        pthread_cond_wait(&released, &mutex);
    __atomic_fetch_sub(&hanging, 1, __ATOMIC_RELEASE);
    pthread_mutex_unlock(&mutex);
}

static bool is_spared(enum function function)
{
    const char *name = function_names[function];

    return script.spare_releases &&
           (strncmp(name, "clRelease", 9) == 0 ||
            strncmp(name, "clRetain", 8) == 0 ||
            strcmp(name, "clEnqueueUnmapMemObject") == 0);
}

static cl_int code_of(enum function function)
{
    return script.code != CL_SUCCESS
               ? script.code
               : code_pick(function_names[function], script.pick);
}

/*
 * Counts the call if it is from the script's site. Returns true if it fails:
 * the nth one and the next times - 1 calls. The mutex is held.
 */
static bool call_counts(void)
{
    uint64_t at;

    if (script.site && !site_reached && script.site != call_site())
        return false;
    at = __atomic_add_fetch(&counts.asked, 1, __ATOMIC_RELAXED);
    site_reached = at >= script.nth;
    return at >= script.nth && at - script.nth < script.times;
}

/* Returns true if the script applies to this call. The mutex is held. */
static bool script_applies(enum function function, const char *text)
{

    if (script.function &&
        strcmp(script.function, function_names[function]) != 0)
        return false;
    if (script.text && (!text || !strstr(text, script.text)))
        return false;
    if (is_spared(function) || !call_counts())
        return false;
    count(&counts.faults, 1);
    failed = function;
    failed_code = code_of(function);
    build_failed |= function == F_clBuildProgram;
    return true;
}

bool fault_call(enum function function, const char *text, cl_int *out_code)
{
    bool hit = false;
    enum layer_fault fault;

    count(&counts.calls, 1);
    count(&calls[function], 1);
    if (__atomic_load_n(&script.fault, __ATOMIC_RELAXED) == LAYER_FAULT_NONE)
        return false;
    if (script.fault == LAYER_FAULT_RECORD)
        call_record(function);
    pthread_mutex_lock(&mutex);
    fault = script.fault;
    if (fault == LAYER_FAULT_CALL || fault == LAYER_FAULT_HANG)
        hit = script_applies(function, text);
    *out_code = code_of(function);
    pthread_mutex_unlock(&mutex);
    if (hit && fault == LAYER_FAULT_HANG) {
        fault_hang();
        return false;
    }
    return hit;
}

enum layer_fault fault_command(enum function function, const char *text,
                               cl_int *out_code)
{
    enum layer_fault fault;

    if (__atomic_load_n(&script.fault, __ATOMIC_RELAXED) == LAYER_FAULT_NONE)
        return LAYER_FAULT_NONE;
    pthread_mutex_lock(&mutex);
    fault = script.fault;
    if ((fault != LAYER_FAULT_AFTER_ENQUEUE && fault != LAYER_FAULT_ENDLESS) ||
        !script_applies(function, text))
        fault = LAYER_FAULT_NONE;
    *out_code = code_of(function);
    pthread_mutex_unlock(&mutex);
    return fault;
}

bool fault_result(enum function function, const char *text)
{
    if (__atomic_load_n(&script.fault, __ATOMIC_RELAXED) != LAYER_FAULT_WRONG)
        return false;
    pthread_mutex_lock(&mutex);
    const bool hit =
        script.fault == LAYER_FAULT_WRONG && script_applies(function, text);
    pthread_mutex_unlock(&mutex);
    return hit;
}

bool fault_buffer(cl_int *out_code, uint64_t *out_times, bool *out_later)
{
    bool hit = false;

    if (__atomic_load_n(&script.fault, __ATOMIC_RELAXED) == LAYER_FAULT_NONE)
        return false;
    pthread_mutex_lock(&mutex);
    *out_later = script.fault == LAYER_FAULT_LAZY_LATER;
    if (*out_later || script.fault == LAYER_FAULT_LAZY)
        hit = call_counts() && counts.asked == script.nth;
    *out_code = code_of(F_clCreateBuffer);
    *out_times = script.times;
    pthread_mutex_unlock(&mutex);
    return hit;
}

const char *fault_build_log(void)
{
    const char *log;

    pthread_mutex_lock(&mutex);
    log = build_failed ? script.build_log : NULL;
    pthread_mutex_unlock(&mutex);
    return log;
}

/* ---- the environment ---- */

static enum layer_fault fault_of(const char *name)
{
    static const char *const names[] = {"none",    "call",       "later",
                                        "lazy",    "lazy-later", "hang",
                                        "endless", "wrong"};

    for (int i = 0; i < (int)(sizeof names / sizeof *names); i++)
        if (strcmp(name, names[i]) == 0)
            return (enum layer_fault)i;
    fprintf(stderr, "TANDEM_LAYER_FAULT: no fault \"%s\"\n", name);
    return LAYER_FAULT_NONE;
}

void fault_environment(void)
{
    static char function[64];
    const char *text = getenv("TANDEM_LAYER_FAULT");
    struct layer_script from = {.fault = LAYER_FAULT_NONE};
    unsigned long long nth = 0, times = 1;
    char name[16];
    int code = 0;

    if (!text)
        return;
    if (sscanf(text, "%15[^:]:%63[^:]:%llu:%d:%llu", name, function, &nth,
               &code, &times) < 4) {
        fprintf(stderr, "TANDEM_LAYER_FAULT=%s: not FAULT:FUNCTION:NTH:CODE\n",
                text);
        return;
    }
    from.fault = fault_of(name);
    from.function = strcmp(function, "*") == 0 ? NULL : function;
    from.text = getenv("TANDEM_LAYER_TEXT");
    from.nth = nth;
    from.times = times ? times : UINT64_MAX;
    from.code = code;
    layer_set_fault(&from);
}
