/* SPDX-License-Identifier: Apache-2.0 */
/* The main function and the clients; see process_case.h. */
#include <config.h>

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "process_case.h"

const char *device_name, *step_argument;
struct client client;
bool prints_warnings = true;

/* The open option num_threads of the CPU, or NULL. */
static const char *thread_option;

void process_fail(const char *format, ...)
{
    char line[1024];
    va_list arguments;

    va_start(arguments, format);
    vsnprintf(line, sizeof line, format, arguments);
    va_end(arguments);
    dprintf(STDERR_FILENO, "process-case: %s\n", line);
    _exit(3);
}

/* ---- clients ---- */

static void warning_print(void *user, enum tandem_log_level level,
                          const char *message)
{
    (void)user;
    if (level <= TANDEM_LOG_WARNING && prints_warnings)
        dprintf(STDERR_FILENO, "%s\n", message);
}

static struct tandem_context *context_new(void)
{
    const char *const key = "num_threads";
    const struct tandem_context_options options = {
        .struct_size = sizeof options,
        .open_keys = &key,
        .open_values = &thread_option,
        .open_count = thread_option ? 1 : 0,
        .log_level = TANDEM_LOG_DEBUG,
        .log = warning_print};
    struct tandem_context *context = NULL;

    OK(tandem_context_create(&options, &context));
    return context;
}

void client_open(struct client *own)
{
    const int64_t n = CLIENT_ELEMENTS;

    memset(own, 0, sizeof *own);
    for (int i = 0; i < CLIENT_ELEMENTS; i++)
        own->x[i] = (float)(i % 100 + 1);
    own->context = context_new();
    OK(tandem_device_find(own->context, device_name, &own->device));
    OK(tandem_tensor_wrap(own->context, own->x, TANDEM_F32, 1, &n, NULL,
                          TANDEM_TENSOR_READ_ONLY, &own->tx));
    OK(tandem_tensor_wrap(own->context, own->y, TANDEM_F32, 1, &n, NULL, 0,
                          &own->ty));
}

void client_start(struct client *own)
{
    const struct tandem_op op = {.struct_size = sizeof op, .id = TANDEM_OP_NEG};

    OK(tandem_run(own->context, &op, &own->tx, 1, &own->ty, 1,
                  TANDEM_RUN_ON(own->device)));
}

void client_read(struct client *own)
{
    OK(tandem_tensor_sync(own->ty, TANDEM_TIMEOUT_INFINITE));
    for (int i = 0; i < CLIENT_ELEMENTS; i++)
        MUST(own->y[i] == -own->x[i]);
}

static void sum_check(struct client *own)
{
    const int64_t ints[2] = {1, 0};
    const struct tandem_op op = {.struct_size = sizeof op,
                                 .id = TANDEM_OP_SUM,
                                 .int_count = 2,
                                 .ints = ints};
    struct tandem_tensor *sum = NULL;
    float expected = 0, result = 0;

    for (int i = 0; i < CLIENT_ELEMENTS; i++)
        expected += own->x[i];
    OK(tandem_tensor_create(own->context, TANDEM_F32, 0, NULL, &sum));
    OK(tandem_run(own->context, &op, &own->tx, 1, &sum, 1,
                  TANDEM_RUN_ON(own->device)));
    OK(tandem_tensor_read(sum, &result, sizeof result,
                          TANDEM_TIMEOUT_INFINITE));
    MUST(fabsf(result - expected) < 1);
    tandem_tensor_destroy(sum);
}

/* Multiplies x as a 32 x 32 matrix by twice the identity. */
static void gemm_check(struct client *own)
{
    const struct tandem_matmul_options options = {
        .struct_size = sizeof options, .alpha = 1, .device = own->device};
    const int64_t shape[2] = {32, 32};
    float twice[32 * 32] = {0}, out[32 * 32];
    struct tandem_tensor *x = NULL, *b = NULL, *c = NULL;

    for (int i = 0; i < 32; i++)
        twice[i * 33] = 2;
    OK(tandem_tensor_view(own->tx, 0, 2, shape, NULL, &x));
    OK(tandem_tensor_create(own->context, TANDEM_F32, 2, shape, &b));
    OK(tandem_tensor_create(own->context, TANDEM_F32, 2, shape, &c));
    OK(tandem_tensor_write(b, twice, sizeof twice));
    OK(tandem_matmul(own->context, &options, x, b, c));
    OK(tandem_tensor_read(c, out, sizeof out, TANDEM_TIMEOUT_INFINITE));
    for (int i = 0; i < 32 * 32; i++)
        MUST(out[i] == 2 * own->x[i]);
    tandem_tensor_destroy(x);
    tandem_tensor_destroy(b);
    tandem_tensor_destroy(c);
}

void client_work_without_gemm(struct client *own)
{
    client_start(own);
    client_read(own);
    sum_check(own);
}

void client_work(struct client *own)
{
    client_work_without_gemm(own);
    gemm_check(own);
}

void client_close(struct client *own)
{
    tandem_tensor_destroy(own->tx);
    tandem_tensor_destroy(own->ty);
    tandem_context_destroy(own->context);
    memset(own, 0, sizeof *own);
}

/* ---- steps ---- */

/* Creates a context, which touches no device. */
static void step_context(void)
{
    client.context = context_new();
}

static void step_threads(void)
{
    thread_option = step_argument;
}

/* The device must reject the options when it is opened. */
static void step_open_rejected(void)
{
    const struct tandem_backend *backend;
    struct tandem_device *device;

    client_open(&client);
    MUST(tandem_device_backend(client.context, client.device, &backend,
                               &device) == TANDEM_INVALID_ARGUMENT);
}

static const struct step client_steps[] = {
    {"threads", .run = step_threads},
    {"context", .run = step_context},
    {"open", .run_client = client_open},
    {"open-rejected", .run = step_open_rejected},
    {"start", .run_client = client_start},
    {"read", .run_client = client_read},
    {"work", .run_client = client_work},
    {"work-without-gemm", .run_client = client_work_without_gemm},
    {"close", .run_client = client_close},
    {NULL},
};

static void step_run(const char *text)
{
    const struct step *const tables[] = {
        client_steps,  end_steps,   fork_steps,  signal_steps,
        profile_steps, state_steps, device_steps};
    const size_t length = strcspn(text, "=");

    for (size_t i = 0; i < sizeof tables / sizeof *tables; i++)
        for (const struct step *step = tables[i]; step->name; step++)
            if (strlen(step->name) == length &&
                strncmp(step->name, text, length) == 0) {
                step_argument = text[length] == '=' ? text + length + 1 : NULL;
                if (step->run)
                    step->run();
                else
                    step->run_client(&client);
                return;
            }
    process_fail("no step \"%s\"", text);
}

__attribute__((visibility("default"))) void steps_run(const char *device,
                                                      char **steps)
{
    device_name = device;
    while (*steps)
        step_run(*steps++);
}

int main(int count, char **words)
{
    if (count < 3)
        process_fail("usage: process-case DEVICE STEP...");
    steps_run(words[1], words + 2);
    return 0;
}
