/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <tandem/host.h>

int main(void)
{
    static float a[512 * 512], b[512 * 512], bias[512], c[512 * 512];
    const int64_t square[2] = {512, 512}, row[1] = {512};
    struct tandem_matmul_options options = {.struct_size = sizeof(options),
                                            .alpha = 1.0,
                                            .activation = TANDEM_OP_RELU,
                                            .device = TANDEM_ANY_DEVICE};
    struct tandem_explanation why = {.struct_size = sizeof(why)};
    struct tandem_context *tandem = NULL;
    struct tandem_tensor *ta, *tb, *tc;
    const char *backend;
    uint32_t index;
    int failed;

    for (int i = 0; i < 512 * 512; i++)
        a[i] = b[i] = (float)(i % 7);
    failed =
        tandem_context_create(NULL, &tandem) ||
        tandem_tensor_wrap(tandem, a, TANDEM_F32, 2, square, NULL, 0, &ta) ||
        tandem_tensor_wrap(tandem, b, TANDEM_F32, 2, square, NULL, 0, &tb) ||
        tandem_tensor_wrap(tandem, c, TANDEM_F32, 2, square, NULL, 0, &tc) ||
        tandem_tensor_wrap(tandem, bias, TANDEM_F32, 1, row, NULL, 0,
                           &options.bias) ||
        tandem_matmul(tandem, &options, ta, tb, tc) || /* does not wait */
        tandem_tensor_sync(tc, TANDEM_TIMEOUT_INFINITE) || /* c = relu(a b) */
        tandem_explain_last(tandem, &why) ||
        tandem_device_name(tandem, why.chosen, &backend, &index);
    if (failed)
        fprintf(stderr, "%s\n", tandem_last_error());
    else
        printf("c[0][0] = %g, computed by %s:%u\n", (double)c[0], backend,
               index);
    tandem_context_destroy(tandem); /* before main returns, always */
    if (fclose(stdout) != 0)
        return perror("standard output"), 1;
    return failed;
}
