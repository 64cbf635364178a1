/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Many at once: processes that start with empty caches, threads that open and
 * close contexts.
 */
#include <config.h>

#include <pthread.h>
#include <string.h>

#include "guest.h"

#define THREADS 4
#define ROUNDS 25

/* What other processes do at the same time, to the same files: compile, save a
 * profile of the device, read it. */
static int cold(const char *device)
{
    struct tandem_profile *profile = NULL;
    struct guest guest;
    uint32_t calibrated = 0;

    guest_begin(&guest, device);
    guest_work(&guest);
    for (int i = 0; i < 20; i++) {
        OK(tandem_profile_create(guest.context, guest.device, &profile));
        OK(tandem_profile_scalar(profile, "launch", 1000 + i));
        for (int x = 1; x < 50; x++)
            OK(tandem_profile_point(profile, "elementwise", x * 1000, x));
        OK(tandem_profile_save(profile, NULL, NULL, 0));
        tandem_profile_destroy(profile);
    }
    guest_end(&guest);
    guest_begin(&guest, device);
    OK(tandem_device_calibrated(guest.context, guest.device, &calibrated));
    MUST(calibrated == 1);
    guest_work(&guest);
    guest_end(&guest);
    return 0;
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
    {"contexts", contexts},
    {NULL, NULL},
};
