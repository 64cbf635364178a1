/* SPDX-License-Identifier: Apache-2.0 */
/* Loads the plugin with the test layer below it; see plugin_under_layer.h. */
#include "plugin_under_layer.h"

#include <dirent.h>
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "opencl_workload.h"

#define LAYER ".libs/opencl-layer.so"
#define PLUGIN ".libs/tandem-opencl.so"

const char *const plug_objects[LAYER_OBJECTS] = {
    "contexts", "queues", "memory objects", "programs", "kernels", "events"};

/* ISO C has no cast from the void * of dlsym to a function pointer. */
static bool find(void *library, const char *name, void *out_function)
{
    void *symbol = dlsym(library, name);

    memcpy(out_function, &symbol, sizeof symbol);
    return symbol != NULL;
}

void plug_layer(struct plug *plug)
{
    char *here = getcwd(NULL, 0), path[4096];
    void *layer;

    snprintf(path, sizeof path, "%s/" LAYER, here ? here : "");
    free(here);
    setenv("OPENCL_LAYERS", path, 1);
    layer = dlopen(path, RTLD_NOW);
    if (!layer || !find(layer, "layer_counts_read", &plug->counts) ||
        !find(layer, "layer_set_fault", &plug->script_set) ||
        !find(layer, "layer_release", &plug->release) ||
        !find(layer, "layer_hanging", &plug->hanging) ||
        !find(layer, "layer_defer_submission", &plug->hold) ||
        !find(layer, "layer_function", &plug->function) ||
        !find(layer, "layer_call", &plug->call) ||
        !find(layer, "layer_failed", &plug->failed) ||
        !find(layer, "layer_codes", &plug->codes)) {
        fprintf(stderr, "%s: %s\n", path, dlerror());
        exit(1);
    }
}

void plug_load(struct plug *plug)
{
    plug_layer(plug);
    plug->api = workload_plugin(PLUGIN);
    if (!plug->api)
        exit(1);
}

bool plug_start(struct plug *plug)
{
    uint32_t count;

    plug_load(plug);
    if (plug->api->device_count(&count) == TANDEM_OK)
        return true;
    fprintf(stderr, "%s\n", plug->api->last_error());
    return false;
}

struct layer_counts plug_counts(const struct plug *plug)
{
    struct layer_counts counts;

    plug->counts(&counts);
    return counts;
}

uint64_t plug_alive(const struct layer_counts *counts, int object)
{
    return counts->created[object] + counts->retained[object] -
           counts->released[object];
}

/* ---- the cache directory ---- */

static void empty(const char *path)
{
    DIR *directory = opendir(path);
    const struct dirent *entry;

    while (directory && (entry = readdir(directory))) {
        char file[8192];

        snprintf(file, sizeof file, "%s/%s", path, entry->d_name);
        if (entry->d_name[0] != '.')
            unlink(file);
    }
    if (directory)
        closedir(directory);
}

void plug_cache(char *out, size_t room, const char *name)
{
    char *here = getcwd(NULL, 0);

    snprintf(out, room, "%s/test-cache-%s", here ? here : "", name);
    free(here);
    empty(out);
}

void plug_cache_remove(const char *path)
{
    empty(path);
    rmdir(path);
}
