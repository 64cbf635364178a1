/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory that the driver refuses to allocate, and buffers of which only a part
 * was written: the memory statistics and the error messages. Runs for a CPU
 * device and for a GPU.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "single_fault.h"

#include "../../tools/common/tensor_call.h"

#define MIB ((uint64_t)1 << 20)
#define INVALID_VALUE                                                          \
    (-30)                  /* An error of one call; the device keeps working. */
#define OUT_OF_MEMORY (-4) /* CL_MEM_OBJECT_ALLOCATION_FAILURE */
#define OUT_OF_HOST_MEMORY (-6)
#define LARGE ((size_t)3 << 19)        /* Several commands of the ring. */
#define MEMORY_LIMIT ((size_t)4 << 20) /* The limit of the device's memory. */

static unsigned char source[MEMORY_LIMIT], seen[MEMORY_LIMIT];

static struct tandem_memory_stats stats(void)
{
    struct tandem_memory_stats out = {.struct_size = sizeof out};

    OK(plug.api->memory_stats(work.device, &out));
    return out;
}

/* ---- what is counted ---- */

static const enum layer_fault refusals[] = {LAYER_FAULT_CALL, LAYER_FAULT_LAZY,
                                            LAYER_FAULT_LAZY_LATER};

/* All memory within the limit must be available after refused allocations. */
LOOP_TEST(refused_memory_is_not_counted, CASES_IN(refusals))
{
    const uint64_t sizes[] = {1, 4096, MIB, 3 * MIB, 8 * MIB};
    struct tandem_buffer *buffer;

    device_new("memory_limit_bytes", "16777216");
    script(refusals[_i], "clCreateBuffer", NULL, OUT_OF_MEMORY);
    for (int i = 0; i < 20; i++) {
        const enum tandem_status status =
            plug.api->alloc(work.device, TANDEM_BYTES(sizes[i % 5]), &buffer);

        if (status == TANDEM_OK)
            plug.api->free(buffer);
        else
            ck_assert_int_eq(status, TANDEM_OUT_OF_MEMORY);
        ck_assert_uint_eq(stats().allocated_bytes, 0);
        ck_assert_uint_eq(stats().buffer_count, 0);
    }
    plug.script_set(NULL);
    OK(plug.api->trim(work.device, 0));
    ck_assert_uint_eq(stats().cached_bytes, 0);
    OK(plug.api->alloc(work.device, TANDEM_BYTES(14 * MIB), &buffer));
    plug.api->free(buffer);
    ck_assert_uint_eq(stats().allocated_bytes, 0);
}

/* ---- error messages ---- */

static void expect_no_message(const char *text)
{
    ck_assert_msg(strstr(plug.api->last_error(), text) == NULL,
                  "\"%s\" says \"%s\"", plug.api->last_error(), text);
}

/* The requested size is compared, whatever size classes the pool has. */
TEST(the_largest_allocation_is_named)
{
    struct tandem_device_info info = {.struct_size = sizeof info};
    struct tandem_buffer *buffer;
    char asked[64], most[64];

    device_new(NULL, NULL);
    OK(plug.api->device_describe(0, &info));
    snprintf(asked, sizeof asked, "alloc: %" PRIu64 " bytes are more",
             info.max_alloc_bytes + 1);
    snprintf(most, sizeof most, "%" PRIu64 " bytes (CL_DEVICE_MAX_MEM",
             info.max_alloc_bytes);
    RETURNS(TANDEM_OUT_OF_MEMORY,
            plug.api->alloc(work.device, TANDEM_BYTES(info.max_alloc_bytes + 1),
                            &buffer));
    expect_message(asked);
    expect_message(most);
    expect_no_message("free buffers");
    if (plug.api->alloc(work.device, TANDEM_BYTES(info.max_alloc_bytes),
                        &buffer) == TANDEM_OK) {
        plug.api->free(buffer);
        OK(plug.api->trim(work.device, 0));
    } else { /* A machine with less memory than the driver reports. */
        snprintf(asked, sizeof asked, "no %" PRIu64 " bytes in one piece",
                 info.max_alloc_bytes);
        expect_message(asked);
    }
}

TEST(missing_host_memory_is_no_reason_to_free_buffers)
{
    struct tandem_buffer *buffer;

    device_new(NULL, NULL);
    script(LAYER_FAULT_CALL, "clCreateBuffer", NULL, OUT_OF_HOST_MEMORY);
    RETURNS(TANDEM_OUT_OF_MEMORY,
            plug.api->alloc(work.device, TANDEM_BYTES(MIB), &buffer));
    expect_message("the host has too little memory");
    expect_no_message("free buffers");
    plug.script_set(NULL);
}

/* ---- buffers that were partly written ---- */

static struct tandem_buffer *filled_new(uint64_t bytes, unsigned char byte)
{
    struct tandem_buffer *buffer;

    ck_assert(buffer_new(&work, bytes, &buffer));
    OK(plug.api->fill(work.stream, buffer, 0, bytes, &byte, 1));
    return buffer;
}

