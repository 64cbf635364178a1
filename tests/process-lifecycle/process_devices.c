/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs a unary operator on each device and on the device that the library
 * selects, for tests in environments with broken drivers and plugins.
 */
#include <config.h>

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "process_case.h"

static enum tandem_status op_run(uint32_t device, uint32_t id)
{
    const struct tandem_op op = {.struct_size = sizeof op, .id = id};
    const enum tandem_status status =
        tandem_run(client.context, &op, &client.tx, 1, &client.ty, 1,
                   TANDEM_RUN_ON(device));

    return status == TANDEM_OK
               ? tandem_tensor_sync(client.ty, TANDEM_TIMEOUT_INFINITE)
               : status;
}

static void name_print(uint32_t device)
{
    const char *backend = "?";
    uint32_t index = 0;

    tandem_device_name(client.context, device, &backend, &index);
    if (index == 0)
        printf("%s", backend);
    else
        printf("%s:%u", backend, index);
}

/*
 * "on-each=OPERATOR" prints lines
 *
 *     DEVICE: runs | DEVICE: STATUS: MESSAGE | chosen: DEVICE
 *     LOAD ERROR           a plugin that could not be loaded
 *
 * and fails if the operator ran on no device.
 */
static void step_on_each(void)
{
    const struct tandem_op_info *op = tandem_op_by_name(step_argument);
    struct tandem_explanation why = {.struct_size = sizeof why};
    enum tandem_status status;
    const char *problem;
    uint32_t count = 0;

    MUST(op != NULL);
    client_open(&client);
    OK(tandem_device_count(client.context, &count));
    for (uint32_t device = 0; device < count; device++) {
        status = op_run(device, op->id);
        name_print(device);
        if (status == TANDEM_OK)
            printf(": runs\n");
        else
            printf(": %s: %s\n", tandem_status_name(status),
                   tandem_last_error());
    }
    OK(op_run(TANDEM_ANY_DEVICE, op->id));
    OK(tandem_explain_last(client.context, &why));
    printf("chosen: ");
    name_print(why.chosen);
    printf("\n");
    for (uint32_t i = 0;
         (problem = tandem_context_load_error(client.context, i)); i++)
        printf("%s\n", problem);
    client_close(&client);
}

/* ---- a driver that hangs ---- */

static void *devices_list(void *unused)
{
    uint32_t count;

    (void)unused;
    tandem_device_count(client.context, &count);
    return NULL;
}

/* Starts a thread that never returns from a driver, which creates the file
 * ICD_REACHED first (tests/tools/crashing_icd.c). */
static void step_hanging_thread(void)
{
    const char *reached = getenv("ICD_REACHED");
    pthread_t thread;

    MUST(reached != NULL);
    MUST(pthread_create(&thread, NULL, devices_list, NULL) == 0);
    while (access(reached, F_OK) != 0)
        usleep(10000);
}

static void step_on_each_in_child(void)
{
    int status = 0;
    const pid_t child = fork();

    if (child == 0) {
        step_on_each();
        fflush(stdout);
        _exit(0);
    }
    MUST(waitpid(child, &status, 0) == child && status == 0);
}

const struct step device_steps[] = {
    {"on-each", .run = step_on_each},
    {"on-each-in-child", .run = step_on_each_in_child},
    {"hanging-thread", .run = step_hanging_thread},
    {NULL},
};
