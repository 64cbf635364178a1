/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The parameters of the f32 kernels that CLBlast's GEMM runs.  CLBlast groups
 * the parameters into families, one family per kernel.  This file lists each
 * family's parameters, their allowed values and the conditions between them.
 * The allowed values are those of CLBlast's tuners.  Only the first of Xgemm's
 * two kernels (GEMMK 0) is used, because the second one needs square tiles for
 * strided batches.  Pure functions; any thread may call them.
 */
#ifndef TANDEM_OPENCL_GEMM_CLBLAST_PARAMETER_SPACE_H
#define TANDEM_OPENCL_GEMM_CLBLAST_PARAMETER_SPACE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum family_id {
    FAMILY_XGEMM,
    FAMILY_DIRECT,
    FAMILY_ROUTINE,
    FAMILY_COPY,
    FAMILY_PAD,
    FAMILY_TRANSPOSE,
    FAMILY_PADTRANSPOSE,
    FAMILIES
};

#define FAMILY_PARAMETERS 16u
#define FAMILY_VALUES 5u
/* Text of a set, all of it. */
#define FAMILY_TEXT_BYTES 256u

/* The values, in the order of the family's parameters. */
struct parameter_set {
    uint32_t values[FAMILY_PARAMETERS];
};

struct parameter {
    const char *name;
    uint32_t count; /* 0: from values[0] to values[1] */
    uint32_t values[FAMILY_VALUES];
};

/* What a device's work-groups may have. */
struct family_limits {
    uint64_t group; /* work-items */
    uint64_t local_bytes;
};

struct family {
    const char *name; /* CLBlast's */
    uint32_t count;
    struct parameter parameters[FAMILY_PARAMETERS];
    bool (*fits)(const uint32_t *values, const struct family_limits *limits);
};

extern const struct family families[FAMILIES];

/* FAMILIES where there is none of that name. */
enum family_id family_find(const char *name);
/* Whether all values are among those that they may be, and fit together and
 * the device. */
bool family_valid(enum family_id id, const struct parameter_set *set,
                  const struct family_limits *limits);
/* "NAME=1 OTHER=2": each parameter once, and nothing else. */
bool family_read(enum family_id id, const char *text,
                 struct parameter_set *out);
void family_write(enum family_id id, const struct parameter_set *set,
                  char out_text[FAMILY_TEXT_BYTES]);
bool family_same(enum family_id id, const struct parameter_set *a,
                 const struct parameter_set *b);

#endif
