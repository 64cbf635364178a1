/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Compares the layout of the binary interface with its golden list at compile
 * time; the test passes if this file compiles. check-headers compiles it
 * for other machines too.
 */
#include <tandem/extensions.h>
#include <tandem/host.h>

#if defined(__LP64__)
#define GOLDEN(lp64, i386, arm) (lp64)
#elif defined(__i386__)
#define GOLDEN(lp64, i386, arm) (i386)
#else
#define GOLDEN(lp64, i386, arm) (arm)
#endif

#define SIZE(type, lp64, i386, arm)                                          \
    _Static_assert(sizeof(struct type) == GOLDEN(lp64, i386, arm),           \
                   "the size of struct " #type);
#define ALIGNMENT(type, lp64, i386, arm)                                     \
    _Static_assert(_Alignof(struct type) == GOLDEN(lp64, i386, arm),         \
                   "the alignment of struct " #type);
#define FIELD(type, field, lp64, i386, arm)                                  \
    _Static_assert(offsetof(struct type, field) == GOLDEN(lp64, i386, arm),  \
                   "the offset of " #field " in struct " #type);
#define ENTRY(field, ...)                                                    \
    _Static_assert(                                                          \
        __builtin_types_compatible_p(                                        \
            __typeof__(((struct tandem_backend *)0)->field), __VA_ARGS__),   \
        "the type of the table's entry " #field);
#define VALUE(name, number)                                                  \
    _Static_assert((uint32_t)name == number, "the value of " #name);
#define OPERATOR(ID, number, ...)                                            \
    _Static_assert((uint32_t)TANDEM_OP_##ID == number, "the number of " #ID);
#include "golden.h"

_Static_assert(TANDEM_ABI_MAJOR == 1, "the major version");
_Static_assert(TANDEM_MAX_RANK == 8, "the largest rank");
_Static_assert(TANDEM_MAX_OPERANDS == 8, "the most operands");
_Static_assert(TANDEM_MAX_DEVICES == 16, "the most devices");
_Static_assert(TANDEM_TIMEOUT_INFINITE == UINT64_MAX, "the endless timeout");
_Static_assert(TANDEM_ANY_DEVICE == UINT32_MAX, "any device");
_Static_assert(TANDEM_RESIDENT_HOST == 0x80000000u, "the host's bit");
_Static_assert(sizeof(enum tandem_status) == 4, "an enumeration's size");
