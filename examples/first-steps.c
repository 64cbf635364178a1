/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <tandem/host.h>

static float a[512 * 512], b[512 * 512], c[512 * 512];

int main(void)
{
    const int64_t shape[2] = {512, 512};
    struct tandem_explanation placement = {.struct_size = sizeof(placement)};
    struct tandem_context *tandem = NULL;
    struct tandem_tensor *ta, *tb, *tc;
    const char *name;
    uint32_t index;

    for (int i = 0; i < 512 * 512; i++)
        a[i] = b[i] = (float)(i % 7);
    int failed =
        tandem_context_create(NULL, &tandem) ||
        tandem_tensor_wrap(tandem, a, TANDEM_F32, 2, shape, NULL, 0, &ta) ||
        tandem_tensor_wrap(tandem, b, TANDEM_F32, 2, shape, NULL, 0, &tb) ||
        tandem_tensor_wrap(tandem, c, TANDEM_F32, 2, shape, NULL, 0, &tc) ||
        tandem_matmul(tandem, NULL, ta, tb, tc) ||         /* does not wait */
        tandem_tensor_sync(tc, TANDEM_TIMEOUT_INFINITE) || /* fills c */
        tandem_explain_last(tandem, &placement) ||
        tandem_device_name(tandem, placement.chosen, &name, &index);
    if (failed)
        fprintf(stderr, "%s\n", tandem_last_error());
    else
        printf("c[0][0] = %g, computed by %s:%u\n", (double)c[0], name, index);
    tandem_context_destroy(tandem); /* frees the tensors, too */
    if (fclose(stdout) != 0)
        return perror("standard output"), 1;
    return failed;
}
