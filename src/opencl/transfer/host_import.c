/* SPDX-License-Identifier: Apache-2.0 */
/* Imports host memory as buffers. A driver can use a copy of the memory that it
 * gets with CL_MEM_USE_HOST_PTR, and some devices with unified memory are not
 * coherent. A device must therefore pass a coherence test: host and device must
 * see each other's writes without map or transfer commands. */
#include "opencl/transfer/host_import.h"

#include <stdlib.h>
#include <string.h>

#include "opencl/memory/deferred_release.h"
#include "opencl/launch/kernel_launch.h"
#include "opencl/queue/stream_lifecycle.h"
#include "opencl/device/cl_status.h"

#define TEST_BYTES 4096u
#define PAGE_BYTES 4096u
/* GPU drivers copy imported memory unless its size is a multiple of this. */
#define SIZE_MULTIPLE 64u

/* Result of the coherence test: a value of device.shares_memory. */
enum coherence { COHERENCE_UNKNOWN, COHERENCE_PASSED, COHERENCE_FAILED };

/* ---- test with commands ---- */

/* Objects of the coherence test that uses fill and copy commands.  The objects
 * are released when the commands have completed. */
struct coherence_test {
    unsigned char *memory;
    cl_uint read_back; /* value of the last element of buffer `other` */
    cl_command_queue queue;
    cl_mem mem, other;
};

static void test_free(void *user)
{
    struct coherence_test *test = user;
    if (test->mem != NULL)
        clReleaseMemObject(test->mem);
    if (test->other != NULL)
        clReleaseMemObject(test->other);
    if (test->queue != NULL)
        clReleaseCommandQueue(test->queue);
    free(test->memory);
    free(test);
}

static struct coherence_test *test_create(struct tandem_device *device)
{
    cl_int code = CL_OUT_OF_HOST_MEMORY;
    struct coherence_test *test = calloc(1, sizeof(*test));
    if (test == NULL)
        return NULL;
    test->memory = aligned_alloc(PAGE_BYTES, TEST_BYTES);
    if (test->memory != NULL) {
        memset(test->memory, 0, TEST_BYTES);
        test->queue = clCreateCommandQueue(device->context,
                                           device->hardware->id, 0, &code);
    }
    if (code == CL_SUCCESS)
        test->mem = clCreateBuffer(device->context,
                                   CL_MEM_READ_WRITE | CL_MEM_USE_HOST_PTR,
                                   TEST_BYTES, test->memory, &code);
    if (code == CL_SUCCESS)
        test->other = clCreateBuffer(device->context, CL_MEM_READ_WRITE,
                                     TEST_BYTES, NULL, &code);
    if (code == CL_SUCCESS)
        return test;
    test_free(test);
    return NULL;
}

/* The device fills the memory and the host reads it.  After that, the host
 * writes the memory, the device copies it to a buffer, and the host reads the
 * buffer. */
static enum tandem_status test_run(struct coherence_test *test,
                                   struct tandem_device *device,
                                   bool *out_shared, bool *out_deferred)
{
    const cl_uint first = 0x5a5a5a5au;
    const size_t last = TEST_BYTES - sizeof(first);
    cl_event event = NULL;
    cl_uint seen;
    cl_int code =
        clEnqueueFillBuffer(test->queue, test->mem, &first, sizeof(first), 0,
                            TEST_BYTES, 0, NULL, &event);
    enum tandem_status status = status_from_cl(device, code, "import_host");
    if (status == TANDEM_OK)
        status = deferred_release_wait(device, test->queue, event, test_free,
                                       test, out_deferred);
    if (status != TANDEM_OK)
        return status;
    memcpy(&seen, test->memory + last, sizeof(seen));
    memset(test->memory, 0x3c, TEST_BYTES);
    code = clEnqueueCopyBuffer(test->queue, test->mem, test->other, 0, 0,
                               TEST_BYTES, 0, NULL, NULL);
    if (code == CL_SUCCESS)
        code = clEnqueueReadBuffer(test->queue, test->other, CL_FALSE, last,
                                   sizeof(test->read_back), &test->read_back, 0,
                                   NULL, &event);
    status = status_from_cl(device, code, "import_host");
    if (status == TANDEM_OK)
        status = deferred_release_wait(device, test->queue, event, test_free,
                                       test, out_deferred);
    if (status == TANDEM_OK)
        *out_shared = seen == first && test->read_back == 0x3c3c3c3cu;
    return status;
}

static bool commands_coherence_test(struct tandem_device *device)
{
    bool shared = false, deferred = false;
    struct coherence_test *test = test_create(device);
    if (test == NULL)
        return false;
    enum tandem_status status = test_run(test, device, &shared, &deferred);
    if (!deferred)
        test_free(test);
    return status == TANDEM_OK && shared;
}

/* ---- test with a kernel ---- */

#define TEST_FLOATS (TEST_BYTES / sizeof(float))
/* Number of kernel_coherence_test runs. Later runs find stale cache lines. */
#define REPEATS 3

/* The host writes memory `from`, a kernel stores the negated values in `to`,
 * and the host reads `to`. */
