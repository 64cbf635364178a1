/* SPDX-License-Identifier: Apache-2.0 */
/* Fibers for work-items, and the functions that kernels call. */
#include "ptx_emulator.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <ucontext.h>

#include "common/float16.h"

#define STACK_BYTES 65536u
#define WARP 32u
#define IDLE_ROUNDS 16u
#define WARPS (MAX_ITEMS / WARP)

static struct {
    ucontext_t start, fiber[MAX_ITEMS];
    char *stack[MAX_ITEMS];
    bool done[MAX_ITEMS];
    uint32_t items, now, left;
    uint64_t group, groups, runs;
    void (*body)(void *);
    void *argument;
    /* The work-group barrier. */
    uint32_t waiting, passed;
    bool vote;
    /*
     * The words that each item passed to its warp, for even and odd exchanges;
     * and the number of exchanges of each item.
     */
    uint32_t exchanged[2][MAX_ITEMS][6];
    uint64_t exchanges[MAX_ITEMS], warp_exchanges[WARPS];
    uint64_t misaligned_copies;
    uint64_t idle; /* Switches since any item made progress. */
} machine;

/* ---- fibers ---- */

static void item_next(void)
{
    do
        machine.now = (machine.now + 1) % machine.items;
    while (machine.done[machine.now]);
}

void item_progress(void)
{
    machine.idle = 0;
}

void item_yield(void)
{
    uint32_t was = machine.now;
    if (machine.idle++ > IDLE_ROUNDS * machine.items) {
        printf("all items wait, and for ever\n");
        exit(1);
    }
    item_next();
    if (machine.now != was)
        swapcontext(&machine.fiber[was], &machine.fiber[machine.now]);
}

static void item_run(void)
{
    machine.body(machine.argument);
    item_progress();
    machine.done[machine.now] = true;
    if (--machine.left == 0)
        setcontext(&machine.start);
    item_next();
    setcontext(&machine.fiber[machine.now]);
}

/* A separate function, because getcontext may return twice. */
static void fiber_start(uint32_t item)
{
    ucontext_t *fiber = &machine.fiber[item];
    getcontext(fiber);
    fiber->uc_stack.ss_sp = machine.stack[item];
    fiber->uc_stack.ss_size = STACK_BYTES;
    makecontext(fiber, item_run, 0);
}

static void group_run(void)
{
    machine.left = machine.items;
    machine.waiting = 0;
    machine.vote = false;
    machine.runs++;
    memset(machine.exchanges, 0, sizeof(machine.exchanges));
    memset(machine.warp_exchanges, 0, sizeof(machine.warp_exchanges));
    for (uint32_t i = 0; i < machine.items; i++) {
        machine.done[i] = false;
        fiber_start(i);
    }
    machine.now = 0;
    swapcontext(&machine.start, &machine.fiber[0]);
}

bool groups_run(uint64_t groups, uint32_t items, void (*body)(void *),
                void *argument)
{
    bool there = items <= MAX_ITEMS;
    for (uint32_t i = 0; there && i < items; i++) {
        if (machine.stack[i] == NULL)
            machine.stack[i] = malloc(STACK_BYTES);
        there = machine.stack[i] != NULL;
    }
    if (!there) {
        fprintf(stderr, "no memory for %u items\n", items);
        return false;
    }
    machine.items = items;
    machine.body = body;
    machine.argument = argument;
    machine.groups = groups;
    for (machine.group = 0; machine.group < groups; machine.group++)
        group_run();
    return true;
}

uint64_t copies_misaligned(void)
{
    return machine.misaligned_copies;
}

void copy_misaligned(void)
{
    machine.misaligned_copies++;
}

uint32_t item_now(void)
{
    return machine.now;
}

uint64_t group_run_now(void)
{
    return machine.runs;
}

/* ---- OpenCL's functions, with the names that clang gives them ---- */

/* The compiled kernels look up these symbols, which no other file declares. */
#pragma GCC visibility push(default)
#pragma GCC diagnostic ignored "-Wmissing-prototypes"

/* Begins the definition of a function with this symbol. */
#define OPENCL_FUNCTION(type, name, symbol, ...)                               \
    type name(__VA_ARGS__) __asm__(symbol);                                    \
    type name(__VA_ARGS__)

