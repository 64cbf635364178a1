/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One queued command: its data, and its execution by the inner plugin. The
 * device's mutex is held in all functions.
 */
#include <stdlib.h>
#include <time.h>

#include "internal.h"

struct command *command_new(enum command_kind kind)
{
    struct command *command = calloc(1, sizeof *command);

    if (!command)
        memory_error("no memory for a command");
    else
        command->kind = kind;
    return command;
}

void command_use(struct command *command, struct sim_memory *memory)
{
    memory->references++;
    command->memories[command->memory_count++] = memory;
}

void command_destroy(struct sim_device *device, struct command *command)
{
    if (!command)
        return;
    for (uint32_t i = 0; i < command->memory_count; i++)
        memory_release(device, command->memories[i]);
    free(command->data);
    free(command->scalars);
    if (command->prepared)
        prepared_put(command->prepared);
    free(command);
}

void command_poison(struct command *command, enum tandem_status status)
{
    for (uint32_t i = command->read_count; i < command->memory_count; i++)
        command->memories[i]->poison = status;
}

static enum tandem_status launch_run(struct tandem_stream *stream,
                                     const struct command *command)
{
    const struct tandem_backend *inner = inner_backend();
    const struct tandem_memory *operands = command->operands;
    const uint32_t id = command->prepared->call->op.id;
    const uint64_t us = setting_number("slow", 0);
    const struct timespec pause_time = {(time_t)(us / 1000000),
                                        (long)(us % 1000000 * 1000)};
    enum tandem_status status = inner->launch(
        stream, command->prepared->inner, operands, command->operand_count,
        command->scalars, command->scalar_count);

    if (id == TANDEM_OP_GEMM && us > 0)
        nanosleep(&pause_time, NULL);
    if (status == TANDEM_OK && id == TANDEM_OP_RELU && setting("overwrite") &&
        operands[1].byte_offset > 0)
        status = inner->fill(stream, operands[1].buffer,
                             operands[1].byte_offset - 1, 1, "\x5a", 1);
    return status;
}

/* Runs the command on the inner plugin without waiting. */
static enum tandem_status inner_run(struct sim_device *device,
                                    struct command *command)
{
    const struct tandem_backend *inner = inner_backend();
    struct tandem_stream *stream = device->inner_stream;
    struct tandem_buffer *first =
        command->memory_count ? command->memories[0]->inner : NULL;

    switch (command->kind) {
    case COMMAND_UPLOAD:
        return inner->upload(stream, first, command->offset, command->source,
                             command->bytes, 0);
    case COMMAND_DOWNLOAD:
        return inner->download(stream, first, command->offset, command->target,
                               command->bytes, 0, TANDEM_TIMEOUT_INFINITE);
    case COMMAND_COPY:
        return inner->copy(stream, command->memories[1]->inner, command->offset,
                           first, command->source_offset, command->bytes);
    case COMMAND_FILL:
        return inner->fill(stream, first, command->offset, command->bytes,
                           command->pattern, command->pattern_bytes);
    case COMMAND_LAUNCH:
        COUNT(device, executed, 1);
        return launch_run(stream, command);
    case COMMAND_WAIT:
        break;
    }
    return TANDEM_OK;
}

enum tandem_status command_run(struct sim_device *device,
                               struct command *command)
{
    enum tandem_status status = TANDEM_OK;

    if (command->fault != TANDEM_OK)
        return last_error_set(command->fault, "scripted fault");
    for (uint32_t i = 0; i < command->read_count && status == TANDEM_OK; i++)
        status = memory_is_valid(command->memories[i], "an input");
    if (status != TANDEM_OK)
        return status;
    status = inner_run(device, command);
    if (status == TANDEM_OK)
        status = inner_backend()->stream_synchronize(device->inner_stream,
                                                     TANDEM_TIMEOUT_INFINITE);
    if (status != TANDEM_OK)
        return inner_failed(status);
    if ((command->kind == COMMAND_UPLOAD || command->kind == COMMAND_FILL) &&
        command->offset == 0 && command->bytes == command->memories[0]->bytes)
        command->memories[0]->poison = TANDEM_OK;
    return TANDEM_OK;
}
