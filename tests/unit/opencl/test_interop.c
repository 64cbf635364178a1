/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test-interop [PLATFORM [DEVICE]] - the extension opencl-interop.1: a program
 * that uses OpenCL itself shares its context, queues and memory with the
 * plugin, and uses those of the plugin. PLATFORM and DEVICE are numbers from 0.
 */
#include <config.h>

#include <math.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define CL_TARGET_OPENCL_VERSION 120
#include <CL/cl.h>

#include <tandem/extensions.h>

#include "support/test_list.h"
#include "support.h"

/* The operands of a product have SIDE x SIDE elements; the odd number makes the
 * kernel pack them. */
#define SIDE 93
#define COUNT (SIDE * SIDE)
#define BYTES (COUNT * sizeof(float))

static const struct tandem_opencl_interop_extension *interop;
static cl_device_id id;
static cl_context context;
static cl_command_queue queue;
static float left[COUNT], right[COUNT], result[COUNT];

#define CL_OK(call) ck_assert_int_eq(call, CL_SUCCESS)
#define INVALID(call) ck_assert_int_eq(call, TANDEM_INVALID_ARGUMENT)

/* ---- the program's side ---- */

static cl_command_queue queue_new(cl_context owner,
                                  cl_command_queue_properties properties)
{
    cl_int code;
    cl_command_queue out = clCreateCommandQueue(owner, id, properties, &code);

    CL_OK(code);
    return out;
}

static cl_mem memory_new(cl_context owner, cl_mem_flags flags, size_t bytes)
{
    cl_int code;
    cl_mem out = clCreateBuffer(owner, flags, bytes, NULL, &code);

    CL_OK(code);
    return out;
}

static cl_context context_new(cl_uint count, const cl_device_id *ids)
{
    cl_int code;
    cl_context out = clCreateContext(NULL, count, ids, NULL, NULL, &code);

    CL_OK(code);
    return out;
}

static cl_uint references(cl_mem memory)
{
    cl_uint count = 0;

    CL_OK(clGetMemObjectInfo(memory, CL_MEM_REFERENCE_COUNT, sizeof(count),
                             &count, NULL));
    return count;
}

static cl_uint queue_references(cl_command_queue counted)
{
    cl_uint count = 0;

    CL_OK(clGetCommandQueueInfo(counted, CL_QUEUE_REFERENCE_COUNT,
                                sizeof(count), &count, NULL));
    return count;
}

/* Fills a matrix with small numbers that depend on the seed. */
static void matrix_fill(float *matrix, unsigned seed)
{
    for (unsigned i = 0; i < COUNT; i++)
        matrix[i] = (float)((i * 37u + seed * 11u) % 64u) / 8.0f - 4.0f;
}

/* Compares `result` with the float64 product of `left` and `right`. */
static void expect_product(const char *what)
{
    for (int i = 0; i < SIDE; i++)
        for (int j = 0; j < SIDE; j++) {
            double sum = 0, magnitude = 0;

            for (int k = 0; k < SIDE; k++) {
                double term = (double)left[i * SIDE + k] * right[k * SIDE + j];

                sum += term;
                magnitude += fabs(term);
            }
            ck_assert_msg(fabs(result[i * SIDE + j] - sum) <=
                              magnitude * SIDE * 0x1p-23,
                          "%s: element (%d, %d) is %g; expected %g", what, i, j,
                          result[i * SIDE + j], sum);
        }
}

/* A kernel of the program: y[i] = 3 x[i] + 1. */
static cl_kernel kernel_new(cl_program *out_program)
{
    const char *source = "kernel void affine(global const float *x,\n"
                         "                   global float *y)\n"
                         "{\n"
                         "    size_t i = get_global_id(0);\n"
                         "    y[i] = 3.0f * x[i] + 1.0f;\n"
                         "}\n";
    cl_int code;
    cl_kernel kernel;

    *out_program = clCreateProgramWithSource(context, 1, &source, NULL, &code);
    CL_OK(code);
    CL_OK(clBuildProgram(*out_program, 1, &id, "", NULL, NULL));
    kernel = clCreateKernel(*out_program, "affine", &code);
    CL_OK(code);
    return kernel;
}

/* ---- the plugin's side ---- */

