/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Imported memory on drivers that work on a copy of it: drivers that see the
 * host's writes but whose own writes the host does not see, the reverse,
 * neither, and drivers that behave so for kernels only. Runs for a CPU device
 * and for a GPU.
 */
#include <stdlib.h>
#include <string.h>

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
        ck_assert_int_eq(unary(TANDEM_OP_NEG, buffer), TANDEM_OK);
        ck_assert_int_eq(synchronize(), TANDEM_OK);
        for (int i = 0; !how && i < N; i++)
            ck_assert(memory[i] == -1.0f - (float)i);
        plug.api->free(buffer);
    } else {
        ck_assert_ptr_null(buffer);
        expect_message("works on a copy of host memory");
    }
    workload_close(&work);
    expect_no_object_left();
    unsetenv("TANDEM_LAYER_NONCOHERENT_IMPORT");
    return status;
}

TEST(shared_memory_is_imported)
{
    ck_assert_int_eq(import_status(NULL), TANDEM_OK);
}

TEST(a_copy_is_detected)
{
    ck_assert_int_eq(import_status("1"), TANDEM_UNSUPPORTED);
}

/* Tests each direction alone. */
TEST(device_writes_must_reach_the_host)
{
    ck_assert_int_eq(import_status("in"), TANDEM_UNSUPPORTED);
}

TEST(host_writes_must_reach_the_device)
{
    ck_assert_int_eq(import_status("out"), TANDEM_UNSUPPORTED);
}

/* Kernels of a CPU device do not have separate memory. */
static enum tandem_status kernel_import_status(void)
{
    return getenv("TANDEM_LAYER_GPU") ? TANDEM_UNSUPPORTED : TANDEM_OK;
}

TEST(host_must_read_kernel_writes)
{
    ck_assert_int_eq(import_status("in-kernels"), kernel_import_status());
}

TEST(device_must_read_host_writes_in_kernels)
{
    ck_assert_int_eq(import_status("out-kernels"), kernel_import_status());
}

/* The result must be the same for a second import. */
TEST(a_second_import_has_the_same_result)
{
    ck_assert_int_eq(import_status("once-kernels"), kernel_import_status());
}

int main(void)
{
    const int as_gpu = single_as_gpu();

    return as_gpu != 0 ? as_gpu : single_run("import");
}
