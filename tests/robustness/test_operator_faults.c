/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Each operator of the OpenCL plugin while OpenCL calls fail. The calls are the
 * examples of the operator classes (op_class.h) with several shapes, so that
 * the sweep covers new operators and all steps of their plans. Each call has
 * its own sweeps, which begin after the device was opened: the call returns an
 * error or the result of a call without a fault, nothing leaks, and afterwards
 * the device works or reports that it is lost. See fault_sweep.h for the
 * arguments; before them, the name of an operator selects only that one.
 */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../../tools/common/resident_op.h"
#include "fault_sweep.h"
#include "opencl_workload.h"

/*
 * Shapes of the examples. The second and the third are also used if the device
 * enqueues more commands for them, the others if an operator has no example
 * with these three.
 */
static const struct {
    uint32_t rank;
    int64_t lengths[6];
} shapes[] = {
    {4, {2, 16, 10, 12}},    /* Several matrices, or images with channels. */
    {5, {1, 1, 1, 1024, 8}}, /* One query; volumes that are resized. */
    /* Rows that are split. Operators whose time is the square of the length
     * accept at most five axes. */
    {6, {1, 1, 1, 1, 1, 20000}},
    {1, {20000}},
    {2, {6, 20}},
    {3, {24, 24, 24}}};
#define SHAPES (sizeof shapes / sizeof *shapes)
#define FALLBACK_SHAPE 3

#define MAX_OUTPUT_BYTES (1u << 20)
#define MAX_CALLS (4u * TANDEM_OP_ID_END)

/* A call of the sweep: an operator and an index in `shapes`. */
struct operator_call {
    const struct tandem_op_info *info;
    size_t shape;
};

static struct workload work;
static struct operator_call calls[MAX_CALLS];
static uint64_t call_count;
static const struct operator_call *call; /* The current one. */
/* The only operator to test, or NULL. */
static const struct tandem_op_info *only;
/* The outputs of the current call without a fault, or NULL. */
static void *reference[TANDEM_MAX_OPERANDS];

static const char *const options[] = {"cache_dir", sweep_cache, NULL};

/* ---- calls ---- */

static bool values_match(const void *got, const void *want, uint32_t dtype,
                         uint64_t bytes)
{
    const float *got_f32 = got, *want_f32 = want;

    if (dtype != TANDEM_F32)
        return memcmp(got, want, bytes) == 0;
    for (uint64_t i = 0; i < bytes / sizeof(float); i++)
        if (!value_near(got_f32[i], want_f32[i]) &&
            !(isnan(got_f32[i]) && isnan(want_f32[i])))
            return false;
    return true;
}

/* Compares output i with the reference, or makes it the reference. */
static bool output_matches(const struct resident_op *op, uint32_t i)
{
    /* A lost device may still write to this memory later. */
    static _Alignas(8) unsigned char got[MAX_OUTPUT_BYTES];
    const struct tandem_tensor_desc *out = &op->c.out[i];
    const uint64_t bytes = (uint64_t)desc_bytes(out);

    if (bytes > sizeof got)
        return record_violation(&work, "an output is too large for this test");
    if (!CALL(&work, download, work.stream, out->buffer, 0, got, bytes, 0,
              TANDEM_TIMEOUT_INFINITE))
        return false;
    if (reference[i] == NULL) {
        reference[i] = malloc(bytes);
        if (reference[i] == NULL)
            return record_violation(&work, "there is no memory");
        memcpy(reference[i], got, bytes);
    }
    return values_match(got, reference[i], out->dtype, bytes) ||
           record_violation(&work, "the result is not that without a fault");
}

/* Overwrites the outputs, except those that are also inputs. */
static bool outputs_clear(const struct resident_op *op)
{
    const unsigned char pattern = 0xa5;
    bool passed = true;

    for (uint32_t i = 0; i < op->c.outputs && passed; i++)
        if (op->c.alias[i] < 0)
            passed = CALL(&work, fill, work.stream, op->c.out[i].buffer, 0,
                          (uint64_t)desc_bytes(&op->c.out[i]), &pattern, 1);
    return passed;
}