static struct tandem_stream *wrap_queue(cl_command_queue wrapped)
{
    struct tandem_stream *out;

    OK(interop->stream_wrap(device, wrapped, 0, &out));
    return out;
}

static struct tandem_buffer *wrap(cl_mem memory)
{
    struct tandem_buffer *out;

    OK(interop->buffer_wrap(device, memory, NULL, NULL, &out));
    return out;
}

static cl_mem handle_of(struct tandem_buffer *buffer)
{
    cl_mem memory;
    uint64_t offset;

    OK(interop->buffer_handle(buffer, &memory, &offset));
    ck_assert_uint_eq(offset, 0);
    return memory;
}

static void multiply(struct tandem_stream *on, struct tandem_buffer *a,
                     struct tandem_buffer *b, struct tandem_buffer *c)
{
    const struct tandem_gemm gemm = gemm_of(SIDE, SIDE, SIDE, a, b, c);

    OK(backend->gemm(on, &gemm));
}

/* Enqueues y = -x of COUNT elements. */
static enum tandem_status negate_at(struct tandem_stream *on,
                                    struct tandem_buffer *x,
                                    struct tandem_buffer *y, int64_t count)
{
    const struct tandem_op op = {.struct_size = sizeof(op),
                                 .id = TANDEM_OP_NEG};
    const struct tandem_tensor_desc from = {x, 0, TANDEM_F32, 1, {count}, {1}},
                                    to = {y, 0, TANDEM_F32, 1, {count}, {1}};
    const struct tandem_tensor_desc *input = &from, *output = &to;

    return tensors_launch(backend, device, on, &op, &input, 1, &output, 1, 0);
}

static void open_device(struct tandem_device **out)
{
    const char *const key = "test.gemm_kernel", *const value = "simt-128x128";
    const struct tandem_open_options options = {.struct_size = sizeof(options),
                                                .count = 1,
                                                .keys = &key,
                                                .values = &value};

    OK(interop->open_native(context, id, &options, out));
}

static void setup(void)
{
    context = context_new(1, &id);
    queue = queue_new(context, 0);
    open_device(&device);
    matrix_fill(left, 1);
    matrix_fill(right, 2);
}

static void teardown(void)
{
    device_close();
    clReleaseCommandQueue(queue);
    clReleaseContext(context);
}

/* ---- results ---- */

/* The queue alone orders the work of both sides. */
TEST(operators_use_memory_and_a_queue_of_the_program)
{
    cl_mem a = memory_new(context, CL_MEM_READ_WRITE, BYTES),
           b = memory_new(context, CL_MEM_READ_WRITE, BYTES),
           c = memory_new(context, CL_MEM_READ_WRITE, BYTES);
    struct tandem_buffer *x = wrap(a), *y = wrap(b), *z = wrap(c);

    stream = wrap_queue(queue);
    /* Each turn changes b after the plugin has used it. */
    for (unsigned turn = 0; turn < 5; turn++) {
        matrix_fill(right, turn);
        CL_OK(clEnqueueWriteBuffer(queue, a, CL_FALSE, 0, BYTES, left, 0, NULL,
                                   NULL));
        CL_OK(clEnqueueWriteBuffer(queue, b, CL_FALSE, 0, BYTES, right, 0, NULL,
                                   NULL));
        multiply(stream, x, y, z);
        CL_OK(clEnqueueReadBuffer(queue, c, CL_TRUE, 0, BYTES, result, 0, NULL,
                                  NULL));
        expect_product("the program's memory");
    }
    backend->free(x);
    backend->free(y);
    backend->free(z);
    backend->stream_destroy(stream);
    ck_assert_uint_eq(references(a), 1);
    ck_assert_uint_eq(references(b), 1);
    ck_assert_uint_eq(references(c), 1);
    clReleaseMemObject(a);
    clReleaseMemObject(b);
    clReleaseMemObject(c);
}

