/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The OpenCL plugin while OpenCL calls fail. The parts are opening and closing
 * a device, sequences of calls (call_sequence.c) with each transfer path, and
 * the examples of all operators (operator_example.h). A call returns an error
 * or the right numbers, no object and no heap block is left, and afterwards the
 * device works or reports that it is lost. See fault_sweep.h for the arguments.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fault_sweep.h"
#include "opencl_workload.h"
#include "operator_example.h"

static const struct part {
    const char *name;
    uint32_t elements; /* of each buffer */
    uint64_t seed;
    const char *key, *value; /* of an option, or NULL */
} first_parts[] = {{"calls open", 1000, 7, NULL, NULL},
                   {"calls small", 1000, 1, NULL, NULL},
                   {"calls small", 1000, 2, NULL, NULL},
                   {"calls medium", 400u << 10, 3, NULL, NULL},
                   {"calls large", LARGEST, 4, NULL, NULL},
                   {"calls driver", LARGEST, 5, "test.transfer_path", "driver"},
                   {"calls ring", LARGEST, 6, "test.transfer_path", "ring"}};
#define FIRST_PARTS (sizeof first_parts / sizeof *first_parts)

/* An operator and the number of the shape of its example. */
struct example {
    const struct tandem_op_info *info;
    size_t shape;
};

#define MAX_EXAMPLES (4u * TANDEM_OP_ID_END)

static struct workload work;
static struct example examples[MAX_EXAMPLES];
static uint64_t example_count;
/* The current part: one of the first, or an example. */
static const struct part *part = first_parts;
static const struct example *example;
static struct example_outputs want;

static bool device_open(void)
{
    /* On a GPU, reductions are combined as on NVIDIA devices. */
    const char *const pairs[] = {"cache_dir",
                                 sweep_cache,
                                 "test.device_scope_visibility",
                                 getenv("TANDEM_LAYER_GPU") ? "1" : "0",
                                 part->key,
                                 part->value,
                                 NULL};

    return workload_open(&work, pairs);
}

static void device_open_and_close(void)
{
    if (device_open())
        workload_close(&work);
}

static void device_reset(void)
{
    if (work.device)
        workload_close(&work);
    memset(&work, 0, sizeof work);
    work.api = plug.api;
}

/* ---- parts ---- */

static bool part_run(void)
{
    work.section = example ? example->info->name : part->name;
    if (example)
        return example_run(&work, example->info, example->shape, &want);
    return sequence_run(&work, part->elements, part->seed);
}

/* Opening a device is a part of its own; the other parts have an open one. */
static bool is_opening(void)
{
    return !example && part == first_parts;
}

static void example_select(const struct example *selected)
{
    example = selected;
    example_outputs_free(&want);
}

/* Returns the number of commands that a launch of the example enqueues. */
static uint64_t example_commands(void)
{
    struct layer_counts before, after;

    if (!part_run()) /* The first launch also enqueues trials. */
        sweep_report("the example of an operator fails by itself");
    before = plug_counts(&plug);
    part_run();
    after = plug_counts(&plug);
    return after.kernels - before.kernels + after.copies - before.copies +
           after.fills - before.fills;
}

/* Adds the examples of an operator that enqueue more commands than others. */
static void operator_add(const struct tandem_op_info *info)
{
    struct resident_op op;
    uint64_t most = 0;

    for (size_t i = 0;
         i < EXAMPLE_SHAPES && (i < FALLBACK_EXAMPLE_SHAPE || most == 0); i++) {
        const struct example tried = {info, i};
        uint64_t commands;

        if (!example_build(&op, info, i))
            continue;
        example_select(&tried);
        commands = example_commands();
        if (commands <= most || example_count == MAX_EXAMPLES)
            continue;
        most = commands;
        examples[example_count++] = tried;
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

        if (info != NULL && info->op_class == op_class)
            infos[count++] = info;
    }
    if (count > 0 && !sweep_is_full()) {
        infos[0] = infos[sweep_random(count)];
        count = 1;
    }
    for (uint64_t i = 0; i < count; i++)
        operator_add(infos[i]);
}

