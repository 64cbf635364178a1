/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Usage: thread-stress [OPERATIONS [SEED]]
 *
 * Runs a mix of operations in four threads of one context on all of its
 * devices, and compares the results with a reference. All values are integers
 * of which f32 computes sums and products exactly. The exit status is 0 if all
 * results were correct.
 */
#include <config.h>

#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <tandem/host.h>

#include "support/case_summary.h"

#define THREADS 4
#define SIDE 16
#define ELEMENTS (SIDE * SIDE)
#define SLOTS 6
#define SHARED 3
/* The largest input. A GEMM of such matrices has elements of at most 2^24. */
#define LARGEST 1024.0f

static const int64_t square[2] = {SIDE, SIDE};
static const int64_t transposed[2] = {1, SIDE};

/* A matrix and its expected content. */
struct slot {
    struct tandem_tensor *tensor;
    float *memory; /* Wrapped memory, or NULL. */
    float expected[ELEMENTS];
};

/* Each thread has a worker. All threads read the shared slots, and none writes
 * them. */
struct worker {
    struct tandem_context *context;
    const struct slot *shared; /* An array of SHARED slots. */
    uint32_t devices;
    uint64_t random, operations, wanted;
    struct slot slots[SLOTS];
    float memory[SLOTS][ELEMENTS];
    char failure[512]; /* The first failure, or "". */
};

static uint32_t random_below(struct worker *worker, uint32_t limit)
{
    worker->random = worker->random * UINT64_C(6364136223846793005) +
                     UINT64_C(1442695040888963407);
    return (uint32_t)(worker->random >> 33) % limit;
}

/* Records the first failure. Returns false. */
static bool worker_fail(struct worker *worker, const char *what)
{
    if (worker->failure[0] == '\0')
        snprintf(
            worker->failure, sizeof worker->failure, "operation %llu: %s: %s",
            (unsigned long long)worker->operations, what, tandem_last_error());
    return false;
}

