/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Counts what the chooser did.  Owns nothing.  Used by the thread that runs
 * the operators.
 */
#include "tally.h"

#include <stdio.h>
#include <string.h>

#define DEVICE_NAME_BYTES 32

static const char *const class_names[TANDEM_CLASS_END] = {
#define CLASS_NAME(ID, number, name) [number] = #name,
    TANDEM_CLASSES(CLASS_NAME)
#undef CLASS_NAME
};

static bool waits_for_compiler(const struct tandem_explanation *explanation,
                               double chosen_ns)
{
    for (uint32_t i = 0; i < explanation->candidate_count; i++) {
        const struct tandem_candidate *other = &explanation->candidates[i];

        if (other->status == TANDEM_OK && other->ready == 0 &&
            other->predicted_ns < chosen_ns)
            return true;
    }
    return false;
}

void tally_observe(void *user, const struct tandem_explanation *explanation,
                   bool after)
{
    const struct tandem_op_info *info = tandem_op_by_id(explanation->op);
    struct tally *tally = user;
    struct tally_cell *cell;

    if (!after || info == NULL || info->op_class >= TANDEM_CLASS_END ||
        explanation->chosen >= TANDEM_MAX_DEVICES)
        return;
    cell = &tally->cells[info->op_class][explanation->chosen];
    cell->runs++;
    cell->measured_ns += explanation->measured_ns;
    for (uint32_t i = 0; i < explanation->candidate_count; i++) {
        double predicted_ns = explanation->candidates[i].predicted_ns;

        if (explanation->candidates[i].device != explanation->chosen)
            continue;
        cell->predicted_ns += predicted_ns;
        tally->waiting += explanation->forced == 0 &&
                          waits_for_compiler(explanation, predicted_ns);
    }
}

/* The runs, and means in us. */
static void cell_numbers_print(FILE *out, const struct tally_cell *cell,
                               bool measured)
{
    double runs_us = (double)cell->runs * 1e3;

    fprintf(out, " %9llu", (unsigned long long)cell->runs);
    if (cell->runs == 0)
        fprintf(out, " %10s", "-");
    else
        fprintf(out, " %10.2f", cell->predicted_ns / runs_us);
    if (measured && cell->runs == 0)
        fprintf(out, " %9s", "-");
    else if (measured)
        fprintf(out, " %9.2f", cell->measured_ns / runs_us);
}

/* Writes the name of the device, such as "opencl:0". */
static const char *device_name(struct tandem_context *context, uint32_t device,
                               char name[DEVICE_NAME_BYTES])
{
    const char *backend = "?";
    uint32_t index = 0;

    tandem_device_name(context, device, &backend, &index);
    snprintf(name, DEVICE_NAME_BYTES, "%s:%u", backend, index);
    return name;
}

static void cell_print(FILE *out, struct tandem_context *context,
                       uint32_t op_class, uint32_t device,
                       const struct tally_cell *runs,
                       const struct tally_cell *timed)
{
    char name[DEVICE_NAME_BYTES];

    if (runs->runs == 0 && timed->runs == 0)
        return;
    fprintf(out, "  %-13s %-9s", class_names[op_class],
            device_name(context, device, name));
    cell_numbers_print(out, runs, false);
    cell_numbers_print(out, timed, true);
    fprintf(out, "\n");
}

void tally_print(FILE *out, struct tandem_context *context,
                 const struct tally *runs, const struct tally *timed)
{
    fprintf(out, "  %-23s %20s %30s\n", "", "-- all trainings --",
            "------- timed epoch -------");
    fprintf(out, "  %-13s %-9s %9s %10s %9s %10s %9s\n", "operators", "device",
            "runs", "predicted", "runs", "predicted", "measured");
    for (uint32_t op_class = 1; op_class < TANDEM_CLASS_END; op_class++)
        for (uint32_t device = 0; device < TANDEM_MAX_DEVICES; device++)
            cell_print(out, context, op_class, device,
                       &runs->cells[op_class][device],
                       &timed->cells[op_class][device]);
}

/* Returns the number of operators that the device ran. */
static uint64_t device_runs(const struct tally *runs, uint32_t device)
{
    uint64_t count = 0;

    for (uint32_t op_class = 1; op_class < TANDEM_CLASS_END; op_class++)
        count += runs->cells[op_class][device].runs;
    return count;
}

void tally_summary_print(struct tandem_context *context,
                         const struct tally *runs)
{
    const char *heading = "Chosen";
    uint64_t all = 0;

    for (uint32_t device = 0; device < TANDEM_MAX_DEVICES; device++)
        all += device_runs(runs, device);
    for (uint32_t device = 0; device < TANDEM_MAX_DEVICES; device++) {
        const uint64_t count = device_runs(runs, device);
        char name[DEVICE_NAME_BYTES];

        if (count == 0)
            continue;
        printf("%-11s %s for %.0f %% of the operators\n", heading,
               device_name(context, device, name),
               100.0 * (double)count / (double)all);
        heading = "";
    }
}

bool tally_has_only(struct tandem_context *context, const struct tally *runs,
                    const char *backend)
{
    for (uint32_t device = 0; device < TANDEM_MAX_DEVICES; device++) {
        const char *own = "?";
        uint32_t index;

        if (device_runs(runs, device) == 0)
            continue;
        tandem_device_name(context, device, &own, &index);
        if (strcmp(own, backend) != 0)
            return false;
    }
    return true;
}
