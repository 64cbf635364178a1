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
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fault_sweep.h"
#include "opencl_workload.h"
#include "operator_example.h"

#define MAX_CALLS (4u * TANDEM_OP_ID_END)

/* A call of the sweep: an operator and the number of an example's shape. */
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

/* On a GPU, reductions are combined as on NVIDIA devices. */
static const char *const cpu_options[] = {"cache_dir", sweep_cache, NULL};
static const char *const gpu_options[] = {
    "cache_dir", sweep_cache, "test.device_scope_visibility", "1", NULL};
static const char *const *options = cpu_options;

/* ---- calls ---- */

/* Compares output i with the reference, or makes it the reference. */
static bool output_matches(const struct resident_op *op, uint32_t i)
{
    /* A lost device may still write to this memory later. */
    static _Alignas(8) unsigned char got[MAX_EXAMPLE_OUTPUT_BYTES];
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
            return record_violation(&work, "memory is exhausted");
        memcpy(reference[i], got, bytes);
    }
    return example_outputs_equal(out, got, reference[i]) ||
           record_violation(&work,
                            "the result differs from that without a fault");
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
    struct device_session session = {.backend = work.api,
                                     .device = work.device};
    struct resident_op op;
    bool passed;

    work.section = call->info->name;
    work.status = TANDEM_OK;
    work.stream = NULL;
    if (!example_build(&op, call->info, call->shape))
        return record_violation(&work, "there is no such example");
    if (!CALL(&work, stream_create, work.device, 0, &work.stream))
        return false;
    session.stream = work.stream;
    passed = call_succeeded(&work, resident_op_begin(&op, &session),
                            "creation of the operands");
    if (passed) {
        passed = call_succeeded(&work, example_outputs_clear(&op), "fill") &&
                 operator_launch(&op, commands);
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

/* Runs the examples of an operator and adds those with new commands. */
static void operator_add(const struct tandem_op_info *info)
{
    struct resident_op op;
    uint64_t most = 0;

    for (size_t i = 0;
         i < EXAMPLE_SHAPES && (i < FALLBACK_EXAMPLE_SHAPE || most == 0); i++) {
        const struct operator_call tried = {info, i};
        uint64_t commands = 0;

        if (!example_build(&op, info, i))
            continue;
        call_select(&tried);
        work.failed[0] = '\0';
        /* The first launch also enqueues a trial of each kernel. */
        if (!call_run(NULL) || !call_run(&commands)) {
            fprintf(stderr, "%s %s\n", info->name, example_shape_text(i));
            sweep_report("the example of an operator fails by itself");
        }
        if (commands <= most || call_count == MAX_CALLS)
            continue;
        most = commands;
        calls[call_count++] = tried;
        printf("%s %s: %" PRIu64 " commands\n", info->name,
               example_shape_text(i), commands);
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

    if (part == 0)
        calls_collect();
    call_select(NULL);
    if (part >= call_count)
        return NULL;
    call_select(&calls[part]);
    snprintf(name, sizeof name, "%s %s", call->info->name,
             example_shape_text(call->shape));
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

    if (getenv("TANDEM_LAYER_GPU") != NULL)
        options = gpu_options;
    only = argc > 1 ? tandem_op_by_name(argv[1]) : NULL;
    return only ? sweep_main(argc - 1, argv + 1, &subject)
                : sweep_main(argc, argv, &subject);
}
