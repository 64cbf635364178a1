/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The instructions of cl/nvidia/ptx_sm90a.cl, as the PTX manual (NVIDIA, PTX
 * ISA 9.0) specifies them: mbarriers, bulk copies, tensor maps, wgmma.
 */
#include <string.h>

#include "ptx_emulator.h"

/* Fewer than most GEMMs have tiles. */
#define MULTIPROCESSORS 3u
#define MAX_BARRIERS 64u
/* A matrix descriptor has 18-bit addresses. */
#define WINDOW 0x3ffffu
#define LINE 128u

struct counter {
    uint32_t at, arrivals, pending, phase;
    int64_t bytes;
};

static struct {
    uint64_t run; /* The work-group to which this state belongs. */
    uint32_t window;
    struct counter counters[MAX_BARRIERS];
    uint32_t counter_count;
    uint32_t waiting, turn; /* At the barrier of the consumer warps. */
    bool any[2];
} group;

static void group_begin(void)
{
    if (group.run == group_run_now())
        return;
    memset(&group, 0, sizeof(group));
    group.run = group_run_now();
}

/* The compiled kernels look up these symbols, which no other file declares. */
#pragma GCC visibility push(default)
#pragma GCC diagnostic ignored "-Wmissing-prototypes"

/* The first address is that of the ring of stages. */
uint32_t shared_window(const void *at)
{
    group_begin();
    if (group.window == 0)
        group.window = local_address(at);
    return local_address(at);
}

/* ---- barriers ---- */

static struct counter *counter_at(uint32_t at)
{
    uint32_t i = 0;
    while (i + 1 < group.counter_count && group.counters[i].at != at)
        i++;
    return &group.counters[i];
}

void mbarrier_init(uint32_t at, uint32_t arrivals)
{
    if (group.counter_count < MAX_BARRIERS)
        group.counters[group.counter_count++] = (struct counter){
            .at = at, .arrivals = arrivals, .pending = arrivals};
}

static void counter_turn(struct counter *counter)
{
    item_progress();
    if (counter->pending != 0 || counter->bytes != 0)
        return;
    counter->pending = counter->arrivals;
    counter->phase++;
}

static void counter_arrive(uint32_t at, int64_t bytes)
{
    struct counter *counter = counter_at(at);
    counter->bytes += bytes;
    counter->pending--;
    counter_turn(counter);
}

/* Waits for the other items of the warp, which may still read the data. */
void mbarrier_arrive(uint32_t at)
{
    warp_barrier();
    if (item_now() % 32 == 0)
        counter_arrive(at, 0);
}

void mbarrier_arrive_expect(uint32_t at, uint32_t bytes)
{
    counter_arrive(at, bytes);
}

void mbarrier_wait(uint32_t at, uint32_t parity)
{
    const struct counter *counter = counter_at(at);
    while (counter->phase % 2 == parity)
        item_yield();
}

bool consumers_vote(uint32_t items, uint32_t x)
{
    uint32_t turn = group.turn;
    item_progress();
    if (group.waiting == 0)
        group.any[turn % 2] = false;
    group.any[turn % 2] = group.any[turn % 2] || x != 0;
    if (++group.waiting == items) {
        group.waiting = 0;
        group.turn++;
    }
    while (group.turn == turn)
        item_yield();
    return group.any[turn % 2];
}

void consumers_barrier(uint32_t items)
{
    consumers_vote(items, 0);
}

void warp_sync(void)
{
    warp_barrier();
}

uint32_t multiprocessor_count(void)
{
    return MULTIPROCESSORS;
}

/* ---- copies ---- */

static void mbarrier_complete_bytes(uint32_t barrier_at, uint32_t bytes)
{
    struct counter *counter = counter_at(barrier_at);
    counter->bytes -= bytes;
    counter_turn(counter);
}

void copy_bulk(uint32_t to, const void *from, uint32_t bytes,
               uint32_t barrier_at)
{
    if (to % 16 != 0 || (uintptr_t)from % 16 != 0 || bytes % 16 != 0)
        copy_misaligned();
    memcpy(local_at(to), from, bytes);
    mbarrier_complete_bytes(barrier_at, bytes);
}

void copies_arrive(uint32_t barrier_at)
{
    counter_arrive(barrier_at, 0);
}

/* Swaps 16-byte units within eight rows of 128 bytes. */
static uint32_t swizzled(uint32_t address)
{
    return address ^ (address >> 3 & 0x70u);
}

/* Rounds to nearest, ties to even; subnormal values too, like an H200. */
static uint32_t tf32_rounded(uint32_t word)
{
    if ((word & 0x7f800000u) == 0x7f800000u)
        return (word & 0x007fffffu) != 0 ? 0x7fffe000u : word;
    return (word + 0xfffu + (word >> 13 & 1u)) & 0xffffe000u;
}

/*
 * A tensor map like cuTensorMapEncodeTiled creates for f32 that is rounded to
 * TF32, with three dimensions and swizzled rows of 128 bytes.
 */
