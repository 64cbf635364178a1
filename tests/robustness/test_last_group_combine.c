/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Split reductions in which the last work-group combines the results of all.
 * The work-item that signals the group's arrival continues while the others
 * lag behind; the last group must nevertheless see what all items wrote. The
 * kernels are compiled with an atomic_inc that delays the first group until
 * the last one has arrived.
 */
#include <stdlib.h>

#include "single_fault.h"

#include "../../tools/common/tensor_call.h"

#define ROWS 20000
#define COLUMNS 32

/*
 * Each group waits for the next arrival, and the second last one also until
 * the last group has started to combine and may have finished. The waits are
 * bounded, because a device may run groups one after another.
 */
static const char delayed_atomic_inc[] =
    "__attribute__((unused))\n"
    "static uint late_inc(volatile __global uint *p, uint splits)\n"
    "{\n"
    "    uint before = atomic_inc(p), after = before + 1;\n"
    "    uint left = after < splits ? 30000000u : 0u, now;\n"
    "    while (left > 0) {\n"
    "        --left;\n"
    "        now = *p;\n"
    "        if (now > after && after + 1 < splits)\n"
    "            break;\n"
    "        if (now == 0)\n"
    "            left = min(left, 4000000u);\n"
    "    }\n"
    "    return before;\n"
    "}\n"
    "#define atomic_inc(at) late_inc(at, p->splits)\n";

/*
 * Column sums in which each work-group has several columns, each written by
 * its own work-item. Element (i, j) is (i + j + turn) % 7.
 */
TEST(the_last_group_finds_all_that_was_written)
{
    static float x[ROWS * COLUMNS], got[COLUMNS];
    const int64_t ints[] = {1, 0};
    const struct tandem_op op = {.struct_size = sizeof op,
                                 .id = TANDEM_OP_SUM,
                                 .ints = ints,
                                 .int_count = 2};
    struct tandem_buffer *from, *to;

    device_new("test.device_scope_visibility", "1");
    ck_assert(buffer_new(&work, sizeof x, &from));
    ck_assert(buffer_new(&work, sizeof got, &to));
    for (int turn = 0; turn < 4; turn++) {
        const struct tandem_tensor_desc
            in = {from, 0, TANDEM_F32, 2, {ROWS, COLUMNS}, {COLUMNS, 1}},
            out = {to, 0, TANDEM_F32, 1, {COLUMNS}, {1}};
        const struct tandem_tensor_desc *input = &in, *output = &out;

        for (int i = 0; i < ROWS * COLUMNS; i++)
            x[i] = (float)((i / COLUMNS + i % COLUMNS + turn) % 7);
        ck_assert(upload(&work, from, x, sizeof x));
        OK(tensors_launch(plug.api, work.device, work.stream, &op, &input, 1,
                          &output, 1, 64));
        OK(plug.api->download(work.stream, to, 0, got, sizeof got, 0,
                              TANDEM_TIMEOUT_INFINITE));
        for (int j = 0; j < COLUMNS; j++) {
            float want = 0;

            for (int i = 0; i < ROWS; i++)
                want += x[i * COLUMNS + j];
            ck_assert_msg(got[j] == want, "turn %d, column %d: %g, not %g",
                          turn, j, (double)got[j], (double)want);
        }
    }
    device_end();
}

int main(void)
{
    setenv("TANDEM_LAYER_SOURCE_PREFIX", delayed_atomic_inc, 1);
    setenv("POCL_MAX_PTHREAD_COUNT", "8", 1);
    if (!plug_start(&plug))
        return 77;
    return tests_run_without_fork("joined", NULL, NULL);
}