static bool kernel_coherence_test(struct tandem_stream *stream,
                                  const struct op_request *request, float *from,
                                  float *to, float first)
{
    for (size_t i = 0; i < TEST_FLOATS; i++) {
        from[i] = first + (float)i;
        to[i] = 0;
    }
    if (launch_op(stream, request) != TANDEM_OK ||
        stream_synchronize(stream, device_timeout_ns(stream->device)) !=
            TANDEM_OK)
        return false;
    for (size_t i = 0; i < TEST_FLOATS; i++)
        if (to[i] != -first - (float)i)
            return false;
    return true;
}

static const struct tandem_op test_op = {.struct_size = sizeof(test_op),
                                         .id = TANDEM_OP_NEG};
static const struct tandem_tensor_desc test_desc = {
    .dtype = TANDEM_F32, .rank = 1, .shape = {TEST_FLOATS}, .strides = {1}};

static struct op_request test_request(const struct tandem_tensor_desc **in,
                                      const struct tandem_tensor_desc **out)
{
    return (struct op_request){.op = &test_op,
                               .inputs = in,
                               .input_count = 1,
                               .outputs = out,
                               .output_count = 1};
}

/* Tests coherence with kernels, because a driver can treat kernels differently
 * from copy commands. */
static bool kernels_coherence_test(struct tandem_device *device,
                                   unsigned char *memory)
{
    struct tandem_tensor_desc descs[2] = {test_desc, test_desc};
    const struct tandem_tensor_desc *in = &descs[0], *out = &descs[1];
    const struct op_request request = test_request(&in, &out);
    struct tandem_buffer *from = NULL, *to = NULL;
    struct tandem_stream *stream = NULL;
    float *floats = (float *)(void *)memory;
    bool right =
        buffer_import(device, memory, TEST_BYTES, &from) == TANDEM_OK &&
        buffer_import(device, memory + TEST_BYTES, TEST_BYTES, &to) ==
            TANDEM_OK &&
        stream_create(device, 0, &stream) == TANDEM_OK;
    descs[0].buffer = from;
    descs[1].buffer = to;
    for (int i = 0; i < REPEATS && right; i++)
        right =
            kernel_coherence_test(stream, &request, floats,
                                  floats + TEST_FLOATS, (float)(i * 4096 + 1));
    if (stream != NULL)
        stream_destroy(stream);
    if (from != NULL)
        buffer_destroy(from);
    if (to != NULL)
        buffer_destroy(to);
    return right;
}

/* If the device is lost, a kernel of the test can still be running, so that the
 * test's memory is not freed. */
static bool coherence_test_run(struct tandem_device *device)
{
    if (!commands_coherence_test(device))
        return false;
    if (device->hardware->info.kind == TANDEM_DEVICE_CPU)
        return true;
    unsigned char *memory = aligned_alloc(PAGE_BYTES, 2 * TEST_BYTES);
    if (memory == NULL)
        return false;
    bool shared = kernels_coherence_test(device, memory);
    if (!atomic_load(&device->lost))
        free(memory);
    return shared;
}

void import_prepare(struct tandem_device *device)
{
    const struct platform_device *hardware = device->hardware;
    const struct tandem_tensor_desc *in = &test_desc, *out = &test_desc;
    struct launch_plan plan;
    struct launch_memory memory;
    if (hardware->info.kind == TANDEM_DEVICE_CPU || !hardware->unified ||
        atomic_load(&device->shares_memory) != COHERENCE_UNKNOWN)
        return;
    const struct op_request request = test_request(&in, &out);
    if (launch_plan_for_device(device, &request, &plan, &memory) != TANDEM_OK)
        return;
    for (uint32_t i = 0; i < plan.step_count; i++)
        if (plan.step[i].key.kernel != NULL)
            kernel_variant_prepare(device, &plan, i);
}

static bool shares_memory(struct tandem_device *device)
{
    int known = atomic_load(&device->shares_memory);
    if (known == COHERENCE_UNKNOWN) {
        known =
            coherence_test_run(device) ? COHERENCE_PASSED : COHERENCE_FAILED;
        atomic_store(&device->shares_memory, known);
    }
    return known == COHERENCE_PASSED;
}

enum tandem_status import_memory(struct tandem_device *device, void *memory,
                                 uint64_t bytes,
                                 struct tandem_buffer **out_buffer)
{
    const struct platform_device *hardware = device->hardware;
    bool cpu = hardware->info.kind == TANDEM_DEVICE_CPU;
    if (!cpu && !hardware->unified)
        return last_error_set(TANDEM_UNSUPPORTED,
                              "import_host: %s does not share the host's "
                              "memory",
                              hardware->info.name);
    if (bytes > 0 && !cpu &&
        ((uintptr_t)memory % PAGE_BYTES != 0 || bytes % SIZE_MULTIPLE != 0))
        return last_error_set(TANDEM_UNSUPPORTED,
                              "import_host: memory %p must be aligned to %u "
                              "and its %llu bytes a multiple of %u, otherwise "
                              "%s copies it",
                              memory, PAGE_BYTES, (unsigned long long)bytes,
                              SIZE_MULTIPLE, hardware->info.name);
    if (!shares_memory(device))
        return last_error_set(TANDEM_UNSUPPORTED,
                              "import_host: %s works on a copy of host memory",
                              hardware->info.name);
    return buffer_import(device, memory, bytes, out_buffer);
}
