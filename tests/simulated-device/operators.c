/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Operators of the simulated GPU. Calls are checked here, queued with copies
 * of all arguments, and computed by the CPU plugin later. Any thread may call
 * these functions.
 */
#include <stdlib.h>
#include <string.h>

#include "common/argument_check.h"
#include "common/last_error.h"
#include "common/operator_table.h"
#include "common/tensor_overlap.h"
#include "internal.h"

enum tandem_status address_range_of(const void *user,
                                    const struct tandem_buffer *handle,
                                    struct address_range *out)
{
    struct sim_buffer *buffer;
    enum tandem_status status =
        buffer_check(user, "simulated: operand", handle, &buffer);

    if (status != TANDEM_OK)
        return status;
    out->base = buffer->memory->base;
    out->bytes = buffer->memory->bytes;
    out->is_sealed = buffer->is_sealed;
    return TANDEM_OK;
}

enum tandem_status operator_is_supported(const struct sim_device *device,
                                         uint32_t id)
{
    if (id < TANDEM_OP_ID_END && device->script.decline[id])
        return last_error_set(TANDEM_UNSUPPORTED,
                              "%s: declined by simulated.decline",
                              operator_name(id));
    return TANDEM_OK;
}

enum tandem_status readiness(const struct sim_device *device, uint32_t id)
{
    if (device->script.ready == SIM_READY_ALWAYS)
        return TANDEM_OK;
    if (device->script.ready == SIM_READY_NEVER)
        return TANDEM_NOT_READY;
    return device->polls[id] >= device->script.ready ? TANDEM_OK
                                                     : TANDEM_NOT_READY;
}

void launch_compile(struct sim_device *device, uint32_t id)
{
    if (readiness(device, id) == TANDEM_OK)
        return;
    COUNT(device, blocking_compiles, 1);
    device->polls[id] = device->script.ready;
}

void launch_fault(struct sim_device *device, struct command *command)
{
    if (++device->launch_count == device->script.fault_launch)
        command->fault = device->script.fault_status;
    command->hangs = device->launch_count == device->script.hang_launch;
}
