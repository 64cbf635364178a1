/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads arbitrary bytes as a profile. The profile must be accepted or rejected
 * as a whole, and accepted profiles must predict finite times. If the first
 * byte is 'p', the rest are sections of a valid profile of this device;
 * otherwise they are the whole file.
 */
#include <config.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "host/profile/profile_search.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

#define HEAD                                                                   \
    "{\"format\":2,\"device\":{\"backend\":\"simulated\","                     \
    "\"name\":\"Device\",\"uuid\":\"\",\"pci\":\"0000:01:00.0\","              \
    "\"driver\":\"1\",\"plugin_version\":\"1\",\"host_cpu\":\"cpu\"},"

static const struct profile_key key = {.backend = "simulated",
                                       .name = "Device",
                                       .uuid = "",
                                       .pci = "0000:01:00.0",
                                       .driver = "1",
                                       .plugin_version = "1",
                                       .host_cpu = "cpu"};

static void expect(bool good, const char *what)
{
    if (good)
        return;
    fprintf(stderr, "%s\n", what);
    abort();
}

static void time_expect(double ns)
{
    /* Interpolation may round to slightly below zero. */
    expect(isfinite(ns) && ns >= -1, "a time that is none");
}

static void check_cost_model(const struct cost_model *model)
{
    static const double places[] = {0, 1, 1.5, 4096, 1e6, 3e9, MAX_COST_X};
    static const double sizes[] = {1, 3, 64, 1000, 1 << 24};

    for (uint32_t i = 0; i < COST_SCALAR_COUNT; i++)
        time_expect(model->scalars[i]);
    for (uint32_t i = 0; i < COST_CURVE_COUNT; i++) {
        for (size_t j = 0; j < sizeof(places) / sizeof(*places); j++)
            time_expect(cost_curve_predict(&model->curves[i], places[j]));
    }
    for (size_t i = 0; i < sizeof(sizes) / sizeof(*sizes); i++)
        time_expect(cost_predict_gemm(model, sizes[i], sizes[4 - i], sizes[2]));
}

static void check_result(const char *text, size_t bytes, bool exact)
{
    static struct cost_model model, before;
    char why[SECURE_WHY_BYTES];
    char *tuning;
    enum profile_match fit;

    const struct tandem_device_info gpu = {.kind = TANDEM_DEVICE_GPU};

    cost_model_set_defaults(&model, &gpu);
    before = model;
    memset(why, 'x', sizeof(why));
    fit = profile_parse(text, bytes, &key, exact, &model, &tuning, why);
    if (fit == PROFILE_MATCH) {
        check_cost_model(&model);
    } else {
        expect(memcmp(&before, &model, sizeof(model)) == 0,
               "half a profile was taken");
        expect(tuning == NULL, "tuning of a profile that does not fit");
        expect(memchr(why, '\0', sizeof(why)) != NULL && why[0] != '\0',
               "no reason");
    }
    gemm_cost_grid_free(&model.gemm);
    free(tuning);
}

static void check_sections(const char *text, size_t bytes)
{
    const size_t whole = sizeof(HEAD) + bytes;
    char *file = malloc(whole);

    expect(file != NULL, "out of memory");
    memcpy(file, HEAD, sizeof(HEAD) - 1);
    memcpy(file + sizeof(HEAD) - 1, text, bytes);
    file[whole - 1] = '}';
    check_result(file, whole, true);
    free(file);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    if (bytes > 0 && data[0] == 'p') {
        check_sections((const char *)data + 1, bytes - 1);
    } else {
        check_result((const char *)data, bytes, true);
        check_result((const char *)data, bytes, false);
    }
    return 0;
}