/* Events of OpenCL order the work in two queues. */
TEST(the_program_uses_memory_and_a_queue_of_the_plugin)
{
    struct tandem_buffer *x = buffer_new(BYTES), *y = buffer_new(BYTES),
                         *z = buffer_new(BYTES);
    cl_mem ours = handle_of(y), theirs = handle_of(z);
    cl_command_queue of_stream;
    cl_event event;
    cl_program program;
    cl_kernel kernel = kernel_new(&program);
    const size_t count = COUNT;

    stream = stream_new();
    OK(interop->stream_handle(stream, &of_stream));
    buffer_write(x, left, BYTES);
    OK(negate_at(stream, x, y, COUNT));
    CL_OK(clEnqueueMarkerWithWaitList(of_stream, 0, NULL, &event));
    CL_OK(clFlush(of_stream));
    CL_OK(clSetKernelArg(kernel, 0, sizeof(ours), &ours));
    CL_OK(clSetKernelArg(kernel, 1, sizeof(theirs), &theirs));
    CL_OK(clEnqueueNDRangeKernel(queue, kernel, 1, NULL, &count, NULL, 1,
                                 &event, NULL));
    clReleaseEvent(event);
    CL_OK(clEnqueueMarkerWithWaitList(queue, 0, NULL, &event));
    CL_OK(clFlush(queue));
    CL_OK(clEnqueueBarrierWithWaitList(of_stream, 1, &event, NULL));
    clReleaseEvent(event);
    OK(negate_at(stream, z, x, COUNT));
    buffer_read(x, result, BYTES);
    for (unsigned i = 0; i < COUNT; i++)
        ck_assert_float_eq(result[i], 3.0f * left[i] - 1.0f);
    clReleaseKernel(kernel);
    clReleaseProgram(program);
}

/* The plugin keeps packed copies only of memory that it alone writes. */
TEST(the_program_writes_a_weight_of_the_plugin)
{
    struct tandem_buffer *x, *y, *z;
    cl_mem weight;

    stream = stream_new();
    x = buffer_new(BYTES);
    y = buffer_new(BYTES);
    z = buffer_new(BYTES);
    buffer_write(x, left, BYTES);
    buffer_write(y, right, BYTES);
    for (int i = 0; i < 4; i++)
        multiply(stream, x, y, z);
    stream_wait(stream);
    weight = handle_of(y);
    for (unsigned turn = 3; turn < 7; turn++) {
        matrix_fill(right, turn);
        CL_OK(clEnqueueWriteBuffer(queue, weight, CL_TRUE, 0, BYTES, right, 0,
                                   NULL, NULL));
        multiply(stream, x, y, z);
        buffer_read(z, result, BYTES);
        expect_product("a weight that the program wrote");
    }
}

TEST(the_handles_of_a_device_are_those_of_the_program)
{
    cl_context its_context;
    cl_device_id its_id;
    cl_command_queue its_queue;

    OK(interop->device_handles(device, &its_context, &its_id));
    ck_assert_ptr_eq(its_context, context);
    ck_assert_ptr_eq(its_id, id);
    stream = wrap_queue(queue);
    OK(interop->stream_handle(stream, &its_queue));
    ck_assert_ptr_eq(its_queue, queue);
}

/* Without commands, because PoCL's commands retain the queue, too. */
TEST(a_wrapped_queue_is_retained)
{
    const cl_uint before = queue_references(queue);

    stream = wrap_queue(queue);
    ck_assert_uint_eq(queue_references(queue), before + 1);
    backend->stream_destroy(stream);
    ck_assert_uint_eq(queue_references(queue), before);
    stream = wrap_queue(queue);
    device_close();
    ck_assert_uint_eq(queue_references(queue), before);
}

TEST(a_wrapped_queue_measures_times)
{
    cl_command_queue timed = queue_new(context, CL_QUEUE_PROFILING_ENABLE);
    struct tandem_event *start, *end;
    uint64_t ns;

    INVALID(
        interop->stream_wrap(device, queue, TANDEM_STREAM_PROFILING, &stream));
    ck_assert_ptr_null(stream);
    OK(interop->stream_wrap(device, timed, TANDEM_STREAM_PROFILING, &stream));
    OK(backend->event_record(stream, &start));
    OK(backend->event_record(stream, &end));
    stream_wait(stream);
    OK(backend->event_elapsed_ns(start, end, &ns));
    clReleaseCommandQueue(timed);
}

/* ---- one memory object, several buffers ---- */

