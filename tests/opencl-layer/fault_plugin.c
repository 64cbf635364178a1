/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The OpenCL plugin with the key test.fault (extensions.h), which makes a
 * launch fail or time out by means of the layer, so that the conformance suite
 * tests errors of work that was enqueued. The layer is its own plugin: give the
 * suite the layer's path, and set OPENCL_LAYERS to it. One thread at a time.
 */
#include "internal.h"

#include <tandem/backend.h>
#include <tandem/extensions.h>

#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#define PLUGIN ".libs/tandem-opencl.so"
#define INVALID_EVENT                                                          \
    (-58) /* An error of one call; the device keeps working. */
#define ILLEGAL_ACCESS (-9999) /* NVIDIA's code; the device is lost. */

static const struct tandem_backend *plugin;
static unsigned long launches_left; /* Launches up to the one with the fault. */
static struct layer_script fault;   /* The fault of that launch. */

/* Returns the error of OpenCL that the plugin reports as this status. */
static cl_int code_of(int status)
{
    return status == TANDEM_DEVICE_LOST     ? ILLEGAL_ACCESS
           : status == TANDEM_OUT_OF_MEMORY ? CL_MEM_OBJECT_ALLOCATION_FAILURE
                                            : INVALID_EVENT;
}

static enum tandem_status fault_open(uint32_t index,
                                     const struct tandem_open_options *options,
                                     struct tandem_device **out_device)
{
    int status = TANDEM_FAILED;

    launches_left = 0;
    for (uint32_t i = 0; options && i < options->count; i++) {
        if (strcmp(options->keys[i], "test.fault") != 0)
            continue;
        fault = (struct layer_script){.function = "clEnqueueNDRangeKernel",
                                      .nth = 1,
                                      .times = 1,
                                      .fault = LAYER_FAULT_ENDLESS};
        if (sscanf(options->values[i], "launch:%lu:%d", &launches_left,
                   &status) == 2)
            fault.fault = LAYER_FAULT_AFTER_ENQUEUE;
        else
            sscanf(options->values[i], "wait:%lu", &launches_left);
        fault.code = code_of(status);
    }
    return plugin->open(index, options, out_device);
}

static enum tandem_status fault_launch(struct tandem_stream *stream,
                                       struct tandem_prepared *prepared,
                                       const struct tandem_memory *memory,
                                       uint32_t count_, const double *scalars,
                                       uint32_t scalar_count)
{
    /*
     * A compilation launches kernels to try them out. All work that is not
     * known to be complete counts as failed, so the work before is awaited.
     */
    if (launches_left > 0 && --launches_left == 0 &&
        plugin->prepared_wait(prepared, TANDEM_TIMEOUT_INFINITE) == TANDEM_OK &&
        plugin->stream_synchronize(stream, TANDEM_TIMEOUT_INFINITE) ==
            TANDEM_OK)
        layer_set_fault(&fault);
    return plugin->launch(stream, prepared, memory, count_, scalars,
                          scalar_count);
}

/* Work that does not end does so after the first wait for it. */
static enum tandem_status fault_synchronize(struct tandem_stream *stream,
                                            uint64_t timeout_ns)
{
    const enum tandem_status status =
        plugin->stream_synchronize(stream, timeout_ns);

    if (status == TANDEM_NOT_READY && fault.fault == LAYER_FAULT_ENDLESS)
        layer_release();
    return status;
}

static const void *fault_extension(const char *name)
{
    static const char *const keys[] = {"test.fault", NULL};
    static const struct tandem_test_extension extension = {sizeof extension,
                                                           keys};

    return name && strcmp(name, TANDEM_EXTENSION_TEST) == 0
               ? &extension
               : plugin->extension(name);
}

static pthread_once_t table_once = PTHREAD_ONCE_INIT;
static struct tandem_backend table;

static void table_fill(void)
{
    void *library = dlopen(PLUGIN, RTLD_NOW | RTLD_LOCAL);
    void *symbol = library ? dlsym(library, TANDEM_BACKEND_QUERY_SYMBOL) : NULL;
    tandem_backend_query_fn query;

    memcpy(&query, &symbol, sizeof query);
    plugin = symbol ? query(TANDEM_ABI_MAJOR) : NULL;
    if (!plugin)
        return;
    table = *plugin;
    table.open = fault_open;
    table.launch = fault_launch;
    table.stream_synchronize = fault_synchronize;
    table.extension = fault_extension;
}

#undef tandem_backend_query
LAYER_EXPORT const struct tandem_backend *
tandem_backend_query(uint32_t host_abi_major)
{
    pthread_once(&table_once, table_fill);
    return plugin && host_abi_major == TANDEM_ABI_MAJOR ? &table : NULL;
}