OPENCL_FUNCTION(size_t, get_local_id, "_Z12get_local_idj", uint32_t axis)
{
    (void)axis;
    return machine.now;
}

OPENCL_FUNCTION(size_t, get_group_id, "_Z12get_group_idj", uint32_t axis)
{
    (void)axis;
    return machine.group;
}

OPENCL_FUNCTION(size_t, get_global_id, "_Z13get_global_idj", uint32_t axis)
{
    (void)axis;
    return machine.group * machine.items + machine.now;
}

OPENCL_FUNCTION(size_t, get_num_groups, "_Z14get_num_groupsj", uint32_t axis)
{
    (void)axis;
    return machine.groups;
}

OPENCL_FUNCTION(int32_t, isfinite_float, "_Z8isfinitef", float x)
{
    return isfinite(x) ? 1 : 0;
}

OPENCL_FUNCTION(void, barrier, "_Z7barrierj", uint32_t fence)
{
    uint32_t passed = machine.passed;
    (void)fence;
    item_progress();
    if (++machine.waiting == machine.items) {
        machine.waiting = 0;
        machine.passed++;
    }
    while (machine.passed == passed)
        item_yield();
}

OPENCL_FUNCTION(uint32_t, min_uint, "_Z3minjj", uint32_t a, uint32_t b)
{
    return a < b ? a : b;
}

OPENCL_FUNCTION(uint32_t, max_uint, "_Z3maxjj", uint32_t a, uint32_t b)
{
    return a > b ? a : b;
}

OPENCL_FUNCTION(int32_t, min_int, "_Z3minii", int32_t a, int32_t b)
{
    return a < b ? a : b;
}

OPENCL_FUNCTION(int32_t, max_int, "_Z3maxii", int32_t a, int32_t b)
{
    return a > b ? a : b;
}

OPENCL_FUNCTION(uint32_t, mul_hi_uint, "_Z6mul_hijj", uint32_t a, uint32_t b)
{
    return (uint32_t)((uint64_t)a * b >> 32);
}

OPENCL_FUNCTION(uint32_t, clz_uint, "_Z3clzj", uint32_t x)
{
    return x == 0 ? 32 : (uint32_t)__builtin_clz(x);
}

OPENCL_FUNCTION(float, fma_float, "_Z3fmafff", float a, float b, float c)
{
    return fmaf(a, b, c);
}

/* ---- functions of lane_reduce.cl ---- */

/*
 * Passes count words to the warp and returns the words of all items once all
 * have passed theirs. An item is at most one exchange ahead of the others.
 */
static uint32_t (*warp_exchange(const uint32_t *words, size_t count))[6]
{
    uint32_t item = machine.now, warp = item / WARP;
    uint64_t turn = machine.exchanges[item]++;
    item_progress();
    memcpy(machine.exchanged[turn % 2][item], words, count * sizeof(*words));
    machine.warp_exchanges[warp]++;
    while (machine.warp_exchanges[warp] < (turn + 1) * WARP)
        item_yield();
    return &machine.exchanged[turn % 2][warp * WARP];
}

void warp_barrier(void)
{
    const uint32_t nothing = 0;
    warp_exchange(&nothing, 1);
}

float shuffle_xor(float x, uint32_t mask)
{
    uint32_t lane = machine.now % WARP, word;
    memcpy(&word, &x, sizeof(word));
    word = warp_exchange(&word, 1)[lane ^ mask][0];
    memcpy(&x, &word, sizeof(x));
    return x;
}

bool warp_vote(bool x)
{
    const uint32_t word = x;
    uint32_t(*exchanged)[6] = warp_exchange(&word, 1);
    bool any = false;
    for (uint32_t i = 0; i < WARP; i++)
        any = any || exchanged[i][0] != 0;
    return any;
}

bool group_vote(bool x)
{
    machine.vote = machine.vote || x;
    barrier(0);
    bool any = machine.vote;
    barrier(0);
    machine.vote = false;
    barrier(0);
    return any;
}

/* ---- functions of ptx_sm80.cl ---- */

/*
 * The last local memory address that was converted. Other addresses differ by
 * less than 2 GiB, possibly across a multiple of 4 GiB.
 */
static const char *base;

char *local_at(uint32_t address)
{
    int32_t distance = (int32_t)(address - (uint32_t)(uintptr_t)base);
    return (char *)(uintptr_t)(base + distance);
}

