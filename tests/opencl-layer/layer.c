/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An OpenCL layer for tests. It counts objects that are created, retained and
 * released, and enqueued commands. It lets calls, commands, memory and builds
 * fail as a script says (layer.h). Without a script it changes nothing.
 *
 * The ICD loader loads the layer if OPENCL_LAYERS contains its path. A program
 * that cannot call layer_set_fault is scripted through environment variables,
 * which are read when the layer is loaded:
 *
 *   TANDEM_LAYER_CORRUPT=TEXT
 *       After each kernel with TEXT in its name (such as "softmax", "Xgemm")
 *       or in the build options of its program (such as "-DOP=op_gelu "), each
 *       4 bytes of its output become the float 123.456. The output is argument
 *       0, or the last buffer argument if argument 0 is not a buffer (as in
 *       CLBlast's kernels).
 *   TANDEM_LAYER_FAULT=FAULT:FUNCTION:NTH:CODE[:TIMES]
 *       FAULT is call, later, lazy, lazy-later, hang, endless or wrong, as in
 *       layer.h. FUNCTION is an OpenCL function, or * for all. CODE is a
 *       number like -5. TIMES is 1 by default; 0 stands for all later calls.
 *   TANDEM_LAYER_TEXT=TEXT
 *       Limits TANDEM_LAYER_FAULT to calls with TEXT in the build options or
 *       the kernel's name.
 *   TANDEM_LAYER_GPU=1
 *       Devices report to be GPUs, so that the plugin uses its code for GPUs
 *       on CPU devices. If the value is "discrete", they also report that they
 *       do not share the host's memory.
 *   TANDEM_LAYER_FREE_KIB=N
 *       Devices have AMD's query of free memory, which returns N KiB.
 *   TANDEM_LAYER_NONCOHERENT_IMPORT=HOW
 *       The driver works on a copy of imported host memory. HOW is 1 (never
 *       updated), in (updated from the host before each command), out (written
 *       to the host after each command), in-kernels or out-kernels (kernels
 *       have only this direction, other commands both), or once-kernels
 *       (kernels read the host's memory only the first time).
 *   TANDEM_LAYER_SOURCE_PREFIX=TEXT
 *       Each program's source starts with TEXT.
 *   TANDEM_LAYER_OBJECT_CACHE=1
 *       The driver creates one context for each device and builds each program
 *       once; see object_cache.c.
 *   TANDEM_LAYER_GUARD_PAGES=1
 *       A kernel that accesses memory past the end of a buffer ends the
 *       process; see guard_pages.c.
 *   TANDEM_LAYER_LAUNCHES=FILE
 *       Appends a line to the file for each kernel and copy: name, sizes,
 *       build options and parameters. For run-launch-comparison.
 *   TANDEM_LAYER_CUT_DRIVERS=1
 *       clGetPlatformIDs ends the variable OCL_ICD_FILENAMES at its first
 *       colon.
 *   TANDEM_LAYER_LEAVES=1
 *       At exit the layer prints how many contexts the program left open.
 *
 * Any thread may call the layer.
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

/*
 * Lets a test find out whether the program closed its devices before it ended.
 * Drivers may crash if it did not.
 */
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
    object_cache_environment();
    guard_pages_environment();
    launch_log_environment();
    *out_entries = sizeof layer / sizeof(void *);
    *out_dispatch = &layer;
    return CL_SUCCESS;
}