/*
 * Adds the number of commands that the launch enqueues to *commands, unless
 * that is NULL.
 */
static bool operator_launch(struct resident_op *op, uint64_t *commands)
{
    const struct layer_counts before = plug_counts(&plug);
    bool passed;

    passed = call_succeeded(&work, resident_op_launch(op), "launch");
    if (commands != NULL) {
        const struct layer_counts after = plug_counts(&plug);

        *commands += after.kernels - before.kernels + after.copies -
                     before.copies + after.fills - before.fills;
    }
    return passed;
}

/* Runs the current call on a new stream, and reports its errors. */
static bool call_run(uint64_t *commands)
{
    const char *name = call->info->name;
    struct device_session session = {.backend = work.api,
                                     .device = work.device};
    struct resident_op op;
    char error[OPCASE_ERROR_BYTES];
    bool passed;

    memset(&op, 0, sizeof op);
    work.section = name;
    work.status = TANDEM_OK;
    work.stream = NULL;
    if (!op_case_build(&op.c, name, shapes[call->shape].rank,
                       shapes[call->shape].lengths, error))
        return record_violation(&work, error);
    if (!CALL(&work, stream_create, work.device, 0, &work.stream))
        return false;
    session.stream = work.stream;
    passed = call_succeeded(&work, resident_op_begin(&op, &session),
                            "creation of the operands");
    if (passed) {
        passed = outputs_clear(&op) && operator_launch(&op, commands);
        for (uint32_t i = 0; i < op.c.outputs && passed; i++)
            passed = output_matches(&op, i);
        resident_op_destroy(&op);
    }
    passed &= stream_wait(&work, work.stream);
    work.api->stream_destroy(work.stream);
    return passed;
}

/* ---- the list of calls ---- */

static void call_select(const struct operator_call *selected)
{
    call = selected;
    for (uint32_t i = 0; i < TANDEM_MAX_OPERANDS; i++) {
        free(reference[i]);
        reference[i] = NULL;
    }
}

/* Returns true if the operator has an example with this shape. */
static bool call_exists(const struct operator_call *tried)
{
    struct op_case c;
    char error[OPCASE_ERROR_BYTES];

    return op_case_build(&c, tried->info->name, shapes[tried->shape].rank,
                         shapes[tried->shape].lengths, error);
}

/* Runs the examples of an operator and adds those with new commands. */
static void operator_add(const struct tandem_op_info *info)
{
    uint64_t most = 0;

    for (size_t i = 0; i < SHAPES && (i < FALLBACK_SHAPE || most == 0); i++) {
        const struct operator_call tried = {info, i};
        uint64_t commands = 0;

        if (!call_exists(&tried))
            continue;
        call_select(&tried);
        work.failed[0] = '\0';
        /* The first launch also enqueues a trial of each kernel. */
        if (!call_run(NULL) || !call_run(&commands)) {
            fprintf(stderr, "%s: shape %zu\n", info->name, i);
            sweep_report("the example of an operator fails by itself");
        }
        if (commands <= most || call_count == MAX_CALLS)
            continue;
        most = commands;
        calls[call_count++] = tried;
        printf("%s, shape %zu: %" PRIu64 " commands\n", info->name, i,
               commands);
        fflush(stdout);
    }
    if (most == 0) {
        fprintf(stderr, "%s\n", info->name);
        sweep_report("an operator has no example that runs");
    }
}

/* Adds all operators of a class, or a random one. */
static void class_add(uint32_t op_class)
{
    const struct tandem_op_info *infos[TANDEM_OP_ID_END];
    uint64_t count = 0;

    for (uint32_t id = 1; id < TANDEM_OP_ID_END; id++) {
        const struct tandem_op_info *info = tandem_op_by_id(id);

        if (info != NULL && info->op_class == op_class &&
            (only == NULL || info == only))
            infos[count++] = info;
    }
    if (count > 0 && !sweep_is_full()) {
        infos[0] = infos[sweep_random(count)];
        count = 1;
    }
    for (uint64_t i = 0; i < count; i++)
        operator_add(infos[i]);
}