uint32_t local_address(const void *at)
{
    base = at;
    return (uint32_t)(uintptr_t)at;
}

/* No more aligned than gemm_mma.cl requires. */
uint32_t address_of(const uint32_t *at)
{
    if ((uintptr_t)at % 256 != 0)
        machine.misaligned_copies++;
    return local_address(at);
}

void copy_async(uint32_t to, const void *from, uint32_t bytes)
{
    if (to % 16 != 0 || (bytes != 0 && (uintptr_t)from % 16 != 0) || bytes > 16)
        machine.misaligned_copies++;
    memset(local_at(to), 0, 16);
    memcpy(local_at(to), from, bytes);
}

void copies_commit(void)
{
}

void load_matrices(uint32_t *out, uint32_t from)
{
    uint32_t lane = machine.now % WARP;
    uint32_t(*exchanged)[6] = warp_exchange(&from, 1);
    for (uint32_t i = 0; i < 4; i++)
        memcpy(&out[i], local_at(exchanged[i * 8 + lane / 4][0]) + lane % 4 * 4,
               4);
}

void load_matrices_transposed(uint32_t *out, uint32_t from)
{
    uint32_t lane = machine.now % WARP;
    uint32_t(*exchanged)[6] = warp_exchange(&from, 1);
    for (uint32_t i = 0; i < 4; i++) {
        uint16_t pair[2];
        for (uint32_t j = 0; j < 2; j++)
            memcpy(&pair[j],
                   local_at(exchanged[i * 8 + lane % 4 * 2 + j][0]) +
                       lane / 4 * 2,
                   2);
        out[i] = pair[0] | (uint32_t)pair[1] << 16;
    }
}

uint32_t load_word(uint32_t from)
{
    uint32_t word;
    memcpy(&word, local_at(from), sizeof(word));
    return word;
}

void load_2_words(uint32_t *out, uint32_t from)
{
    memcpy(out, local_at(from), 2 * sizeof(*out));
}

void load_4_words(uint32_t *out, uint32_t from)
{
    memcpy(out, local_at(from), 4 * sizeof(*out));
}

double operand_value(uint32_t format, uint32_t word, uint32_t odd)
{
    float value;
    if (format == FORMAT_TF32 || format == FORMAT_3XTF32)
        word &= 0xffffe000u;
    else if (format == FORMAT_BF16)
        word = odd ? word & 0xffff0000u : word << 16;
    else
        return (double)f16_value((uint16_t)(odd ? word >> 16 : word));
    memcpy(&value, &word, sizeof(value));
    return value;
}

/*
 * Returns element (row, k) of the 16 or 8 rows whose words start at `place` in
 * each item of the warp.
 */
static double warp_element(uint32_t format, uint32_t (*warp)[6], uint32_t place,
                           uint32_t row, uint32_t rows, uint32_t k)
{
    uint32_t pair = format == FORMAT_TF32 ? 1 : 2;
    uint32_t upper = k / (4 * pair), lane = row % 8 * 4 + k / pair % 4;
    uint32_t word = place + (rows == 16 ? row / 8 + upper * 2 : upper);
    return operand_value(format, warp[lane][word], k % pair);
}

void emulated_mma(uint32_t format, float *sum, const uint32_t *a,
                  const uint32_t *b, uint32_t add)
{
    const uint32_t words[6] = {a[0], a[1], a[2], a[3], b[0], b[1]};
    uint32_t lane = machine.now % WARP, depth = format == FORMAT_TF32 ? 8 : 16;
    uint32_t(*warp)[6] = warp_exchange(words, 6);
    for (uint32_t i = 0; i < 4; i++) {
        uint32_t row = lane / 4 + i / 2 * 8, column = lane % 4 * 2 + i % 2;
        double total = add ? sum[i] : 0;
        for (uint32_t k = 0; k < depth; k++)
            total += warp_element(format, warp, 0, row, 16, k) *
                     warp_element(format, warp, 4, column, 8, k);
        sum[i] = (float)total;
    }
}

uint32_t bf16_pair(float low, float high)
{
    return bf16_round(low) | (uint32_t)bf16_round(high) << 16;
}

uint16_t f16_from_float(float x)
{
    return f16_round(x);
}

float f16_to_float(uint16_t x)
{
    return f16_value(x);
}

#pragma GCC visibility pop
