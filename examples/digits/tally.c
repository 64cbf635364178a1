/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Counts what the chooser did.  Owns nothing.  Used by the thread that runs
 * the operators.
 */
#include "tally.h"

#include <stdio.h>

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
static void cell_numbers_print(const struct tally_cell *cell, bool measured)
{
    double runs_us = (double)cell->runs * 1e3;

    printf(" %9llu", (unsigned long long)cell->runs);
    if (cell->runs == 0)
        printf(" %10s", "-");
    else
        printf(" %10.2f", cell->predicted_ns / runs_us);
    if (measured && cell->runs == 0)
        printf(" %9s", "-");
    else if (measured)
        printf(" %9.2f", cell->measured_ns / runs_us);
}

static void cell_print(struct tandem_context *context, uint32_t op_class,
                       uint32_t device, const struct tally_cell *runs,
                       const struct tally_cell *timed)
{
    const char *backend = "?";
    uint32_t index = 0;
    char name[32];

    if (runs->runs == 0 && timed->runs == 0)
        return;
    tandem_device_name(context, device, &backend, &index);
    snprintf(name, sizeof(name), "%s:%u", backend, index);
    printf("  %-13s %-9s", class_names[op_class], name);
    cell_numbers_print(runs, false);
    cell_numbers_print(timed, true);
    printf("\n");
}

void tally_print(struct tandem_context *context, const struct tally *runs,
                 const struct tally *timed)
{
    printf("  %-23s %20s %30s\n", "", "-- all trainings --",
           "------- timed epoch -------");
    printf("  %-13s %-9s %9s %10s %9s %10s %9s\n", "operators", "device",
           "runs", "predicted", "runs", "predicted", "measured");
    for (uint32_t op_class = 1; op_class < TANDEM_CLASS_END; op_class++)
        for (uint32_t device = 0; device < TANDEM_MAX_DEVICES; device++)
            cell_print(context, op_class, device,
                       &runs->cells[op_class][device],
                       &timed->cells[op_class][device]);
}
