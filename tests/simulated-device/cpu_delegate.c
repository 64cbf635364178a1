/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds and loads the CPU plugin, which computes the results of the simulated
 * GPU, in this plugin's directory. Any thread may call it.
 */
#include <config.h>

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

#include "common/last_error.h"
#include "internal.h"

static pthread_once_t inner_once = PTHREAD_ONCE_INIT;
static const struct tandem_backend *inner;
static char inner_problem[512];

static void inner_load(void)
{
    tandem_backend_query_fn query;
    char path[4096];
    const char *slash;
    Dl_info info;
    void *object, *symbol;

    if (!dladdr((void *)&inner_once, &info) || !info.dli_fname ||
        !(slash = strrchr(info.dli_fname, '/'))) {
        snprintf(inner_problem, sizeof inner_problem,
                 "simulated: cannot tell where this plugin lies");
        return;
    }
    snprintf(path, sizeof path, "%.*s/tandem-cpu.so",
             (int)(slash - info.dli_fname), info.dli_fname);
    object = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!object) {
        snprintf(inner_problem, sizeof inner_problem,
                 "simulated: needs the CPU plugin beside it: %s", dlerror());
        return;
    }
    symbol = dlsym(object, TANDEM_BACKEND_QUERY_SYMBOL);
    memcpy(&query, &symbol, sizeof query);
    inner = query ? query(TANDEM_ABI_MAJOR) : NULL;
    if (!inner)
        snprintf(inner_problem, sizeof inner_problem,
                 "simulated: the CPU plugin does not serve ABI %u",
                 TANDEM_ABI_MAJOR);
}

const struct tandem_backend *inner_backend(void)
{
    pthread_once(&inner_once, inner_load);
    if (!inner)
        last_error_set(TANDEM_NO_DEVICE, "%s", inner_problem);
    return inner;
}

enum tandem_status inner_failed(enum tandem_status status)
{
    return last_error_set(status, "simulated: %s", inner->last_error());
}