static void examples_collect(void)
{
    device_reset();
    if (!device_open())
        sweep_report("no device can be opened");
    for (uint32_t i = 0; work.device != NULL && i < TANDEM_CLASS_END; i++)
        class_add(i);
}

static const char *part_select(uint64_t number, uint64_t *out_group)
{
    static char name[128];

    if (number == 0)
        examples_collect();
    device_reset();
    example_select(NULL);
    part = &first_parts[number < FIRST_PARTS ? number : 1];
    *out_group = number > 0;
    if (number < FIRST_PARTS)
        return part->name;
    number -= FIRST_PARTS;
    if (number >= example_count)
        return NULL;
    example_select(&examples[number]);
    *out_group = 2 + example->info->op_class;
    snprintf(name, sizeof name, "%s %s", example->info->name,
             example_shape_text(example->shape));
    return name;
}

/* ---- cases ---- */

/* Checks that no memory counts as allocated. */
static void expect_nothing_allocated(const char *when)
{
    struct tandem_memory_stats stats = {.struct_size = sizeof stats};
    char text[WORKLOAD_TEXT];

    if (!work.device || work.lost ||
        work.api->memory_stats(work.device, &stats) != TANDEM_OK ||
        (stats.allocated_bytes == 0 && stats.buffer_count == 0))
        return;
    snprintf(text, sizeof text,
             "%" PRIu64 " bytes of %" PRIu64 " buffers are in use %s",
             stats.allocated_bytes, stats.buffer_count, when);
    sweep_report(text);
}

/*
 * Runs the part without a fault, and a sequence: on the same device if it is
 * open and not lost, else on a new one. stream_destroy can lose a device and
 * returns no status, so the next call may be the first to tell.
 */
static void expect_part_passes(void)
{
    const bool was_lost = work.lost;
    bool passed = false;

    work.failed[0] = '\0';
    if (work.device != NULL) {
        /* The pool may have a buffer whose memory is missing for ever. */
        if (!was_lost)
            CALL(&work, trim, work.device, 0);
        passed = part_run() && sequence_run(&work, 1000, sweep_case());
        if (was_lost && passed)
            sweep_report("a lost device came back");
        if (!passed && !work.lost)
            sweep_report("the device fails after the fault");
        expect_nothing_allocated("afterwards");
        workload_close(&work);
    }
    if (passed)
        return;
    work.failed[0] = '\0';
    if (!device_open())
        sweep_report("no device can be opened afterwards");
    else if (!part_run())
        sweep_report("a device opened anew does not work");
    workload_close(&work);
}

/* Opens a device, and runs the part under the script. */
static bool part_run_with(const struct layer_script *script)
{
    bool passed;

    device_reset();
    if (is_opening())
        plug.script_set(script);
    passed = device_open();
    if (!is_opening())
        plug.script_set(script);
    if (passed && is_opening())
        workload_close(&work);
    else if (passed)
        passed = part_run();
    return passed;
}

static void one_case(const struct layer_script *script)
{
    struct sweep_state before;
    bool passed;

    device_reset();
    before = sweep_state_take();
    passed = part_run_with(script);
    expect_nothing_allocated("under the fault");
    if (script->nth == 0 && !passed)
        sweep_report("the part fails by itself");
    /* Half of the devices are closed while calls still fail. */
    if (script->times > 1 && sweep_case() % 2 == 0)
        workload_close(&work);
    sweep_fault_ends();
    expect_part_passes();
    sweep_queues_wait(&before, device_open_and_close);
    sweep_state_check(&before, true);
    if (work.wrong[0])
        sweep_report("what must never be");
}

/* The next case closes the device. */
static void pass(const struct layer_script *script)
{
    part_run_with(script);
}

int main(int argc, char **argv)
{
    static const struct sweep_subject subject = {.name = "faults",
                                                 .part_select = part_select,
                                                 .one_case = one_case,
                                                 .pass = pass,
                                                 .failed = work.failed,
                                                 .wrong = work.wrong,
                                                 .once = 2,
                                                 .ever = 1,
                                                 .later = 2,
                                                 .lazy = 2};

    return sweep_main(argc, argv, &subject);
}