#define MUST(call)                                                             \
    do {                                                                       \
        if ((call) != TANDEM_OK)                                               \
            return worker_fail(worker, #call);                                 \
    } while (0)

/* ---- slots ---- */

/* Writes random values with a random function. */
static bool slot_write(struct worker *worker, struct slot *slot)
{
    for (int i = 0; i < ELEMENTS; i++)
        slot->expected[i] = (float)random_below(worker, 9) - 4;
    if (slot->memory && random_below(worker, 2)) {
        /* No device may still use the memory. */
        MUST(tandem_tensor_sync(slot->tensor, TANDEM_TIMEOUT_INFINITE));
        memcpy(slot->memory, slot->expected, sizeof slot->expected);
        MUST(tandem_tensor_host_written(slot->tensor));
        return true;
    }
    MUST(tandem_tensor_write(slot->tensor, slot->expected,
                             sizeof slot->expected));
    return true;
}

/* Creates a tensor with random values in this memory or, if it is NULL, in
 * memory of its own. */
static bool slot_make(struct worker *worker, struct slot *slot, float *memory)
{
    slot->memory = memory;
    if (memory)
        MUST(tandem_tensor_wrap(worker->context, memory, TANDEM_F32, 2, square,
                                NULL, 0, &slot->tensor));
    else
        MUST(tandem_tensor_create(worker->context, TANDEM_F32, 2, square,
                                  &slot->tensor));
    return slot_write(worker, slot);
}

/* Reads the tensor with a random function and compares its content. */
static bool slot_check(struct worker *worker, const struct slot *slot)
{
    const void *data = slot->memory;
    float values[ELEMENTS];
    char text[160];

    switch (random_below(worker, 3)) {
    case 0:
        MUST(tandem_tensor_read(slot->tensor, values, sizeof values,
                                TANDEM_TIMEOUT_INFINITE));
        data = values;
        break;
    case 1:
        MUST(tandem_tensor_host_data(slot->tensor, TANDEM_TIMEOUT_INFINITE,
                                     &data));
        break;
    default:
        MUST(tandem_tensor_sync(slot->tensor, TANDEM_TIMEOUT_INFINITE));
        if (!data)
            MUST(tandem_tensor_host_data(slot->tensor, TANDEM_TIMEOUT_INFINITE,
                                         &data));
    }
    for (int i = 0; i < ELEMENTS; i++) {
        const float value = ((const float *)data)[i];

        if (value == slot->expected[i])
            continue;
        snprintf(text, sizeof text, "element %d is %.9g, not %.9g", i,
                 (double)value, (double)slot->expected[i]);
        return worker_fail(worker, text);
    }
    return true;
}

static bool slot_is_small(const struct slot *slot)
{
    for (int i = 0; i < ELEMENTS; i++)
        if (fabsf(slot->expected[i]) > LARGEST)
            return false;
    return true;
}

static struct slot *own(struct worker *worker)
{
    return &worker->slots[random_below(worker, SLOTS)];
}

/* Returns an input, one of the worker's slots or a shared one. */
static const struct slot *input(struct worker *worker)
{
    const uint32_t i = random_below(worker, SLOTS + SHARED);

    return i < SLOTS ? &worker->slots[i] : &worker->shared[i - SLOTS];
}

/* ---- operators ---- */

/* Returns a device, or TANDEM_ANY_DEVICE, which lets the library select. */
static uint32_t device_draw(struct worker *worker)
{
    const uint32_t device = random_below(worker, worker->devices + 1);

    return device < worker->devices ? device : TANDEM_ANY_DEVICE;
}

static float negate(float a, float b)
{
    (void)b;
    return -a;
}

static float absolute(float a, float b)
{
    (void)b;
    return fabsf(a);
}

static float add(float a, float b)
{
    return a + b;
}

static float multiply(float a, float b)
{
    return a * b;
}

/* The output may be an input. */
static bool elementwise(struct worker *worker)
{
    static const struct {
        uint32_t id, inputs;
        float (*f)(float a, float b);
    } operators[] = {{TANDEM_OP_NEG, 1, negate},
                     {TANDEM_OP_ABS, 1, absolute},
                     {TANDEM_OP_MAX, 2, fmaxf},
                     {TANDEM_OP_ADD, 2, add},
                     {TANDEM_OP_MUL, 2, multiply}};
    const uint32_t kind =
        random_below(worker, sizeof operators / sizeof *operators);
    const struct slot *a = input(worker), *b = input(worker);
    const struct tandem_op op = {.struct_size = sizeof op,
                                 .id = operators[kind].id};
    struct tandem_tensor *const inputs[2] = {a->tensor, b->tensor};
    struct slot *y = own(worker);

    if (!slot_is_small(a) || !slot_is_small(b))
        return slot_write(worker, y);
    MUST(tandem_run(worker->context, &op, inputs, operators[kind].inputs,
                    &y->tensor, 1, TANDEM_RUN_ON(device_draw(worker))));
    for (int i = 0; i < ELEMENTS; i++)
        y->expected[i] = operators[kind].f(a->expected[i], b->expected[i]);
    return true;
}

/* Transposes through a view that exists during the operation. */
static bool strided(struct worker *worker)
{
    const struct tandem_op op = {.struct_size = sizeof op,
                                 .id = TANDEM_OP_COPY};
    const struct slot *x = input(worker);
    struct slot *y = own(worker);
    struct tandem_tensor *view = NULL;
    enum tandem_status status;

    if (x == y)
        return true;
    MUST(tandem_tensor_view(x->tensor, 0, 2, square, transposed, &view));
    status = tandem_run(worker->context, &op, &view, 1, &y->tensor, 1,
                        TANDEM_RUN_ON(device_draw(worker)));
    tandem_tensor_destroy(view);
    MUST(status);
    for (int i = 0; i < ELEMENTS; i++)
        y->expected[i] = x->expected[i % SIDE * SIDE + i / SIDE];
    return true;
}

/*
 * Writes the sum of each row to the first column through a view. The other
 * columns are unchanged.
 */
static bool reduction(struct worker *worker)
{
    static const int64_t shape[2] = {SIDE, 1}, strides[2] = {SIDE, 1};
    static const int64_t ints[2] = {2, 1};
    const struct tandem_op op = {.struct_size = sizeof op,
                                 .id = TANDEM_OP_SUM,
                                 .int_count = 2,
                                 .ints = ints};
    const struct slot *x = input(worker);
    struct slot *y = own(worker);
    struct tandem_tensor *view = NULL;
    enum tandem_status status;

    if (x == y || !slot_is_small(x))
        return true;
    MUST(tandem_tensor_view(y->tensor, 0, 2, shape, strides, &view));
    status = tandem_run(worker->context, &op, &x->tensor, 1, &view, 1,
                        TANDEM_RUN_ON(device_draw(worker)));
    tandem_tensor_destroy(view);
    MUST(status);
    for (int i = 0; i < SIDE; i++) {
        y->expected[i * SIDE] = 0;
        for (int j = 0; j < SIDE; j++)
            y->expected[i * SIDE] += x->expected[i * SIDE + j];
    }
    return true;
}

/* Computes c = a b, with or without a transposed b. */
static bool gemm(struct worker *worker)
{
    const bool transpose = random_below(worker, 2);
    const struct tandem_matmul_options options = {.struct_size = sizeof options,
                                                  .alpha = 1,
                                                  .device =
                                                      device_draw(worker)};
    const struct slot *a = input(worker), *b = input(worker);
    struct tandem_tensor *view = NULL;
    struct slot *c = own(worker);
    enum tandem_status status;

    if (c == a || c == b || !slot_is_small(a) || !slot_is_small(b))
        return true;
    if (transpose)
        MUST(tandem_tensor_view(b->tensor, 0, 2, square, transposed, &view));
    status = tandem_matmul(worker->context, &options, a->tensor,
                           transpose ? view : b->tensor, c->tensor);
    tandem_tensor_destroy(view);
    MUST(status);
    for (int i = 0; i < ELEMENTS; i++) {
        c->expected[i] = 0;
        for (int k = 0; k < SIDE; k++)
            c->expected[i] += a->expected[i / SIDE * SIDE + k] *
                              b->expected[transpose ? i % SIDE * SIDE + k
                                                    : k * SIDE + i % SIDE];
    }
    return true;
}

/* ---- other operations ---- */

static bool read_own(struct worker *worker)
{
    return slot_check(worker, own(worker));
}

static bool read_shared(struct worker *worker)
{
    return slot_check(worker, &worker->shared[random_below(worker, SHARED)]);
}

static bool write_own(struct worker *worker)
{
    return slot_write(worker, own(worker));
}

static bool make_anew(struct worker *worker)
{
    const uint32_t i = random_below(worker, SLOTS);
    struct slot *slot = &worker->slots[i];

    /* Wrapped memory may be freed only when nothing writes to it. */
    if (slot->memory)
        MUST(tandem_tensor_sync(slot->tensor, TANDEM_TIMEOUT_INFINITE));
    tandem_tensor_destroy(slot->tensor);
    return slot_make(worker, slot,
                     random_below(worker, 2) ? worker->memory[i] : NULL);
}

static bool explain(struct worker *worker)
{
    const struct tandem_op op = {.struct_size = sizeof op, .id = TANDEM_OP_EXP};
    struct tandem_explanation e = {.struct_size = sizeof e};
    const struct slot *x = input(worker);
    struct slot *y = own(worker);

    MUST(tandem_explain_op(worker->context, &op, &x->tensor, 1, &y->tensor, 1,
                           &e));
    if (e.op != TANDEM_OP_EXP || e.candidate_count == 0)
        return worker_fail(worker, "another operator is explained");
    tandem_explain_last(worker->context, &e);
    return true;
}

static bool ask(struct worker *worker)
{
    uint32_t mask = 0;

    MUST(tandem_tensor_residency(input(worker)->tensor, &mask));
    if (mask == 0)
        return worker_fail(worker, "a tensor that was written is nowhere");
    return true;
}

static bool prefetch(struct worker *worker)
{
    MUST(tandem_tensor_prefetch(input(worker)->tensor,
                                random_below(worker, worker->devices)));
    return true;
}

static uint64_t observed;

static void observe(void *user, const struct tandem_explanation *explanation,
                    bool after)
{
    (void)user;
    __atomic_fetch_add(&observed, explanation->candidate_count + after,
                       __ATOMIC_RELAXED);
}

/* Changes settings that affect all threads. */
static bool context_change(struct worker *worker)
{
    switch (random_below(worker, 8)) {
    case 0:
        MUST(tandem_context_synchronize(worker->context,
                                        TANDEM_TIMEOUT_INFINITE));
        break;
    case 1:
        MUST(tandem_context_set_observer(
            worker->context, random_below(worker, 2) ? observe : NULL, NULL));
        break;
    case 2:
        MUST(tandem_context_set_timing(worker->context,
                                       random_below(worker, 8) == 0));
        break;
    default:
        break;
    }
    return true;
}

static bool operation_run(struct worker *worker)
{
    static bool (*const mix[])(struct worker *) = {
        elementwise, elementwise, elementwise, elementwise,   elementwise,
        strided,     strided,     reduction,   gemm,          gemm,
        read_own,    read_own,    read_shared, write_own,     make_anew,
        explain,     ask,         prefetch,    context_change};

    worker->operations++;
    return mix[random_below(worker, sizeof mix / sizeof *mix)](worker);
}

/* ---- threads ---- */

static struct worker
    workers[THREADS + 1]; /* The last worker creates the shared tensors. */
static float shared_memory[SHARED][ELEMENTS];

static void *worker_run(void *argument)
{
    struct worker *worker = argument;

    for (int i = 0; i < SLOTS; i++)
        if (!slot_make(worker, &worker->slots[i],
                       i % 2 ? worker->memory[i] : NULL))
            return NULL;
    while (worker->operations < worker->wanted)
        if (!operation_run(worker))
            return NULL;
    for (int i = 0; i < SLOTS; i++) {
        if (!slot_check(worker, &worker->slots[i]))
            return NULL;
        tandem_tensor_destroy(worker->slots[i].tensor);
    }
    return NULL;
}

static bool workers_run(uint64_t operations)
{
    pthread_t threads[THREADS];
    bool good = true;

    for (int i = 0; i < THREADS; i++) {
        workers[i].wanted = operations / THREADS;
        if (pthread_create(&threads[i], NULL, worker_run, &workers[i]) != 0)
            exit(2);
    }
    for (int i = 0; i < THREADS; i++) {
        pthread_join(threads[i], NULL);
        if (workers[i].failure[0] == '\0')
            continue;
        fprintf(stderr, "stress: thread %d: %s\n", i, workers[i].failure);
        good = false;
    }
    return good;
}

int main(int count, char **words)
{
    const uint64_t operations =
        count > 1 ? strtoull(words[1], NULL, 10) : 10000;
    const uint64_t seed = count > 2 ? strtoull(words[2], NULL, 10) : 1;
    struct worker *maker = &workers[THREADS];
    struct tandem_context *context;
    uint32_t devices;
    bool good = true;

    if (operations == 0) {
        fputs("stress: OPERATIONS must be a positive number\n", stderr);
        return 2;
    }
    if (tandem_context_create(NULL, &context) != TANDEM_OK ||
        tandem_device_count(context, &devices) != TANDEM_OK) {
        fprintf(stderr, "stress: %s\n", tandem_last_error());
        return 2;
    }
    for (uint32_t i = 0; i <= THREADS; i++) {
        workers[i].context = context;
        workers[i].shared = maker->slots;
        workers[i].devices = devices;
        workers[i].random = seed * 1000 + i;
    }
    for (int i = 0; i < SHARED; i++)
        good = good && slot_make(maker, &maker->slots[i],
                                 i % 2 ? shared_memory[i] : NULL);
    good = good && workers_run(operations);
    for (int i = 0; i < SHARED; i++)
        good = good && slot_check(maker, &maker->slots[i]);
    if (maker->failure[0] != '\0')
        fprintf(stderr, "stress: shared: %s\n", maker->failure);
    tandem_context_destroy(context);
    printf("%llu operations of %d threads on %u devices: %s\n",
           (unsigned long long)operations, THREADS, devices,
           good ? "right" : "wrong");
    return case_summary(good ? operations : 0, good ? 0 : operations);
}
