/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Imported memory on drivers that work on a copy of it: drivers that see the
 * host's writes but whose own writes the host does not see, the reverse,
 * neither, and drivers that behave so for kernels only. Runs for a CPU device
 * and for a GPU.
 */
#include <stdlib.h>

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
    status = plug.api->import_host(work.device, memory, PAGE, &buffer);
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

int main(void)
{
    const int as_gpu = single_as_gpu(false);

    return as_gpu != 0 ? as_gpu : single_run("import", NULL);
}