static void device_begin(void)
{
    memset(&work, 0, sizeof work);
    work.api = plug.api;
    if (!workload_open(&work, options))
        sweep_report("no device can be opened");
}

static void calls_collect(void)
{
    device_begin();
    for (uint32_t i = 0; work.device != NULL && i < TANDEM_CLASS_END; i++)
        class_add(i);
    workload_close(&work);
}

static const char *part_select(uint64_t part)
{
    static char name[128];
    char shape[SHAPE_TEXT_BYTES];

    if (part == 0)
        calls_collect();
    call_select(NULL);
    if (part >= call_count)
        return NULL;
    call_select(&calls[part]);
    snprintf(name, sizeof name, "%s %s", call->info->name,
             shape_text(shape, shapes[call->shape].rank,
                        shapes[call->shape].lengths));
    return name;
}

/* ---- cases ---- */

static void device_open(void)
{
    if (workload_open(&work, options))
        workload_close(&work);
}

/* Checks that no memory counts as allocated. */
static void expect_nothing_allocated(void)
{
    struct tandem_memory_stats stats = {.struct_size = sizeof stats};

    if (!work.lost &&
        work.api->memory_stats(work.device, &stats) == TANDEM_OK &&
        (stats.allocated_bytes != 0 || stats.buffer_count != 0))
        sweep_report("buffers are in use after the operator");
}

/*
 * Runs the call without a fault: on the same device if it is open and not
 * lost, else on a new one. stream_destroy can lose a device and returns no
 * status, so the next call may be the first to tell.
 */
static void expect_call_passes(void)
{
    bool passed = false;

    work.failed[0] = '\0';
    if (work.device != NULL) {
        const bool was_lost = work.lost;

        /* The pool may have a buffer whose memory is missing for ever. */
        if (!was_lost)
            CALL(&work, trim, work.device, 0);
        passed = call_run(NULL);
        if (was_lost && passed)
            sweep_report("a lost device came back");
        if (!passed && !work.lost)
            sweep_report("the operator fails after the fault");
        expect_nothing_allocated();
        workload_close(&work);
    }
    if (passed)
        return;
    work.lost = false;
    work.failed[0] = '\0';
    if (!workload_open(&work, options)) {
        sweep_report("no device can be opened afterwards");
        return;
    }
    if (!call_run(NULL))
        sweep_report("the operator fails on a device opened anew");
    workload_close(&work);
}

static void one_case(const struct layer_script *script)
{
    struct sweep_state before;
    bool passed;

    workload_close(&work);
    before = sweep_state_take();
    device_begin();
    if (work.device == NULL)
        return;
    plug.script_set(script);
    passed = call_run(NULL);
    expect_nothing_allocated();
    if (script->nth == 0 && !passed)
        sweep_report("the operator fails by itself");
    /* Half of the devices are closed while calls still fail. */
    if (script->times > 1 && sweep_case() % 2 == 0)
        workload_close(&work);
    sweep_fault_ends();
    expect_call_passes();
    sweep_queues_wait(&before, device_open);
    sweep_state_check(&before, true);
    if (work.wrong[0])
        sweep_report("what must never be");
}

/*
 * The calls that open and close the device do not count, so the next case
 * closes it.
 */
static void pass(void)
{
    device_begin();
    plug.script_set(NULL);
    call_run(NULL);
}

int main(int argc, char **argv)
{
    static const struct sweep_subject subject = {.name = "operator-faults",
                                                 .part_select = part_select,
                                                 .one_case = one_case,
                                                 .pass = pass,
                                                 .failed = work.failed,
                                                 .wrong = work.wrong,
                                                 .once = 2,
                                                 .ever = 1,
                                                 .later = 2,
                                                 .lazy = 2};

    only = argc > 1 ? tandem_op_by_name(argv[1]) : NULL;
    return only ? sweep_main(argc - 1, argv + 1, &subject)
                : sweep_main(argc, argv, &subject);
}
