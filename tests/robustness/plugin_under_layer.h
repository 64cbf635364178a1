/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The plugin behind the layer, for tests of faults: both loaded, and the
 * layer's functions at hand.  One thread.
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

/* The layer alone, from .libs of the build directory, in which the test runs:
 * whatever OpenCL is used from then on, libtandem's too, is behind it. */
void plug_layer(struct plug *plug);
/* And the plugin; touches no OpenCL. */
void plug_load(struct plug *plug);
/* Likewise, and asks for devices.  False, with a line on stderr, where there
 * is no OpenCL. */
bool plug_start(struct plug *plug);
struct layer_counts plug_counts(const struct plug *plug);
/* Objects of a kind that are alive, references counted. */
uint64_t plug_alive(const struct layer_counts *counts, int object);

/* The path of a cache directory for the test, empty. */
void plug_cache(char *out, size_t room, const char *name);
void plug_cache_remove(const char *path);

#endif
