/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Many at once: processes that start with empty caches, threads that open and
 * close contexts; profiles that are written while others read them, or until
 * the writer is killed.
 */
#include <config.h>

#include <pthread.h>
#include <string.h>

#include "lifecycle_program.h"

#define THREADS 4
#define ROUNDS 25

/* All that a profile says is one number. */
static void profile_save(struct guest *guest, double number)
{
    struct tandem_profile *profile = NULL;

    OK(tandem_profile_create(guest->context, guest->device, &profile));
    OK(tandem_profile_set_scalar(profile, "launch", number));
    for (int x = 1; x < 50; x++)
        OK(tandem_profile_add_curve_point(profile, "elementwise", x * 1000,
                                          number));
    OK(tandem_profile_save(profile, NULL, NULL, 0));
    tandem_profile_destroy(profile);
}

/* The device has one, which says one number. */
static void profile_check(struct guest *guest)
{
    uint32_t calibrated = 0;
    double number = 0, other = 1;

    OK(tandem_device_is_calibrated(guest->context, guest->device, &calibrated));
    MUST(calibrated == 1);
    OK(tandem_device_predict_cost(guest->context, guest->device, "launch", 0,
                          &number));
    for (int x = 1; x < 50; x++) {
        OK(tandem_device_predict_cost(guest->context, guest->device,
                                      "elementwise", x * 1000, &other));
        MUST(number == other);
    }
}

/* What other processes do at the same time, to the same files: compile, save a
 * profile of the device, read it. */
static int cold(const char *device)
{
    struct guest guest;

    guest_begin(&guest, device);
    guest_work_own(&guest);
    for (int i = 0; i < 20; i++)
        profile_save(&guest, 1000 + i);
    guest_end(&guest);
    return 0;
}

/* And what they left is whole. */
static int warm(const char *device)
{
    struct guest guest;

    guest_begin(&guest, device);
    profile_check(&guest);
    guest_work_own(&guest);
    guest_end(&guest);
    return 0;
}

/* Until it is killed. */
static int saving(const char *device)
{
    struct guest guest;

    guest_begin(&guest, device);
    for (unsigned i = 0;; i++)
        profile_save(&guest, 1000 + i % 1000);
    return 3;
}

static void *contexts_run(void *device)
{
    struct guest guest;

    for (int i = 0; i < ROUNDS; i++) {
        guest_begin(&guest, device);
        if (i % 3)
            guest_work(&guest);
        if (i % 2)
            guest_start(&guest);
        guest_end(&guest);
    }
    return NULL;
}

static int contexts(const char *device)
{
    pthread_t threads[THREADS];

    for (int i = 0; i < THREADS; i++)
        MUST(pthread_create(&threads[i], NULL, contexts_run,
                            (void *)(uintptr_t)device) == 0);
    for (int i = 0; i < THREADS; i++)
        MUST(pthread_join(threads[i], NULL) == 0);
    return 0;
}

const struct guest_mode crowd_modes[] = {
    {"cold", cold},
    {"warm", warm},
    {"saving", saving},
    {"contexts", contexts},
    {NULL, NULL},
};
