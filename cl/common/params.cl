/* SPDX-License-Identifier: Apache-2.0 */
/* Types of the parameters of kernels.  The planners in src/opencl/plan include
 * the .cl files, so that each parameter struct exists once.  In C, a .cl file
 * declares its structs and nothing else. */
#ifndef TANDEM_PARAMS_CL
#define TANDEM_PARAMS_CL

#ifdef __OPENCL_C_VERSION__
typedef int int32_t;
typedef uint uint32_t;
typedef long int64_t;
typedef ulong uint64_t;
/* Compiles only if the struct has this number of bytes. */
#define PARAMS_SIZE(name, bytes)                                               \
    typedef char name##_size_check[sizeof(struct name) == (bytes) ? 1 : -1]
#else
#include <stdint.h>
#define PARAMS_SIZE(name, bytes)                                               \
    _Static_assert(sizeof(struct name) == (bytes) &&                           \
                       (bytes) <= MAX_PARAM_BYTES,                             \
                   "size of struct " #name)
#endif

#define MAX_AXES 8
/* Largest size of a parameter struct. */
#define MAX_PARAM_BYTES 1024

/* Extents of up to eight axes, the innermost axis first. fast_divide divides an
 * index below 2^31 by an extent, using this extent's multiplier and shift. */
struct fast_divmod {
    uint64_t extent[MAX_AXES];
    uint32_t multiplier[MAX_AXES];
    uint32_t shift[MAX_AXES];
};
PARAMS_SIZE(fast_divmod, 128);

#endif
