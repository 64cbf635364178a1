/* SPDX-License-Identifier: Apache-2.0 */
/* Makes the compiler options of a kernel from its key. */
#include "opencl/plan/kernel_info.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>

#include "common/op_activation.h"
#include "common/operator_table.h"
#include "opencl/device/device_enumeration.h"

/* ---- values of macros ---- */

bool define_string(char out[DEFINE_VALUE_BYTES], const char *string)
{
    snprintf(out, DEFINE_VALUE_BYTES, "%s", string);
    return true;
}

uint32_t define_constant(const struct define_input *in)
{
    return (uint32_t)in->argument;
}

uint32_t define_field(const struct define_input *in)
{
    return ((const uint8_t *)in->key)[in->argument];
}

bool define_type(char out[DEFINE_VALUE_BYTES], const struct define_input *in)
{
    static const char *const names[TYPE_COUNT] = {
        [TYPE_FLOAT] = "float", [TYPE_INT] = "int",       [TYPE_LONG] = "long",
        [TYPE_UCHAR] = "uchar", [TYPE_USHORT] = "ushort", [TYPE_UINT] = "uint",
        [TYPE_ULONG] = "ulong", [TYPE_BOOL] = "uchar",    [TYPE_F16] = "ushort",
        [TYPE_BF16] = "ushort"};
    return define_string(out, names[in->key->types[in->argument]]);
}

bool define_activation(char out[DEFINE_VALUE_BYTES],
                       const struct define_input *in)
{
    const struct operator_info *info = operator_lookup(in->key->op);
    if (info == NULL)
        return false;
    snprintf(out, DEFINE_VALUE_BYTES, "op_%s%s", info->name,
             in->key->op_form != 0 ? "_tanh" : "");
    return true;
}

struct activation activation_for_kernel(const struct activation *activation)
{
    switch (activation->op) {
    case TANDEM_OP_INVALID:
        return (struct activation){TANDEM_OP_CLIP, {-INFINITY, INFINITY}};
    case TANDEM_OP_RELU:
        return (struct activation){TANDEM_OP_CLIP, {0, INFINITY}};
    default:
        return *activation;
    }
}

void kernel_key_set_activation(struct kernel_key *key,
                               const struct activation *activation)
{
    key->op = (uint16_t)activation_for_kernel(activation).op;
    key->op_form = activation_is_gelu_tanh(activation);
}

/* ---- options ---- */

__attribute__((format(printf, 2, 3))) static void
append(char out[KERNEL_OPTION_BYTES], const char *format, ...)
{
    size_t used = strlen(out);
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(out + used, KERNEL_OPTION_BYTES - used, format, arguments);
    va_end(arguments);
}

void kernel_source_make(struct kernel_source *out, const struct kernel_key *key,
                        const struct platform_device *hardware)
{
    char value[DEFINE_VALUE_BYTES];
    out->kernel = key->kernel;
    out->options[0] = '\0';
    append(out->options,
           "-cl-std=CL1.2 -DBUILD_%s -DGROUP_SIZE=%u -DINDEX_64BIT=%u "
           "-DSHUFFLE=%u%s%s",
           key->kernel->function, 1u << key->group_log2, key->index_64bit,
           hardware->nvidia      ? 1u
           : hardware->subgroups ? 2u
                                 : 0u,
           hardware->info.kind == TANDEM_DEVICE_CPU ? " -DIS_CPU=1" : "",
           hardware->correct_divide && key->fast_division == 0
               ? " -cl-fp32-correctly-rounded-divide-sqrt"
               : "");
    for (const struct kernel_define *define = key->kernel->defines;
         define->name != NULL; define++) {
        const struct define_input in = {key, hardware, define->argument};
        if (define->text == NULL) {
            uint32_t number = define->number(&in);
            if (number != NOT_DEFINED)
                append(out->options, " -D%s=%u", define->name, number);
        } else if (define->text(value, &in)) {
            append(out->options, " -D%s=%s", define->name, value);
        }
    }
}
