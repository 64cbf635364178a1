/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An OpenCL layer for tests.  It counts objects created, retained and
 * released, and what is enqueued; and it fails calls, commands, memory and
 * builds as a script says (layer.h).  Without a script it changes nothing.
 *
 * The ICD loader loads it where OPENCL_LAYERS names it.  A program that
 * cannot call layer_set_fault is scripted through the environment, read when
 * the layer is loaded:
 *
 *   TANDEM_LAYER_CORRUPT=TEXT
 *       After each kernel whose name has TEXT in it (as "softmax", "Xgemm"),
 *       or whose program was built with options that have (as
 *       "-DOP=op_gelu "), every 4 bytes of the buffer that it writes become
 *       the float 123.456: of argument 0, or, where that is no buffer (as in
 *       CLBlast's kernels), of the last argument that is.
 *   TANDEM_LAYER_FAULT=FAULT:FUNCTION:NTH:CODE[:TIMES]
 *       FAULT is call, later, lazy, lazy-later, hang, endless or wrong, as in
 *       layer.h; FUNCTION one of OpenCL's, or * for all; CODE a number, as
 *       -5; TIMES 1 unless given, 0 for ever.
 *   TANDEM_LAYER_TEXT=TEXT
 *       The script's text: of TANDEM_LAYER_FAULT's calls, those alone with
 *       TEXT in the build options or the kernel's name.
 *   TANDEM_LAYER_GPU=1
 *       Devices say that they are GPUs, so that on an OpenCL for processors
 *       the plugin goes the ways of GPUs too.
 *   TANDEM_LAYER_STALE_MAP=1
 *       What the host writes by a map does not all reach the device.
 *   TANDEM_LAYER_NONCOHERENT_IMPORT=HOW
 *       What the host gives a buffer as its memory is copied, and used no more
 *       (HOW is 1); or looked at before each command (in), or written after
 *       each (out).  Or both, but of kernels the one alone (in-kernels,
 *       out-kernels), or the first time alone (once-kernels).
 *   TANDEM_LAYER_SOURCE_PREFIX=TEXT
 *       Begins the source of each program.
 *   TANDEM_LAYER_OBJECT_CACHE=1
 *       The driver makes one context for each device and builds each program
 *       once; see object_cache.c.
 *   TANDEM_LAYER_GUARD_PAGES=1
 *       Buffers end where memory ends: what a kernel touches past them ends the
 *       process; see guard_pages.c.
 *   TANDEM_LAYER_LEAVES=1
 *       At exit the layer prints how many contexts the program left open.
 *
 * Any thread.
 */
#include "internal.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

cl_icd_dispatch target;
struct layer_counts counts;
static cl_icd_dispatch layer;

#define LAYER_NAME(name) #name,
const char *const function_names[FUNCTIONS] = {LAYER_FUNCTIONS(LAYER_NAME)};

void layer_counts_read(struct layer_counts *out_counts)
{
    uint64_t copy[sizeof counts / sizeof(uint64_t)];
    const uint64_t *from = (const uint64_t *)&counts;

    for (size_t i = 0; i < sizeof copy / sizeof *copy; i++)
        copy[i] = __atomic_load_n(&from[i], __ATOMIC_RELAXED);
    memcpy(out_counts, copy, sizeof copy);
}

/* Tells a test from outside whether the program closed its devices before it
 * ended: drivers may crash if it did not. */
__attribute__((destructor)) static void leaves_report(void)
{
    struct layer_counts now;

    if (!getenv("TANDEM_LAYER_LEAVES"))
        return;
    layer_counts_read(&now);
    fprintf(stderr, "layer: %" PRIu64 " contexts created, %" PRIu64
            " left open\n", now.created[LAYER_CONTEXT],
            now.created[LAYER_CONTEXT] + now.retained[LAYER_CONTEXT] -
                now.released[LAYER_CONTEXT]);
}

LAYER_EXPORT CL_API_ENTRY cl_int CL_API_CALL clGetLayerInfo(cl_layer_info name,
                                                            size_t room,
                                                            void *value,
                                                            size_t *out_size)
{
    static const char text[] = "tandem's layer for tests";
    static const cl_layer_api_version version = CL_LAYER_API_VERSION_100;
    const void *from = name == CL_LAYER_NAME ? (const void *)text : &version;
    const size_t size = name == CL_LAYER_NAME ? sizeof text : sizeof version;

    if (name != CL_LAYER_NAME && name != CL_LAYER_API_VERSION)
        return CL_INVALID_VALUE;
    if (value && room < size)
        return CL_INVALID_VALUE;
    if (value)
        memcpy(value, from, size);
    if (out_size)
        *out_size = size;
    return CL_SUCCESS;
}

LAYER_EXPORT CL_API_ENTRY cl_int CL_API_CALL
clInitLayer(cl_uint entries, const cl_icd_dispatch *target_dispatch,
            cl_uint *out_entries, const cl_icd_dispatch **out_dispatch)
{
    if (!target_dispatch || !out_entries || !out_dispatch ||
        entries < sizeof target / sizeof(void *))
        return CL_INVALID_VALUE;
    memcpy(&target, target_dispatch, sizeof target);
    layer = target;
#define REPLACE(name)                                                        \
    if (target.name)                                                         \
        layer.name = layer_##name;
    LAYER_FUNCTIONS(REPLACE)
    fault_environment();
    corrupt_environment();
    memo_environment();
    fence_environment();
    *out_entries = sizeof layer / sizeof(void *);
    *out_dispatch = &layer;
    return CL_SUCCESS;
}
