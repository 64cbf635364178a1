/* SPDX-License-Identifier: Apache-2.0 */
/* What the costs that were found choose; see tune.h. */
#include "opencl/tune/tune.h"

#include <stdio.h>
#include <string.h>

#include "opencl/device/device.h"

#define PREFIX "gemm."
#define TEXT_BYTES 256u

/* Squares whose routes are told. */
static const int64_t sizes[] = {256, 1024, 4096};
static const struct {
    const char *name;
    uint32_t dtype, flags;
} kinds[] = {{"f32", TANDEM_F32, 0},
             {"tf32", TANDEM_F32, TANDEM_GEMM_ALLOW_TF32},
             {"f16", TANDEM_F16, 0}};

/* Takes one result of the measurements: updates the costs that `user`, a struct
 * chosen, chooses by, and passes the result on. */
static void chosen_note(void *user, const char *key, const char *value)
{
    struct chosen *chosen = user;
    if (strncmp(key, PREFIX, strlen(PREFIX)) == 0)
        costs_take(&chosen->routes.costs, key + strlen(PREFIX), value);
    chosen->told.sink(chosen->told.user, key, value);
}

void chosen_start(struct chosen *chosen, struct tandem_device *device,
                  const struct findings *findings)
{
    struct routes *routes = &chosen->routes;
    memset(chosen, 0, sizeof(*chosen));
    routes_start(routes, device->hardware);
    routes->costs = device->routes.costs;
    routes->patched = device->routes.patched;
    atomic_store(&routes->broken, atomic_load(&device->routes.broken));
    chosen->told = *findings;
    chosen->findings = (struct findings){chosen_note, chosen};
}

static const char *route_name(struct routes *routes, int64_t size,
                              uint32_t dtype, uint32_t flags)
{
    const struct tandem_gemm gemm = {.struct_size = sizeof(gemm),
                                     .dtype = dtype,
                                     .flags = flags,
                                     .m = size,
                                     .n = size,
                                     .k = size,
                                     .batch = 1,
                                     .alpha = 1,
                                     .a = {NULL, 0, size, size * size},
                                     .b = {NULL, 0, size, size * size},
                                     .c = {NULL, 0, size, size * size},
                                     .c_dtype = dtype};
    struct route route;
    gemm_selector_compute(routes, &gemm, &route);
    return route.clblast ? "clblast" : tiles[route.tile].name;
}

void chosen_tell(struct chosen *chosen)
{
    for (uint32_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
        char key[32], text[TEXT_BYTES] = "";
        for (uint32_t j = 0; j < sizeof(sizes) / sizeof(sizes[0]); j++) {
            size_t used = strlen(text);
            snprintf(text + used, sizeof(text) - used, "%s%d %s",
                     j == 0 ? "" : ", ", (int)sizes[j],
                     route_name(&chosen->routes, sizes[j], kinds[i].dtype,
                                kinds[i].flags));
        }
        snprintf(key, sizeof(key), PREFIX "chosen.%s", kinds[i].name);
        chosen->told.sink(chosen->told.user, key, text);
    }
}