static cl_mem part_new(cl_mem whole, size_t origin, size_t bytes)
{
    const cl_buffer_region region = {origin, bytes};
    cl_int code;
    cl_mem out = clCreateSubBuffer(
        whole, CL_MEM_READ_WRITE, CL_BUFFER_CREATE_TYPE_REGION, &region, &code);

    CL_OK(code);
    return out;
}

TEST(buffers_of_one_memory_object_overlap)
{
    const int64_t count = 4096 / sizeof(float);
    cl_mem whole = memory_new(context, CL_MEM_READ_WRITE, 3 * 4096),
           first = part_new(whole, 0, 4096),
           second = part_new(whole, 4096, 4096),
           across = part_new(whole, 2048, 4096);
    struct tandem_buffer *all = wrap(whole), *again = wrap(whole),
                         *low = wrap(first), *high = wrap(second),
                         *middle = wrap(across);
    float values[2 * 4096 / sizeof(float)];

    stream = wrap_queue(queue);
    INVALID(negate_at(stream, all, again, count));
    INVALID(negate_at(stream, all, low, count));
    INVALID(negate_at(stream, low, middle, count));
    INVALID(negate_at(stream, middle, high, count));
    /* A later buffer overlaps, too, after the first one was freed. */
    backend->free(all);
    all = wrap(whole);
    INVALID(negate_at(stream, all, again, count));
    for (int i = 0; i < CASES_IN(values); i++)
        values[i] = (float)i;
    buffer_write(all, values, sizeof(values));
    OK(negate_at(stream, low, high, count));
    buffer_read(again, values, sizeof(values));
    for (int i = 0; i < count; i++) {
        ck_assert_float_eq(values[i], (float)i);
        ck_assert_float_eq(values[count + i], -(float)i);
    }
    clReleaseMemObject(first);
    clReleaseMemObject(second);
    clReleaseMemObject(across);
    clReleaseMemObject(whole);
}

/* ---- release ---- */

static atomic_int releases;

static void count_release(void *user)
{
    ck_assert_ptr_eq(user, &releases);
    atomic_fetch_add(&releases, 1);
}

static void expect_one_release(void)
{
    const struct timespec pause = {0, 1000000};

    for (int i = 0; i < 10000 && atomic_load(&releases) == 0; i++)
        nanosleep(&pause, NULL);
    ck_assert_int_eq(atomic_load(&releases), 1);
}

static struct tandem_buffer *wrap_released(cl_mem memory)
{
    struct tandem_buffer *out;

    atomic_store(&releases, 0);
    OK(interop->buffer_wrap(device, memory, count_release, &releases, &out));
    return out;
}

TEST(release_is_called_once_after_free)
{
    cl_mem a = memory_new(context, CL_MEM_READ_WRITE, BYTES);
    struct tandem_buffer *x = wrap_released(a);

    backend->free(x);
    expect_one_release();
    /* With work that may be incomplete. */
    x = wrap_released(a);
    stream = wrap_queue(queue);
    for (int i = 0; i < 20; i++)
        OK(negate_at(stream, x, x, COUNT));
    backend->free(x);
    expect_one_release();
    backend->free(x);
    device_close();
    ck_assert_int_eq(atomic_load(&releases), 1);
    ck_assert_uint_eq(references(a), 1);
    clReleaseMemObject(a);
}

TEST(release_is_called_once_by_close)
{
    cl_mem a = memory_new(context, CL_MEM_READ_WRITE, BYTES);
    struct tandem_buffer *x = wrap_released(a);

    stream = wrap_queue(queue);
    OK(negate_at(stream, x, x, COUNT));
    device_close();
    ck_assert_int_eq(atomic_load(&releases), 1);
    backend->free(x);
    ck_assert_int_eq(atomic_load(&releases), 1);
    ck_assert_uint_eq(references(a), 1);
    clReleaseMemObject(a);
}

/* ---- devices ---- */

/* Devices in the program's context and in the plugin's, closed in any order. */
LOOP_TEST(devices_are_independent, 6)
{
    static const int orders[6][3] = {{0, 1, 2}, {0, 2, 1}, {1, 0, 2},
                                     {1, 2, 0}, {2, 0, 1}, {2, 1, 0}};
    struct tandem_device *all[3] = {device, NULL, NULL};

    open_device(&all[1]);
    OK(backend->open(0, NULL, &all[2]));
    for (int i = 0; i < 3; i++) {
        for (int j = i; j < 3; j++) {
            device = all[orders[_i][j]];
            stream = stream_new();
            struct tandem_buffer *x = buffer_new(BYTES);
            buffer_write(x, left, BYTES);
            OK(negate_at(stream, x, x, COUNT));
            buffer_read(x, result, BYTES);
            ck_assert_float_eq(result[COUNT - 1], -left[COUNT - 1]);
        }
        backend->close(all[orders[_i][i]]);
    }
    device = NULL;
}

