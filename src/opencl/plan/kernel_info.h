/* SPDX-License-Identifier: Apache-2.0 */
/* Description of the kernels in cl/: source, function and macros.  Each planner
 * describes its kernels in constant tables.  Pure functions that any thread may
 * call. */
#ifndef TANDEM_OPENCL_PLAN_KERNEL_INFO_H
#define TANDEM_OPENCL_PLAN_KERNEL_INFO_H

#include "opencl/plan/kernel_key.h"

struct activation;
struct platform_device;

#define DEFINE_VALUE_BYTES 64u
#define KERNEL_OPTION_BYTES 512u

/* The input of a function that returns the value of a macro.  `argument` is
 * that of struct kernel_define. */
struct define_input {
    const struct kernel_key *key;
    const struct platform_device *hardware;
    size_t argument;
};

/* Returns a number, or NOT_DEFINED if the macro is not defined for the key. */
typedef uint32_t define_number_fn(const struct define_input *in);
#define NOT_DEFINED UINT32_MAX
/* Writes a text to `out`.  Returns false if the macro is not defined for the
 * key. */
typedef bool define_text_fn(char out[DEFINE_VALUE_BYTES],
                            const struct define_input *in);

/* A macro of a kernel, with one of the two functions.  `argument` is for the
 * function: the number itself, an operand, or the offset of a member. */
struct kernel_define {
    const char *name;
    define_number_fn *number;
    define_text_fn *text;
    size_t argument;
};

define_number_fn define_constant, define_field;
define_text_fn define_type, define_activation;
/* Returns the activation that a kernel applies instead: clip instead of none
 * and of relu, which clip computes exactly. Fewer kernels have to be compiled
 * then, and clip takes no measurable time. */
struct activation activation_for_kernel(const struct activation *activation);
/* Sets the key's fields for the activation. */
void kernel_key_set_activation(struct kernel_key *key,
                               const struct activation *activation);
/* Writes the string and returns true. */
bool define_string(char out[DEFINE_VALUE_BYTES], const char *string);

#define DEFINE_NUMBER(macro, function, value)                                  \
    {                                                                          \
        .name = macro, .number = function, .argument = value                   \
    }
#define DEFINE_TEXT(macro, function, value)                                    \
    {                                                                          \
        .name = macro, .text = function, .argument = value                     \
    }
#define DEFINE_CONSTANT(macro, number)                                         \
    DEFINE_NUMBER(macro, define_constant, number)
#define DEFINE_FIELD(macro, field)                                             \
    DEFINE_NUMBER(macro, define_field, offsetof(struct kernel_key, field))
/* The OpenCL C type of an operand.  Operand 0 is the output. */
#define DEFINE_TYPE(macro, operand) DEFINE_TEXT(macro, define_type, operand)
#define END_OF_DEFINES                                                         \
    {                                                                          \
        .name = NULL                                                           \
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