struct map {
    const char *from;
    uint64_t extent[3], stride[2];
    uint32_t box_rows;
};

static bool map_read(struct map *out, const uint32_t *words)
{
    const uint64_t zeros[] = {5,  6,  7,  11, 12, 15, 17, 19, 20, 21,
                              22, 23, 24, 25, 26, 27, 28, 29, 30, 31};
    for (uint32_t i = 0; i < sizeof(zeros) / sizeof(*zeros); i++)
        if (words[zeros[i]] != 0)
            return false;
    uint64_t from = words[0] | (uint64_t)words[1] << 32;
    memcpy(&out->from, &from, sizeof(from));
    for (uint32_t i = 0; i < 3; i++)
        out->extent[i] = (uint64_t)words[8 + i] + 1;
    for (uint32_t i = 0; i < 2; i++)
        out->stride[i] = (uint64_t)words[3 + i] << 4;
    out->box_rows = words[14] + 1;
    return (uintptr_t)words % TENSOR_MAP_ALIGN == 0 && from % 16 == 0 &&
           (words[2] & ~0x60000u) == 0x163a0u && out->box_rows <= 256 &&
           words[13] == 31u << 24 && words[16] == out->box_rows * LINE &&
           words[18] == 0x400u;
}

/* Not needed in the emulation. */
void tensor_map_release(void)
{
}

void tensor_map_acquire(const uint32_t *map)
{
    (void)map;
}

void copy_tensor_box(uint32_t to, const uint32_t *words, uint32_t k,
                     uint32_t row, uint32_t plane, uint32_t barrier_at)
{
    struct map map;
    if (!map_read(&map, words) || to % 1024 != 0) {
        copy_misaligned();
        memset(&map, 0, sizeof(map));
    }
    for (uint32_t r = 0; r < map.box_rows; r++)
        for (uint32_t e = 0; e < LINE / 4; e++) {
            uint32_t word = 0;
            if (k + e < map.extent[0] && row + r < map.extent[1] &&
                plane < map.extent[2])
                memcpy(&word,
                       map.from + plane * map.stride[1] +
                           (row + r) * map.stride[0] + (k + e) * 4,
                       sizeof(word));
            word = tf32_rounded(word);
            memcpy(local_at(swizzled(to + r * LINE + e * 4)), &word,
                   sizeof(word));
        }
    mbarrier_complete_bytes(barrier_at, words[16]);
}

/* ---- wgmma ---- */

struct matrix_descriptor {
    /* The strides of blocks of 64 elements along m or n, and of eight rows. */
    uint32_t start, next, eight;
    bool across;
    uint32_t format;
};

static struct matrix_descriptor
matrix_descriptor_of(uint64_t matrix, uint32_t format, bool across)
{
    uint32_t start = (uint32_t)(matrix & 0x3fff) << 4;
    if (matrix >> 62 != 1)
        copy_misaligned();
    return (struct matrix_descriptor){
        group.window + ((start - group.window) & WINDOW),
        (uint32_t)(matrix >> 16 & 0x3fff) << 4,
        (uint32_t)(matrix >> 32 & 0x3fff) << 4, across, format};
}

/* Returns element (row, k) of 64 rows, or of n columns. */
static double matrix_element(const struct matrix_descriptor *matrix_descriptor,
                             uint32_t row, uint32_t k)
{
    bool words = matrix_descriptor->format == FORMAT_TF32 ||
                 matrix_descriptor->format == FORMAT_3XTF32;
    uint32_t bytes = words ? 4 : 2, line = matrix_descriptor->across ? k : row;
    uint32_t at = matrix_descriptor->across ? row : k, word;
    uint32_t address = matrix_descriptor->start +
                       line / 8 * matrix_descriptor->eight + line % 8 * LINE +
                       at % 64 * bytes + at / 64 * matrix_descriptor->next;
    address = swizzled(address);
    memcpy(&word, local_at(address & ~3u), sizeof(word));
    return operand_value(matrix_descriptor->format, word, address / 2 % 2);
}

void emulated_wgmma(uint32_t format, float *sum, uint64_t a, uint64_t b,
                    uint32_t columns, uint32_t across, uint32_t add)
{
    struct matrix_descriptor x =
        matrix_descriptor_of(a, format, (across & 1u) != 0);
    struct matrix_descriptor y =
        matrix_descriptor_of(b, format, (across & 2u) != 0);
    uint32_t lane = item_now() % 32, warp = item_now() / 32 % 4;
    uint32_t depth = format == FORMAT_TF32 || format == FORMAT_3XTF32 ? 8 : 16;
    for (uint32_t i = 0; i < columns / 2; i++) {
        uint32_t row = warp * 16 + lane / 4 + i / 2 % 2 * 8;
        uint32_t column = i / 4 * 8 + lane % 4 * 2 + i % 2;
        double total = add != 0 ? sum[i] : 0;
        for (uint32_t k = 0; k < depth; k++)
            total += matrix_element(&x, row, k) * matrix_element(&y, column, k);
        sum[i] = (float)total;
    }
}

#pragma GCC visibility pop