/* ---- bad input ---- */

TEST(null_is_invalid)
{
    cl_mem a = memory_new(context, CL_MEM_READ_WRITE, BYTES);
    struct tandem_device *opened = (void *)&a;
    struct tandem_stream *wrapped = (void *)&a;
    struct tandem_buffer *buffer = (void *)&a;
    struct tandem_buffer *x = buffer_new(64);
    uint64_t offset;

    INVALID(interop->open_native(NULL, id, NULL, &opened));
    ck_assert_ptr_null(opened);
    INVALID(interop->open_native(context, NULL, NULL, &opened));
    INVALID(interop->open_native(context, id, NULL, NULL));
    INVALID(interop->stream_wrap(NULL, queue, 0, &wrapped));
    ck_assert_ptr_null(wrapped);
    INVALID(interop->stream_wrap(device, NULL, 0, &wrapped));
    INVALID(interop->stream_wrap(device, queue, 0, NULL));
    ck_assert_int_eq(interop->stream_wrap(device, queue, 1u << 31, &wrapped),
                     TANDEM_UNSUPPORTED);
    INVALID(interop->buffer_wrap(NULL, a, NULL, NULL, &buffer));
    ck_assert_ptr_null(buffer);
    INVALID(interop->buffer_wrap(device, NULL, NULL, NULL, &buffer));
    INVALID(interop->buffer_wrap(device, a, NULL, NULL, NULL));
    INVALID(interop->device_handles(NULL, &context, &id));
    ck_assert_ptr_null(context);
    INVALID(interop->device_handles(device, NULL, &id));
    OK(interop->device_handles(device, &context, &id));
    INVALID(interop->device_handles(device, &context, NULL));
    INVALID(interop->stream_handle(NULL, &queue));
    INVALID(interop->buffer_handle(NULL, &a, &offset));
    INVALID(interop->buffer_handle(x, NULL, &offset));
    INVALID(interop->buffer_handle(x, &a, NULL));
}

TEST(objects_of_another_context_are_invalid)
{
    cl_context other = context_new(1, &id);
    cl_command_queue its_queue = queue_new(other, 0);
    cl_mem its_memory = memory_new(other, CL_MEM_READ_WRITE, BYTES);
    struct tandem_stream *wrapped;
    struct tandem_buffer *buffer;

    atomic_store(&releases, 0);
    INVALID(interop->stream_wrap(device, its_queue, 0, &wrapped));
    ck_assert_ptr_nonnull(strstr(backend->last_error(), "another context"));
    ck_assert_ptr_null(wrapped);
    INVALID(interop->buffer_wrap(device, its_memory, count_release, &releases,
                                 &buffer));
    ck_assert_ptr_nonnull(strstr(backend->last_error(), "another context"));
    ck_assert_ptr_null(buffer);
    ck_assert_int_eq(atomic_load(&releases), 0);
    ck_assert_uint_eq(references(its_memory), 1);
    ck_assert_uint_eq(queue_references(its_queue), 1);
    clReleaseMemObject(its_memory);
    clReleaseCommandQueue(its_queue);
    clReleaseContext(other);
}

