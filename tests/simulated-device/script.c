/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads the script of the simulated device from the environment (see
 * simulated_device.h), and does what it says. Any thread may call these
 * functions.
 */
#include <config.h>

#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/gemm_operator.h"
#include "common/operator_table.h"
#include "internal.h"

/* ---- words ---- */

const char *setting(const char *word)
{
    const char *text = secure_getenv("TANDEM_TEST_PLUGIN");
    const size_t length = strlen(word);

    for (; text; text = strchr(text, ',')) {
        text += *text == ',';
        if (strncmp(text, word, length) == 0 && strchr("=,", text[length]))
            return text + length + (text[length] == '=');
    }
    return NULL;
}

uint64_t setting_number(const char *word, uint64_t otherwise)
{
    const char *text = setting(word);

    return text ? strtoull(text, NULL, 10) : otherwise;
}

enum tandem_status setting_status(const char *word, uint32_t device)
{
    const char *text = setting(word);
    char *end;
    long status;

    if (!text)
        return TANDEM_OK;
    status = strtol(text, &end, 10);
    return *end == ':' && strtoul(end + 1, NULL, 10) != device
               ? TANDEM_OK
               : (enum tandem_status)status;
}

void setting_copy(const char *word, char *out, size_t bytes)
{
    const char *text = setting(word);

    if (text)
        snprintf(out, bytes, "%.*s", (int)strcspn(text, ","), text);
}

bool setting_lists(const char *word, const char *name)
{
    const char *list = setting(word);
    const size_t length = strlen(name);

    for (; list && !strchr(",", *list); list++)
        if (strncmp(list, name, length) == 0 && strchr("+,", list[length]))
            return true;
    return false;
}

int32_t setting_duplicate(uint32_t device)
{
    const char *text = setting("duplicates");
    unsigned index, of;
    int length;

    while (text && sscanf(text, "%u:%u%n", &index, &of, &length) == 2) {
        if (index == device)
            return (int32_t)of;
        text += length + (text[length] == '+');
    }
    return -1;
}

enum tandem_status fault_parse(struct sim_device *device, const char *text)
{
    unsigned status;
    int end = 0;

    if (sscanf(text, "launch:%" SCNu64 ":%u%n", &device->fault_launch, &status,
               &end) == 2 &&
        !text[end] && device->fault_launch > 0 && status > TANDEM_OK &&
        status <= TANDEM_FAILED) {
        device->fault_status = (enum tandem_status)status;
        return TANDEM_OK;
    }
    end = 0;
    if (sscanf(text, "wait:%" SCNu64 "%n", &device->fault_wait, &end) == 1 &&
        !text[end] && device->fault_wait > 0)
        return TANDEM_OK;
    return argument_error("open: test.fault is \"%s\"; it must be "
                          "launch:N:STATUS or wait:N",
                          text);
}

/* ---- supported calls ---- */

static bool tensor_is_excluded(const struct tandem_tensor_desc *tensor)
{
    int64_t elements = 1;
    bool odd = false, strided = false;

    for (uint32_t i = tensor->rank; i-- > 0;) {
        strided |= tensor->shape[i] != 1 && tensor->strides[i] != elements;
        odd |= tensor->shape[i] % 2 != 0;
        elements *= tensor->shape[i];
    }
    return (setting("even") && odd) || (setting("large") && elements < 4096) ||
           (setting("dense") && strided);
}

static bool gemm_is_excluded(const struct prepared_call *call)
{
    const int64_t most = (int64_t)setting_number("side", INT32_MAX);
    const struct op_call checked = {.info = call->info,
                                    .op = &call->op,
                                    .inputs = call->inputs,
                                    .outputs = call->outputs,
                                    .input_count = call->input_count,
                                    .output_count = call->output_count};
    struct tandem_gemm gemm;

    if (gemm_from_call(&checked, &gemm) != TANDEM_OK)
        return true;
    return gemm.m > most || gemm.n > most || gemm.k > most ||
           (setting("even") && (gemm.m | gemm.n | gemm.k) % 2 != 0) ||
           (setting("large") && gemm.m * gemm.n * gemm.k < 4096);
}

enum tandem_status call_restrict(const struct prepared_call *call)
{
    bool excluded = false;

    if (call->op.id == TANDEM_OP_GEMM)
        excluded = gemm_is_excluded(call);
    else
        for (uint32_t i = 0; i < call->input_count + call->output_count; i++)
            excluded |= !call->operands[i].is_scalar &&
                        tensor_is_excluded(&call->operands[i].tensor);
    if (excluded || setting_lists("decline", call->info->name) ||
        (setting("only") && !setting_lists("only", call->info->name)))
        return last_error_set(TANDEM_UNSUPPORTED, "%s: declined as scripted",
                              call->info->name);
    return TANDEM_OK;
}

/* ---- misbehaviour ---- */

void block_in(const char *entry, const void *handle)
{
    const struct sim_device *device =
        handle ? ((const struct object *)handle)->device : NULL;

    if (!setting_lists("block", entry) || (device && device->index != 0) ||
        stalls_are_released())
        return;
    __atomic_fetch_add(&counters_of(0)->blocked, 1, __ATOMIC_RELAXED);
    while (!stalls_are_released())
        usleep(1000);
}

void misbehave(const char *place)
{
    if (setting_lists("crash", place)) {
        signal(SIGSEGV, SIG_DFL); /* A sanitizer's handler would exit. */
        raise(SIGSEGV);
    }
    while (setting_lists("hang", place))
        pause();
}

/* Starts a process that keeps the output of this process open, and ends. */
static _Noreturn void orphan_leave(void)
{
    const pid_t child = fork();

    if (child == 0) {
        sleep(60);
        fputs("orphan ends\n", stderr);
        _exit(0);
    }
    fprintf(stderr, "orphan %d\n", (int)child);
    _exit(0);
}

enum tandem_status launch_misbehave(struct sim_device *device, const char *op)
{
    if (device->index == 0 &&
        device->launch_count >= setting_number("lose", UINT64_MAX)) {
        device->lost = true;
        return last_error_set(TANDEM_DEVICE_LOST, "the device is gone");
    }
    if (setting_lists("abort", op))
        abort();
    if (setting_lists("orphan", op))
        orphan_leave();
    misbehave(op);
    if (setting_lists("fail", op))
        return last_error_set(TANDEM_FAILED, "the device could not");
    return TANDEM_OK;
}

enum tandem_status answer(enum tandem_status status)
{
    return setting("status") ? (enum tandem_status)12345 : status;
}

enum tandem_status wait_end(enum tandem_status status)
{
    while (setting("deaf"))
        pause();
    return answer(status);
}
