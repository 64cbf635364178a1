/* SPDX-License-Identifier: Apache-2.0 */
/* Makes the compiler options of a kernel from its key. */
#include "opencl/plan/kernel_info.h"

#include <stdarg.h>
#include <stdio.h>

#include "common/operator_table.h"
#include "opencl/device/device_enumeration.h"

/* ---- values of macros ---- */

bool define_number(char out[DEFINE_VALUE_BYTES], uint32_t number)
{
    snprintf(out, DEFINE_VALUE_BYTES, "%u", number);
    return true;
}

bool define_string(char out[DEFINE_VALUE_BYTES], const char *string)
{
    snprintf(out, DEFINE_VALUE_BYTES, "%s", string);
    return true;
}

bool define_constant(char out[DEFINE_VALUE_BYTES],
                     const struct kernel_define *define,
                     const struct kernel_key *key,
                     const struct platform_device *hardware)
{
    (void)key, (void)hardware;
    return define_number(out, (uint32_t)define->argument);
}

bool define_field(char out[DEFINE_VALUE_BYTES],
                  const struct kernel_define *define,
                  const struct kernel_key *key,
                  const struct platform_device *hardware)
{
    (void)hardware;
    return define_number(out, ((const uint8_t *)key)[define->argument]);
}

bool define_type(char out[DEFINE_VALUE_BYTES],
                 const struct kernel_define *define,
                 const struct kernel_key *key,
                 const struct platform_device *hardware)
{
    static const char *const names[TYPE_COUNT] = {
        [TYPE_FLOAT] = "float", [TYPE_INT] = "int",       [TYPE_LONG] = "long",
        [TYPE_UCHAR] = "uchar", [TYPE_USHORT] = "ushort", [TYPE_UINT] = "uint",
        [TYPE_ULONG] = "ulong", [TYPE_BOOL] = "uchar",    [TYPE_F16] = "ushort",
        [TYPE_BF16] = "ushort"};
    (void)hardware;
    return define_string(out, names[key->types[define->argument]]);
}

bool define_activation(char out[DEFINE_VALUE_BYTES],
                       const struct kernel_define *define,
                       const struct kernel_key *key,
                       const struct platform_device *hardware)
{
    const struct operator_info *info = operator_lookup(key->op);
    (void)define, (void)hardware;
    if (info == NULL)
        return false;
    snprintf(out, DEFINE_VALUE_BYTES, "op_%s%s", info->name,
             key->op_form != 0 ? "_tanh" : "");
    return true;
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
           "-cl-std=CL1.2 -DGROUP_SIZE=%u -DINDEX_64BIT=%u -DSHUFFLE=%u%s%s",
           1u << key->group_log2, key->index_64bit,
           hardware->nvidia      ? 1u
           : hardware->subgroups ? 2u
                                 : 0u,
           hardware->info.kind == TANDEM_DEVICE_CPU ? " -DIS_CPU=1" : "",
           hardware->correct_divide && key->fast_division == 0
               ? " -cl-fp32-correctly-rounded-divide-sqrt"
               : "");
    for (const struct kernel_define *define = key->kernel->defines;
         define->name != NULL; define++)
        if (define->value(value, define, key, hardware))
            append(out->options, " -D%s=%s", define->name, value);
}
