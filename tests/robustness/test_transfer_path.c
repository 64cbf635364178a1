/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which transfers use the plugin's ring of pinned memory, and which use the
 * driver's own commands: on a CPU device, on a GPU that shares the host's
 * memory, and on a GPU with its own memory. A large transfer through the ring
 * has several commands on a device with its own memory, and the driver's own
 * upload blocks.
 */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "single_fault.h"

#define KIB ((size_t)1 << 10)
#define MIB ((size_t)1 << 20)
#define MAX_BYTES (5 * MIB)

static unsigned char pageable[MAX_BYTES];
static void *pinned;
static struct tandem_buffer *buffer;

static bool is_discrete(void)
{
    const char *gpu = getenv("TANDEM_LAYER_GPU");

    return gpu && strcmp(gpu, "discrete") == 0;
}

static void start(void)
{
    device_new(NULL, NULL);
    ck_assert(buffer_new(&work, MAX_BYTES, &buffer));
    OK(plug.api->host_alloc(work.device, MAX_BYTES, &pinned));
    OK(synchronize());
}

/* Enqueues work without a wait. */
static void keep_busy(void)
{
    const uint32_t zero = 0;

    OK(plug.api->fill(work.stream, buffer, 0, MAX_BYTES, &zero, 4));
}

static const struct transfer_case {
    size_t bytes;
    bool upload, pinned, busy;
    uint64_t discrete_commands, shared_commands;
    bool discrete_waits, shared_waits; /* of an upload, for earlier work */
} cases[] = {
    {64 * KIB, true, false, false, 1, 1, false, false},
    {64 * KIB, true, true, false, 1, 1, false, false},
    {512 * KIB - 1, true, false, false, 3, 1, false, false},
    {512 * KIB, true, false, false, 3, 1, false, true},
    {1 * MIB, true, false, false, 4, 1, false, true},
    {1 * MIB, true, true, false, 1, 1, true, true},
    {1 * MIB, true, false, true, 4, 2, false, false},
    {1 * MIB, true, true, true, 4, 2, false, false},
    {4 * MIB, true, false, true, 6, 2, false, false},
    {4 * MIB + 1, true, false, true, 7, 1, false, true},
    {4 * MIB + 1, true, true, true, 1, 1, true, true},
    {64 * KIB, false, false, false, 1, 1, false, false},
    {1 * MIB, false, false, false, 4, 1, false, false},
    {1 * MIB, false, true, false, 1, 1, false, false},
};

static void transfer(const struct transfer_case *c)
{
    unsigned char *memory = c->pinned ? pinned : pageable;

    if (c->upload)
        OK(plug.api->upload(work.stream, buffer, 0, memory, c->bytes, 0));
    else
        OK(plug.api->download(work.stream, buffer, 0, memory, c->bytes, 0,
                              TANDEM_TIMEOUT_INFINITE));
}

LOOP_TEST(the_path_depends_on_size_memory_and_device, CASES_IN(cases))
{
    const struct transfer_case *c = &cases[_i];
    struct layer_counts before, after;
    uint64_t commands;

    start();
    transfer(c); /* Allocates the ring. */
    OK(synchronize());
    if (c->busy)
        keep_busy();
    before = plug_counts(&plug);
    transfer(c);
    after = plug_counts(&plug);
    commands = after.writes - before.writes + after.reads - before.reads;
    ck_assert_uint_eq(commands, is_discrete() ? c->discrete_commands
                                              : c->shared_commands);
    if (c->upload)
        ck_assert_int_eq(after.waits > before.waits,
                         is_discrete() ? c->discrete_waits : c->shared_waits);
    OK(synchronize());
    plug.api->free(buffer);
    plug.api->host_free(work.device, pinned);
    device_end();
}

/* Transfers of a thread with its own stream. */
struct mover {
    pthread_t thread;
    unsigned seed;
    bool passed;
};

static unsigned char byte_of(size_t i, unsigned seed)
{
    return (unsigned char)(i * 7 + i / 4093 * 29 + seed);
}

static void *mover_run(void *argument)
{
    struct mover *mover = argument;
    unsigned char *memory = malloc(MAX_BYTES);
    struct tandem_stream *stream = NULL;
    struct tandem_buffer *own = NULL;

    mover->passed =
        memory &&
        plug.api->stream_create(work.device, 0, &stream) == TANDEM_OK &&
        plug.api->alloc(work.device, TANDEM_BYTES(MAX_BYTES), &own) ==
            TANDEM_OK;
    for (unsigned round = 0; round < 8 && mover->passed; round++) {
        const unsigned seed = mover->seed + round;
        const size_t bytes = MAX_BYTES - round;
        size_t same = 0;

        for (size_t i = 0; i < bytes; i++)
            memory[i] = byte_of(i, seed);
        mover->passed =
            plug.api->upload(stream, own, 0, memory, bytes, 0) == TANDEM_OK;
        memset(memory, 0, bytes);
        mover->passed &=
            plug.api->download(stream, own, 0, memory, bytes, 0,
                               TANDEM_TIMEOUT_INFINITE) == TANDEM_OK;
        while (same < bytes && memory[same] == byte_of(same, seed))
            same++;
        mover->passed &= same == bytes;
    }
    plug.api->free(own);
    plug.api->stream_destroy(stream);
    free(memory);
    return NULL;
}

/* Only one transfer at a time uses the copy threads of the device. */
TEST(streams_transfer_at_the_same_time)
{
    struct mover movers[3];

    device_new("test.transfer_path", "ring");
    for (unsigned i = 0; i < 3; i++) {
        movers[i].seed = 64 * i;
        ck_assert_int_eq(
            pthread_create(&movers[i].thread, NULL, mover_run, &movers[i]), 0);
    }
    for (unsigned i = 0; i < 3; i++)
        pthread_join(movers[i].thread, NULL);
    for (unsigned i = 0; i < 3; i++)
        ck_assert(movers[i].passed);
    device_end();
}

TEST(an_unknown_path_is_refused)
{
    const char *const keys[] = {"test.transfer_path"};
    const char *const values[] = {"mapped"};
    const struct tandem_open_options options = {.struct_size = sizeof options,
                                                .count = 1,
                                                .keys = keys,
                                                .values = values};
    struct tandem_device *device;

    RETURNS(TANDEM_INVALID_ARGUMENT, plug.api->open(0, &options, &device));
    expect_message("driver or ring");
}

int main(void)
{
    const int as_gpu = single_as_gpu(true);

    return as_gpu != 0 ? as_gpu : single_run("transfer path", NULL);
}
