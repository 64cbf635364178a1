/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A program that uses libtandem like any other program, for tests in different
 * environments:
 *
 *     program [OPERATOR]
 *
 * runs a unary operator (relu by default) on each device and on the device that
 * the library selects, and prints
 *
 *     DEVICE: runs | DEVICE: STATUS: MESSAGE | chosen: DEVICE
 *     LOAD ERROR           a plugin that could not be loaded
 *
 * The exit status is 1 if the operator ran on no device.
 *
 *     program --fork
 *
 * does the same in a forked child while another thread of the parent is in a
 * driver that hangs (ICD_REACHED, see crashing_icd.c).
 */
#include <tandem/host.h>

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define ELEMENTS 1000

static float x[ELEMENTS], y[ELEMENTS];

static void log_print(void *user, enum tandem_log_level level,
                      const char *message)
{
    (void)user;
    (void)level;
    fprintf(stderr, "%s\n", message);
}

static enum tandem_status run(struct tandem_context *context, uint32_t device,
                              uint32_t op)
{
    const struct tandem_op call = {.struct_size = sizeof call, .id = op};
    const int64_t shape = ELEMENTS;
    struct tandem_tensor *tensors[2] = {NULL, NULL};
    enum tandem_status status =
        tandem_tensor_wrap(context, x, TANDEM_F32, 1, &shape, NULL,
                           TANDEM_TENSOR_READ_ONLY, &tensors[0]);

    if (status == TANDEM_OK)
        status = tandem_tensor_wrap(context, y, TANDEM_F32, 1, &shape, NULL, 0,
                                    &tensors[1]);
    if (status == TANDEM_OK)
        status = tandem_run_on(context, device, &call, tensors, 1,
                               tensors + 1, 1);
    if (status == TANDEM_OK)
        status = tandem_tensor_sync(tensors[1], TANDEM_TIMEOUT_INFINITE);
    tandem_tensor_destroy(tensors[0]);
    tandem_tensor_destroy(tensors[1]);
    return status;
}

static void print_name(struct tandem_context *context, uint32_t device)
{
    const char *backend = "?";
    uint32_t index = 0;

    tandem_device_name(context, device, &backend, &index);
    if (index == 0)
        printf("%s", backend);
    else
        printf("%s:%u", backend, index);
}

static void run_on(struct tandem_context *context, uint32_t device,
                   uint32_t op)
{
    const enum tandem_status status = run(context, device, op);

    print_name(context, device);
    if (status == TANDEM_OK)
        printf(": runs\n");
    else
        printf(": %s: %s\n", tandem_status_name(status), tandem_last_error());
}

static enum tandem_status run_chosen(struct tandem_context *context,
                                     uint32_t op)
{
    struct tandem_explanation why = {.struct_size = sizeof why};
    const enum tandem_status status = run(context, TANDEM_ANY_DEVICE, op);

    if (status != TANDEM_OK ||
        tandem_explain_last(context, &why) != TANDEM_OK) {
        printf("nowhere: %s\n", tandem_last_error());
        return status;
    }
    printf("chosen: ");
    print_name(context, why.chosen);
    printf("\n");
    return status;
}

static int program(const char *operator)
{
    struct tandem_context_options options = {.struct_size = sizeof options,
                                             .log = log_print};
    const struct tandem_op_info *op =
        tandem_op_by_name(operator);
    struct tandem_context *context;
    enum tandem_status status;
    const char *problem;
    uint32_t count = 0;

    if (op == NULL || tandem_context_create(&options, &context) != TANDEM_OK) {
        fprintf(stderr, "%s\n", op ? tandem_last_error() : "no such operator");
        return 1;
    }
    for (int i = 0; i < ELEMENTS; i++)
        x[i] = (float)(i - ELEMENTS / 2) / 64;
    tandem_device_count(context, &count);
    for (uint32_t device = 0; device < count; device++)
        run_on(context, device, op->id);
    status = run_chosen(context, op->id);
    for (uint32_t i = 0; (problem = tandem_context_load_error(context, i)); i++)
        printf("%s\n", problem);
    tandem_context_destroy(context);
    return status != TANDEM_OK;
}

static void *start_opencl(void *context)
{
    uint32_t count;

    tandem_device_count(context, &count);
    return NULL;
}

static int program_forked(void)
{
    const struct timespec pause = {0, 10000000};
    struct tandem_context *context;
    pthread_t thread;
    int state = 0;
    pid_t child;

    if (getenv("ICD_REACHED") == NULL ||
        tandem_context_create(NULL, &context) != TANDEM_OK ||
        pthread_create(&thread, NULL, start_opencl, context) != 0)
        return 2;
    while (access(getenv("ICD_REACHED"), F_OK) != 0)
        nanosleep(&pause, NULL);
    child = fork();
    if (child == 0) {
        const int status = program("relu");

        fflush(stdout);
        _exit(status);
    }
    waitpid(child, &state, 0);
    /* The thread never ends. */
    _exit(WIFEXITED(state) ? WEXITSTATUS(state) : 3);
}

int main(int argc, char **argv)
{
    if (argc > 1 && strcmp(argv[1], "--fork") == 0)
        return program_forked();
    return program(argc > 1 ? argv[1] : "relu");
}
