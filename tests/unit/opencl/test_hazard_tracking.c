/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writes whose stream fails before, while and after they are recorded: the
 * buffer is poisoned in each case.
 */
#include <config.h>

#include "support/test_list.h"
#include "opencl/memory/packed_copy.h"
#include "opencl/queue/hazard_tracking.h"

static struct tandem_device device;
static struct tandem_stream stream;
static struct tandem_buffer buffer;

static void setup(void)
{
    device = (struct tandem_device){.pool.buffers = &buffer};
    pthread_mutex_init(&device.pool.mutex, NULL);
    stream = (struct tandem_stream){.device = &device, .id = 1};
    buffer = (struct tandem_buffer){.bytes = 64};
}

static void teardown(void)
{
    pthread_mutex_destroy(&device.pool.mutex);
}

TEST(earlier_failures_poison_new_writes)
{
    stream_next_seqno(&stream);
    stream_fail(&stream, TANDEM_OUT_OF_MEMORY);
    stream_note_use(&stream, &buffer, true);
    ck_assert_int_eq(buffer_check_poison(&buffer), TANDEM_OUT_OF_MEMORY);
}

TEST(later_failures_poison_recorded_writes)
{
    stream_next_seqno(&stream);
    stream_note_use(&stream, &buffer, true);
    ck_assert_int_eq(buffer_check_poison(&buffer), TANDEM_OK);
    stream_fail(&stream, TANDEM_FAILED);
    ck_assert_int_eq(buffer_check_poison(&buffer), TANDEM_FAILED);
    /* A write that fails, too, does not make the content valid. */
    stream_note_overwrite(&stream, &buffer, buffer.bytes);
    ck_assert_int_eq(buffer_check_poison(&buffer), TANDEM_FAILED);
}

TEST(reads_are_not_poisoned)
{
    stream_next_seqno(&stream);
    stream_fail(&stream, TANDEM_FAILED);
    stream_note_use(&stream, &buffer, false);
    ck_assert_int_eq(buffer_check_poison(&buffer), TANDEM_OK);
}

/* A GEMM does not use a copy if packing it failed. */
TEST(failed_packing_poisons_the_copy)
{
    struct packed_copy copy = {.is_packed = true,
                               .memory = {.device = &device, .bytes = 64}};
    buffer.device = &device;
    buffer.packed_copies = &copy;
    stream_next_seqno(&stream);
    stream_note_use(&stream, &copy.memory, true);
    ck_assert_ptr_eq(packed_copy_acquire(&buffer, &copy.key), &copy);
    packed_copy_release(&copy);
    stream_fail(&stream, TANDEM_FAILED);
    ck_assert_ptr_eq(packed_copy_acquire(&buffer, &copy.key), NULL);
    ck_assert(!copy.is_packed);
}

int main(void)
{
    return tests_run_without_fork("hazard tracking", setup, teardown);
}
