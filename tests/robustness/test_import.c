/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Imported memory on drivers that keep a copy of it: ones that see what the
 * host writes and not the other way round, the reverse, neither, and ones of
 * which that is so for kernels alone.  As a processor and as a GPU.
 */
#include <stdlib.h>
#include <string.h>

#include "single_fault.h"

#define PAGE 4096u

static _Alignas(PAGE) float memory[PAGE / sizeof(float)];

/* What import_host says of a driver that is so; imported, the memory is the
 * device's and the host's. */
static enum tandem_status imported(const char *how)
{
    struct tandem_buffer *buffer = NULL;
    enum tandem_status status;

    unsetenv("TANDEM_LAYER_NONCOHERENT_IMPORT");
    if (how)
        setenv("TANDEM_LAYER_NONCOHERENT_IMPORT", how, 1);
    device_new(NULL, NULL);
    status = plug.api->import_host(work.device, memory, PAGE, &buffer);
    if (status == TANDEM_OK) {
        ramp(memory, N, 1.0f, 1.0f);
        ck_assert_int_eq(unary(TANDEM_OP_NEG, buffer), TANDEM_OK);
        ck_assert_int_eq(synchronize(), TANDEM_OK);
        for (int i = 0; !how && i < N; i++)
            ck_assert(memory[i] == -1.0f - (float)i);
        plug.api->free(buffer);
    } else {
        ck_assert_ptr_null(buffer);
        said("works on a copy of host memory");
    }
    workload_close(&work);
    none_left();
    unsetenv("TANDEM_LAYER_NONCOHERENT_IMPORT");
    return status;
}

START_TEST(what_is_shared_is_taken)
{
    ck_assert_int_eq(imported(NULL), TANDEM_OK);
}
END_TEST

START_TEST(a_copy_is_found_out)
{
    ck_assert_int_eq(imported("1"), TANDEM_UNSUPPORTED);
}
END_TEST

/* Each direction by itself. */
START_TEST(what_the_device_writes_must_reach_the_host)
{
    ck_assert_int_eq(imported("in"), TANDEM_UNSUPPORTED);
}
END_TEST

START_TEST(what_the_host_writes_must_reach_the_device)
{
    ck_assert_int_eq(imported("out"), TANDEM_UNSUPPORTED);
}
END_TEST

/* A processor's kernels have no memory of their own. */
static enum tandem_status of_kernels(void)
{
    return getenv("TANDEM_LAYER_GPU") ? TANDEM_UNSUPPORTED : TANDEM_OK;
}

START_TEST(so_must_what_kernels_write)
{
    ck_assert_int_eq(imported("in-kernels"), of_kernels());
}
END_TEST

START_TEST(and_what_kernels_read)
{
    ck_assert_int_eq(imported("out-kernels"), of_kernels());
}
END_TEST

/* Not only the first time. */
START_TEST(and_again)
{
    ck_assert_int_eq(imported("once-kernels"), of_kernels());
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("import");
    TCase *tests = tcase_create("import");
    const int as_gpu = single_as_gpu();

    setenv("TANDEM_LAYER_OBJECT_CACHE", "1", 0);
    if (as_gpu != 0)
        return as_gpu;
    if (!plug_start(&plug))
        return 77;
    suite_add_tcase(suite, tests);
    tcase_add_test(tests, what_is_shared_is_taken);
    tcase_add_test(tests, a_copy_is_found_out);
    tcase_add_test(tests, what_the_device_writes_must_reach_the_host);
    tcase_add_test(tests, what_the_host_writes_must_reach_the_device);
    tcase_add_test(tests, so_must_what_kernels_write);
    tcase_add_test(tests, and_what_kernels_read);
    tcase_add_test(tests, and_again);
    return single_main(suite);
}
