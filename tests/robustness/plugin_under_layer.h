/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Loads the plugin and the OpenCL layer below it, and the layer's control
 * functions. For fault tests with one thread.
 */
#ifndef TANDEM_TESTS_LAYER_PLUG_H
#define TANDEM_TESTS_LAYER_PLUG_H

#include <stdbool.h>
#include <stddef.h>
#include <tandem/backend.h>

#include "../opencl-layer/layer.h"

#define LAYER_MOST_FUNCTIONS 128u

struct plug {
    const struct tandem_backend *api;
    layer_counts_fn counts;
    layer_script_fn script_set;
    layer_release_fn release;
    layer_hanging_fn hanging;
    layer_hold_fn hold;
    layer_function_fn function;
    layer_failed_fn failed;
    layer_codes_fn codes;
};

extern const char *const plug_objects[LAYER_OBJECTS];

/*
 * Loads the layer from .libs of the build directory, which is the working
 * directory of tests. All later OpenCL calls of the process go through the
 * layer, libtandem's included.
 */
void plug_layer(struct plug *plug);
/* Loads the layer and the plugin without calling OpenCL. */
void plug_load(struct plug *plug);
/*
 * Loads the layer and the plugin and lists the devices. Returns false, with a
 * line on stderr, if there is no OpenCL.
 */
bool plug_start(struct plug *plug);
struct layer_counts plug_counts(const struct plug *plug);
/* Returns the number of live references to objects of a kind. */
uint64_t plug_alive(const struct layer_counts *counts, int object);

/* Writes the path of an empty cache directory for the test. */
void plug_cache(char *out, size_t room, const char *name);
void plug_cache_remove(const char *path);

#endif
