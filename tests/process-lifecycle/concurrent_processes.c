/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Concurrency: processes that start at the same time with empty caches,
 * threads that open and close contexts, and profiles that are written while
 * others read them, or until the writer is killed.
 */
#include <config.h>

#include <pthread.h>

#include "lifecycle_program.h"

#define THREADS 4
#define ROUNDS 25

/* Saves a profile with one value. */
static void profile_save(struct lifecycle_test *lifecycle_test, double number)
{
    struct tandem_profile *profile = NULL;

    OK(tandem_profile_create(lifecycle_test->context, lifecycle_test->device,
                             &profile));
    OK(tandem_profile_set_scalar(profile, "launch", number));
    for (int x = 1; x < 50; x++)
        OK(tandem_profile_add_curve_point(profile, "elementwise", x * 1000,
                                          number));
    OK(tandem_profile_save(profile, NULL, NULL, 0));
    tandem_profile_destroy(profile);
}

/* Checks that the device has a profile with one value. */
static void profile_check(struct lifecycle_test *lifecycle_test)
{
    uint32_t calibrated = 0;
    double number = 0, other = 1;

    OK(tandem_device_is_calibrated(lifecycle_test->context,
                                   lifecycle_test->device, &calibrated));
    MUST(calibrated == 1);
    OK(tandem_device_predict_cost(
        lifecycle_test->context, lifecycle_test->device, "launch", 0, &number));
    for (int x = 1; x < 50; x++) {
        OK(tandem_device_predict_cost(lifecycle_test->context,
                                      lifecycle_test->device, "elementwise",
                                      x * 1000, &other));
        MUST(number == other);
    }
}

/*
 * Other processes do the same at the same time, with the same files: they
 * compile, save a profile of the device, and read it.
 */
static int cold(const char *device)
{
    struct lifecycle_test lifecycle_test;

    lifecycle_test_begin(&lifecycle_test, device);
    lifecycle_test_work_own(&lifecycle_test);
    for (int i = 0; i < 20; i++)
        profile_save(&lifecycle_test, 1000 + i);
    lifecycle_test_end(&lifecycle_test);
    return 0;
}

/* The files that they left must be complete. */
static int warm(const char *device)
{
    struct lifecycle_test lifecycle_test;

    lifecycle_test_begin(&lifecycle_test, device);
    profile_check(&lifecycle_test);
    lifecycle_test_work_own(&lifecycle_test);
    lifecycle_test_end(&lifecycle_test);
    return 0;
}

/* Runs until it is killed. */
static int saving(const char *device)
{
    struct lifecycle_test lifecycle_test;

    lifecycle_test_begin(&lifecycle_test, device);
    for (unsigned i = 0;; i++)
        profile_save(&lifecycle_test, 1000 + i % 1000);
    return 3;
}

static void *contexts_run(void *device)
{
    struct lifecycle_test lifecycle_test;

    for (int i = 0; i < ROUNDS; i++) {
        lifecycle_test_begin(&lifecycle_test, device);
        if (i % 3)
            lifecycle_test_work(&lifecycle_test);
        if (i % 2)
            lifecycle_test_start(&lifecycle_test);
        lifecycle_test_end(&lifecycle_test);
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

const struct lifecycle_mode crowd_modes[] = {
    {"cold", cold},         {"warm", warm}, {"saving", saving},
    {"contexts", contexts}, {NULL, NULL},
};
