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

/* The plugin's table, and the functions of the layer. */
struct plug {
    const struct tandem_backend *api;
    __typeof__(layer_counts_read) *counts;
    __typeof__(layer_set_fault) *script_set;
    __typeof__(layer_release) *release;
    __typeof__(layer_hanging) *hanging;
    __typeof__(layer_defer_submission) *hold;
    __typeof__(layer_function) *function;
    __typeof__(layer_call) *call;
    __typeof__(layer_failed) *failed;
    __typeof__(layer_codes) *codes;
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