static enum tandem_status upload_all(struct tandem_buffer *buffer, size_t bytes)
{
    for (size_t i = 0; i < bytes; i++)
        source[i] = (unsigned char)(i * 7 + i / 4093 + 3);
    return plug.api->upload(work.stream, buffer, 0, source, bytes, 0);
}

static enum tandem_status read_all(struct tandem_buffer *buffer, size_t bytes)
{
    return plug.api->download(work.stream, buffer, 0, seen, bytes, 0,
                              TANDEM_TIMEOUT_INFINITE);
}

/* Lets the nth write and all later ones fail. */
static void write_fails(uint64_t nth)
{
    script_nth(LAYER_FAULT_CALL, "clEnqueueWriteBuffer", nth, UINT64_MAX,
               INVALID_VALUE);
}

/* Checks that the buffer cannot be read before all of it is written. */
static void expect_partly_written(struct tandem_buffer *buffer, size_t bytes)
{
    struct tandem_buffer *other = filled_new(bytes, 1);
    const struct tandem_tensor_desc from = vector(buffer, N),
                                    to = vector(other, N);
    const struct tandem_tensor_desc *input = &from, *output = &to;
    const struct tandem_op op = {.struct_size = sizeof op,
                                 .id = TANDEM_OP_COPY};

    RETURNS(TANDEM_FAILED, read_all(buffer, bytes));
    expect_message("overwrite all of it");
    RETURNS(TANDEM_FAILED,
            plug.api->copy(work.stream, other, 0, buffer, 0, bytes));
    RETURNS(TANDEM_FAILED, tensors_launch(plug.api, work.device, work.stream,
                                          &op, &input, 1, &output, 1, 64));
    OK(upload_all(buffer, bytes / 2));
    RETURNS(TANDEM_FAILED, read_all(buffer, bytes));
    OK(upload_all(buffer, bytes));
    OK(read_all(buffer, bytes));
    ck_assert(memcmp(source, seen, bytes) == 0);
    OK(read_all(other, bytes));
    plug.api->free(other);
}

TEST(free_memory_is_reported_if_the_driver_knows_it)
{
    struct tandem_memory_stats stats = {.struct_size = sizeof stats};

    device_new(NULL, NULL);
    OK(plug.api->memory_stats(work.device, &stats));
    ck_assert_uint_eq(stats.free_bytes, 0);
    setenv("TANDEM_LAYER_FREE_KIB", "5000000", 1);
    OK(plug.api->memory_stats(work.device, &stats));
    unsetenv("TANDEM_LAYER_FREE_KIB");
    ck_assert_uint_eq(stats.free_bytes, UINT64_C(5120000000));
}

/* Nothing was written, so the buffer keeps its content. */
TEST(an_upload_that_fails_at_once_changes_nothing)
{
    struct tandem_buffer *buffer;

    device_new(NULL, NULL);
    buffer = filled_new(LARGE, 9);
    write_fails(1);
    RETURNS(TANDEM_FAILED, upload_all(buffer, LARGE));
    plug.script_set(NULL);
    OK(read_all(buffer, LARGE));
    for (size_t i = 0; i < LARGE; i++)
        if (seen[i] != 9)
            ck_abort_msg("byte %zu is %d", i, seen[i]);
}

static const struct {
    const char *transfer_path;
    size_t bytes;
    bool idle;    /* No other work precedes the upload. */
    uint64_t nth; /* The write that fails. */
} uploads[] = {{"ring", LARGE, false, 2},
               {"ring", LARGE, false, 3},
               {"driver", MEMORY_LIMIT, true, 1},
               {"ring", MEMORY_LIMIT, true, 2}};

LOOP_TEST(an_upload_that_fails_midway_is_reported, CASES_IN(uploads))
{
    const size_t bytes = uploads[_i].bytes;
    struct tandem_buffer *buffer;

    device_new("test.transfer_path", uploads[_i].transfer_path);
    buffer = filled_new(bytes, 9);
    if (uploads[_i].idle) {
        OK(synchronize());
        OK(upload_all(buffer, bytes)); /* Allocates the ring. */
        OK(synchronize());
    }
    write_fails(uploads[_i].nth);
    RETURNS(TANDEM_FAILED, upload_all(buffer, bytes));
    plug.script_set(NULL);
    expect_partly_written(buffer, bytes);
}

/* The command is enqueued, and only the flush behind it fails. */
TEST(a_transfer_whose_flush_fails_is_reported)
{
    struct tandem_buffer *buffer;

    device_new("test.transfer_path", "ring");
    buffer = filled_new(LARGE, 9);
    OK(upload_all(buffer, LARGE)); /* Allocates the ring. */
    OK(synchronize());
    script_nth(LAYER_FAULT_CALL, "clFlush", 1, 1, INVALID_VALUE);
    RETURNS(TANDEM_FAILED, read_all(buffer, LARGE));
    OK(synchronize());
    script_nth(LAYER_FAULT_CALL, "clFlush", 1, 1, INVALID_VALUE);
    RETURNS(TANDEM_FAILED, upload_all(buffer, LARGE));
    plug.script_set(NULL);
    expect_partly_written(buffer, LARGE);
}

int main(void)
{
    const int as_gpu = single_as_gpu(false);

    return as_gpu != 0 ? as_gpu : single_run("memory", device_end);
}
