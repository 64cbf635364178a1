/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Imported memory on drivers that work on a copy of it: drivers that see the
 * host's writes but whose own writes the host does not see, the reverse,
 * neither, and drivers that behave so for kernels only; and the release of
 * imported memory if calls of the driver fail. Runs for a CPU device and for a
 * GPU.
 */
#include <stdatomic.h>
#include <stdlib.h>
#include <unistd.h>

#include "single_fault.h"

#define PAGE 4096u

static _Alignas(PAGE) float memory[PAGE / sizeof(float)];

/*
 * Returns the status of import_host on a driver with this behaviour. If the
 * import succeeds, checks that device and host see the same memory.
 */
static enum tandem_status import_status(const char *how)
{
    struct tandem_buffer *buffer = NULL;
    enum tandem_status status;

    unsetenv("TANDEM_LAYER_NONCOHERENT_IMPORT");
    if (how)
        setenv("TANDEM_LAYER_NONCOHERENT_IMPORT", how, 1);
    device_new(NULL, NULL);
    status =
        plug.api->import_host(work.device, memory, PAGE, NULL, NULL, &buffer);
    if (status == TANDEM_OK) {
        fill_ramp(memory, N, 1.0f, 1.0f);
        OK(unary(TANDEM_OP_NEG, buffer));
        OK(synchronize());
        for (int i = 0; !how && i < N; i++)
            ck_assert(memory[i] == -1.0f - (float)i);
        plug.api->free(buffer);
    } else {
        ck_assert_ptr_null(buffer);
        expect_message("works on a copy of host memory");
    }
    device_end();
    unsetenv("TANDEM_LAYER_NONCOHERENT_IMPORT");
    return status;
}

static const struct {
    const char *how;
    bool separate; /* Memory of kernels, which a CPU device does not have. */
    enum tandem_status status;
} drivers[] = {
    {NULL, false, TANDEM_OK},
    {"1", false, TANDEM_UNSUPPORTED},
    /* Each direction alone. */
    {"in", false, TANDEM_UNSUPPORTED},
    {"out", false, TANDEM_UNSUPPORTED},
    {"in-kernels", true, TANDEM_UNSUPPORTED},
    {"out-kernels", true, TANDEM_UNSUPPORTED},
    /* The result must be the same for a second import. */
    {"once-kernels", true, TANDEM_UNSUPPORTED},
};

LOOP_TEST(copies_are_detected, CASES_IN(drivers))
{
    const bool shared = drivers[_i].separate && !getenv("TANDEM_LAYER_GPU");

    ck_assert_int_eq(import_status(drivers[_i].how),
                     shared ? TANDEM_OK : drivers[_i].status);
}

/* ---- release ---- */

static _Atomic int releases;

static void released(void *user)
{
    (void)user;
    atomic_fetch_add(&releases, 1);
}

/* Imports the memory and enqueues its negation. */
static struct tandem_buffer *import_and_use(void)
{
    struct tandem_buffer *buffer = NULL;

    atomic_store(&releases, 0);
    device_new(NULL, NULL);
    OK(plug.api->import_host(work.device, memory, PAGE, released, NULL,
                             &buffer));
    fill_ramp(memory, N, 1.0f, 1.0f);
    OK(unary(TANDEM_OP_NEG, buffer));
    return buffer;
}

static const char *const functions[] = {"clEnqueueMarkerWithWaitList",
                                        "clFlush", "clSetEventCallback"};

/* If the driver cannot report the end of the work, close waits for it. */
LOOP_TEST(close_releases_if_the_driver_cannot, CASES_IN(functions))
{
    struct tandem_buffer *buffer = import_and_use();

    script(LAYER_FAULT_CALL, functions[_i], NULL, -6);
    plug.api->free(buffer);
    plug.script_set(NULL);
    ck_assert_int_eq(atomic_load(&releases), 0);
    device_end();
    ck_assert_int_eq(atomic_load(&releases), 1);
    ck_assert(memory[N - 1] == -(float)N);
}

/* The work goes on when the device is closed. */
LOOP_TEST(close_does_not_release_what_work_uses, 2)
{
    const struct layer_counts start = plug_counts(&plug);
    struct tandem_buffer *buffer = NULL;

    atomic_store(&releases, 0);
    device_new("blocking_timeout_ms", "200");
    OK(plug.api->import_host(work.device, memory, PAGE, released, NULL,
                             &buffer));
    OK(unary(TANDEM_OP_NEG, buffer));
    OK(synchronize());
    script(LAYER_FAULT_ENDLESS, "clEnqueueNDRangeKernel", NULL, 0);
    OK(unary(TANDEM_OP_NEG, buffer));
    if (_i == 1)
        plug.api->free(buffer);
    workload_close(&work);
    ck_assert_int_eq(atomic_load(&releases), 0);
    plug.release();
    expect_freed_later(&start);
    ck_assert_int_eq(atomic_load(&releases), 1);
}

int main(void)
{
    const int as_gpu = single_as_gpu(false);

    return as_gpu != 0 ? as_gpu : single_run("import", NULL);
}