TEST(unsuitable_objects_are_refused)
{
    const cl_image_format format = {CL_RGBA, CL_FLOAT};
    const cl_image_desc shape = {.image_type = CL_MEM_OBJECT_IMAGE2D,
                                 .image_width = 16,
                                 .image_height = 16};
    cl_mem constant = memory_new(context, CL_MEM_READ_ONLY, BYTES), image;
    cl_command_queue_properties known = 0;
    struct tandem_stream *wrapped;
    struct tandem_buffer *buffer;
    cl_int code;

    ck_assert_int_eq(
        interop->buffer_wrap(device, constant, NULL, NULL, &buffer),
        TANDEM_UNSUPPORTED);
    INVALID(interop->buffer_wrap(device, handle_of(buffer_new(BYTES)), NULL,
                                 NULL, &buffer));
    ck_assert_ptr_nonnull(strstr(backend->last_error(), "belongs to a buffer"));
    image =
        clCreateImage(context, CL_MEM_READ_WRITE, &format, &shape, NULL, &code);
    if (code == CL_SUCCESS) {
        INVALID(interop->buffer_wrap(device, image, NULL, NULL, &buffer));
        clReleaseMemObject(image);
    }
    CL_OK(clGetDeviceInfo(id, CL_DEVICE_QUEUE_PROPERTIES, sizeof(known), &known,
                          NULL));
    if ((known & CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE) != 0) {
        cl_command_queue unordered =
            queue_new(context, CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE);

        INVALID(interop->stream_wrap(device, unordered, 0, &wrapped));
        ck_assert_ptr_nonnull(strstr(backend->last_error(), "out of order"));
        clReleaseCommandQueue(unordered);
    }
    clReleaseMemObject(constant);
}

TEST(handles_of_freed_objects_are_invalid)
{
    struct tandem_buffer *x = buffer_new(BYTES);
    cl_context its_context;
    cl_device_id its_id;
    cl_command_queue its_queue;
    cl_mem memory;
    uint64_t offset;

    stream = wrap_queue(queue);
    backend->free(x);
    backend->stream_destroy(stream);
    INVALID(interop->buffer_handle(x, &memory, &offset));
    ck_assert_ptr_null(memory);
    INVALID(interop->stream_handle(stream, &its_queue));
    ck_assert_ptr_null(its_queue);
    backend->close(device);
    INVALID(interop->device_handles(device, &its_context, &its_id));
    ck_assert_ptr_null(its_context);
    device = NULL;
}

/* Contexts with two devices, and of another device. */
TEST(a_context_has_the_device_alone)
{
    cl_platform_id platform;
    cl_device_id all[16], other = NULL;
    cl_uint count = 0;
    struct tandem_device *opened = (void *)&count;

    CL_OK(clGetDeviceInfo(id, CL_DEVICE_PLATFORM, sizeof(platform), &platform,
                          NULL));
    CL_OK(clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, 16, all, &count));
    for (cl_uint i = 0; i < count && i < 16; i++)
        if (all[i] != id)
            other = all[i];
    if (other != NULL) {
        const cl_device_id pair[2] = {id, other};
        cl_context both = context_new(2, pair),
                   without = context_new(1, &other);

        ck_assert_int_eq(interop->open_native(both, id, NULL, &opened),
                         TANDEM_UNSUPPORTED);
        ck_assert_ptr_null(opened);
        INVALID(interop->open_native(without, id, NULL, &opened));
        clReleaseContext(both);
        clReleaseContext(without);
    }
    ck_assert_int_eq(interop->open_native(context, (cl_device_id)(void *)&count,
                                          NULL, &opened),
                     TANDEM_NO_DEVICE);
    ck_assert_ptr_null(opened);
}

static bool device_find(unsigned platform, unsigned index)
{
    cl_platform_id platforms[16];
    cl_device_id devices[16];
    cl_uint count = 0;

    if (clGetPlatformIDs(16, platforms, &count) != CL_SUCCESS ||
        platform >= count || platform >= 16 ||
        clGetDeviceIDs(platforms[platform], CL_DEVICE_TYPE_ALL, 16, devices,
                       &count) != CL_SUCCESS ||
        index >= count || index >= 16)
        return false;
    id = devices[index];
    return true;
}

int main(int argc, char **argv)
{
    int status;

    /* Two devices, for contexts that have the wrong ones. */
    setenv("POCL_DEVICES", "pthread basic", 0);
    status = plugin_start();
    if (status != 0)
        return status;
    interop = backend->extension(TANDEM_EXTENSION_OPENCL_INTEROP);
    if (!device_find(argc > 1 ? (unsigned)atoi(argv[1]) : 0,
                     argc > 2 ? (unsigned)atoi(argv[2]) : 0)) {
        fprintf(stderr, "there is no such OpenCL device\n");
        return SKIPPED;
    }
    return tests_run_without_fork("interop", setup, teardown);
}
