/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The families of parameters of CLBlast's f32 kernels: their names, the values
 * that each may take, and what must hold between them.  The spaces are those
 * that CLBlast's tuners publish; of Xgemm's two kernels the first (GEMMK 0),
 * since the second one's strided batches need square tiles.  Pure functions;
 * any thread.
 */
#ifndef TANDEM_OPENCL_FAMILY_H
#define TANDEM_OPENCL_FAMILY_H

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
    /* Those above are what matrix products use. */
    FAMILY_PRODUCTS,
    FAMILY_GEMV = FAMILY_PRODUCTS,
    FAMILY_GEMV_FAST,
    FAMILY_GEMV_ROTATED,
    FAMILY_DOT,
    FAMILY_AXPY,
    FAMILIES
};

#define FAMILY_PARAMETERS 16u
#define FAMILY_VALUES 6u
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
