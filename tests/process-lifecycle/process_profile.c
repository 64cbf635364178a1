/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Profiles: written while others read them, or until the writer is killed, and
 * written and read under another locale or floating-point environment.
 */
#include <config.h>

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "process_case.h"

static struct tandem_profile *profile_new(void)
{
    struct tandem_profile *profile = NULL;

    OK(tandem_profile_create(client.context, client.device, &profile));
    return profile;
}

static void profile_finish(struct tandem_profile *profile)
{
    OK(tandem_profile_save(profile, NULL, NULL, 0));
    tandem_profile_destroy(profile);
}

/* ---- profiles with one value ---- */

#define POINTS 50

static void uniform_save(double number)
{
    struct tandem_profile *profile = profile_new();

    OK(tandem_profile_set_scalar(profile, "launch", number));
    for (int x = 1; x < POINTS; x++)
        OK(tandem_profile_add_curve_point(profile, "elementwise", x * 1000,
                                          number));
    profile_finish(profile);
}

/* Saves a profile 20 times, each time with another value. */
static void step_save(void)
{
    for (int i = 0; i < 20; i++)
        uniform_save(1000 + i);
}

/* Runs until it is killed. */
static void step_save_for_ever(void)
{
    for (unsigned i = 0;; i++)
        uniform_save(1000 + i % 1000);
}

static double cost_of(const char *curve, double x)
{
    double ns = 0;

    OK(tandem_device_predict_cost(client.context, client.device, curve, x,
                                  &ns));
    return ns;
}

/* The profile must be complete and have one value. */
static void step_check_saved(void)
{
    uint32_t calibrated = 0;

    OK(tandem_device_is_calibrated(client.context, client.device, &calibrated));
    MUST(calibrated == 1);
    for (int x = 1; x < POINTS; x++)
        MUST(cost_of("elementwise", x * 1000) == cost_of("launch", 0));
}

/* ---- numbers as text ---- */

static void step_profile(void)
{
    struct tandem_profile *profile = profile_new();

    OK(tandem_profile_set_scalar(profile, "launch", 12345.625));
    OK(tandem_profile_add_curve_point(profile, "transcendental", 4096,
                                      777.125));
    OK(tandem_profile_add_curve_point(profile, "transcendental", 8192.5, 1e-3));
    OK(tandem_profile_add_gemm_point(profile, 64, 64, 64, 0.1));
    profile_finish(profile);
}

/* Prints whether there is a profile, and the bits of costs that it predicts. */
static void step_predict(void)
{
    static const double sizes[] = {0, 4096, 6000, 1e15};
    uint32_t calibrated = 2;

    OK(tandem_device_is_calibrated(client.context, client.device, &calibrated));
    printf("calibrated %u\n", calibrated);
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        const double ns =
            cost_of(i == 0 ? "launch" : "transcendental", sizes[i]);
        uint64_t bits;

        memcpy(&bits, &ns, sizeof bits);
        printf("cost %016" PRIx64 "\n", bits);
    }
}

/* Prints messages with numbers. */
static void step_messages(void)
{
    struct tandem_profile *profile = profile_new();
    double ns = 0;

    MUST(tandem_profile_set_scalar(profile, "launch", -0.5) ==
         TANDEM_INVALID_ARGUMENT);
    printf("%s\n", tandem_last_error());
    MUST(tandem_device_predict_cost(client.context, 0, "transcendental", -1.25,
                                    &ns) == TANDEM_INVALID_ARGUMENT);
    printf("%s\n", tandem_last_error());
    tandem_profile_destroy(profile);
}

const struct step profile_steps[] = {
    {"save", .run = step_save},
    {"save-for-ever", .run = step_save_for_ever},
    {"check-saved", .run = step_check_saved},
    {"profile", .run = step_profile},
    {"predict", .run = step_predict},
    {"messages", .run = step_messages},
    {NULL},
};
