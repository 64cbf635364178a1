/* SPDX-License-Identifier: Apache-2.0 */
/* Chooses dtypes and plan steps for the warm-up calls of all operators. */
#include "opencl/program/warmup_call.h"

uint32_t warmup_call_dtype(uint64_t key, uint32_t operand)
{
    switch (KEY_TYPE(key, operand)) {
    case TYPE_INT:
        return TANDEM_I32;
    case TYPE_LONG:
    case TYPE_ULONG:
        return TANDEM_I64;
    case TYPE_UCHAR:
        return TANDEM_U8;
    case TYPE_BOOL:
        return TANDEM_BOOL;
    case TYPE_F16:
    case TYPE_USHORT:
        return TANDEM_F16;
    case TYPE_BF16:
        return TANDEM_BF16;
    default:
        return TANDEM_F32;
    }
}

static uint64_t without_64bit_flag(uint64_t key)
{
    return key & ~variant_key_kernel(0, 0, true, 0);
}

bool warmup_call_select_step(struct warmup_call *out, uint64_t key,
                             const uint64_t *operand_bytes)
{
    const struct kernel_step *step = out->plan.step;
    const struct kernel_step *end = step + out->plan.step_count;
    while (step < end &&
           without_64bit_flag(step->key) != without_64bit_flag(key))
        step++;
    if (step == end)
        return false;
    out->step = step;
    for (uint32_t i = 0; i < step->buffer_count; i++) {
        const struct tandem_buffer *buffer = step->buffers[i];
        uint64_t bytes =
            buffer != NULL ? operand_bytes[buffer - out->operands]
            : step->arrival_counters != 0 && step->arrival_counters == i
                ? ARRIVAL_COUNTERS * sizeof(uint32_t)
                : out->plan.temp_bytes;
        out->bytes[i] = (bytes + 3) / 4 * 4;
    }
    return true;
}
