/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Usage: variants DIRECTORY [WORK-ITEMS [SEED]]
 *
 * Writes the kernel variants that the OpenCL plugin builds for work-groups of
 * this size (default 256). The size is a power of two and at least 32, below
 * which there are fewer kernels. With a seed, writes a random subset.
 */
#include <stdio.h>
#include <stdlib.h>

#include "opencl/device/device_enumeration.h"
#include "variants.h"

int main(int argc, char **argv)
{
    const struct platform_device hardware = {
        .correct_divide = true,
        .info = {.kind = TANDEM_DEVICE_GPU,
                 .compute_units = 64,
                 .local_memory_bytes = 65536}};
    struct keys keys;
    uint32_t items = argc > 2 ? (uint32_t)strtoul(argv[2], NULL, 10) : 256;

    if (argc < 2 || argc > 4 || items < 32 || (items & (items - 1)) != 0) {
        fprintf(stderr, "usage: %s DIRECTORY [WORK-ITEMS [SEED]]\n", argv[0]);
        return 2;
    }
    bool done = keys_find(&keys, &hardware, (uint32_t)__builtin_ctz(items));
    if (argc > 3)
        done = done && keys_choose(&keys, strtoull(argv[3], NULL, 10));
    done = done && variants_write(argv[1], &keys);
    keys_free(&keys);
    return done ? 0 : 1;
}
