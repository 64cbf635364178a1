/* SPDX-License-Identifier: Apache-2.0 */
/* Description of the kernels in cl/: source, function and macros.  Each planner
 * describes its kernels in constant tables.  Pure functions that any thread may
 * call. */
#ifndef TANDEM_OPENCL_PLAN_KERNEL_INFO_H
#define TANDEM_OPENCL_PLAN_KERNEL_INFO_H

#include "opencl/plan/kernel_key.h"

struct platform_device;
struct kernel_define;

#define DEFINE_VALUE_BYTES 64u
#define KERNEL_OPTION_BYTES 512u

/* Writes the value of the macro to `out`.  Returns false if the macro is not
 * defined for this key. */
typedef bool define_value_fn(char out[DEFINE_VALUE_BYTES],
                             const struct kernel_define *define,
                             const struct kernel_key *key,
                             const struct platform_device *hardware);

/* A macro of a kernel.  `argument` is for the function: the number itself, an
 * operand, or the offset of a field of struct kernel_key. */
struct kernel_define {
    const char *name;
    define_value_fn *value;
    size_t argument;
};

define_value_fn define_constant, define_field, define_type, define_activation;
/* Writes a number and returns true. */
bool define_number(char out[DEFINE_VALUE_BYTES], uint32_t number);
bool define_string(char out[DEFINE_VALUE_BYTES], const char *string);

#define DEFINE_CONSTANT(name, number)                                          \
    {                                                                          \
        name, define_constant, number                                          \
    }
#define DEFINE_FIELD(name, field)                                              \
    {                                                                          \
        name, define_field, offsetof(struct kernel_key, field)                 \
    }
/* The OpenCL C type of an operand.  Operand 0 is the output. */
#define DEFINE_TYPE(name, operand)                                             \
    {                                                                          \
        name, define_type, operand                                             \
    }

enum kernel_flags {
    /* The work-group size does not depend on the device. */
    KERNEL_FIXED_GROUP_SIZE = 1u,
    /* The kernel has instructions that OpenCL does not define, so that
     * kernel_self_test.h tests it before its first use. */
    KERNEL_SELF_TEST = 2u,
    KERNEL_PTX_REWRITE = 4u /* ptx_rewrite.h must rewrite the PTX */
};

struct kernel_info {
    const char *file;     /* name of the source file, such as "reduce.cl" */
    const char *source;   /* text with its includes; NULL for CLBlast */
    const char *function; /* name of the kernel */
    /* All macros that the compiler gets, except for those of all kernels.  The
     * name of the last entry is NULL. */
    const struct kernel_define *defines;
    uint32_t param_bytes; /* size of the parameter struct */
    uint32_t flags;       /* enum kernel_flags */
};

/* The members `file` and `source` of a kernel in a file of cl/.
 * embed_kernels.sh makes the text of each file. */
#define KERNEL_SOURCE(name) .file = #name ".cl", .source = kernel_source_##name
/* All texts; the last element is NULL. */
extern const char *const kernel_sources[];
#define DECLARE_KERNEL_SOURCE(name) extern const char kernel_source_##name[]

/* A kernel and its compiler options: a standard, macros that all kernels have,
 * and the macros of struct kernel_info. */
struct kernel_source {
    const struct kernel_info *kernel;
    char options[KERNEL_OPTION_BYTES];
};
void kernel_source_make(struct kernel_source *out, const struct kernel_key *key,
                        const struct platform_device *hardware);

#endif
