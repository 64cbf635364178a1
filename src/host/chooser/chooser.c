/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Predictions, the choice of a device, and migration credit; see chooser.h.
 * The context's mutex must be held.
 */
#include <config.h>

#include "host/chooser/chooser.h"

#include <math.h>
#include <string.h>

static double positive(double value)
{
    return value > 0 ? value : 0;
}

/* Returns the device with the lowest number in `current` (a mask), from which
 * the content would be downloaded, or NULL. */
static const struct device *holder(const struct tandem_context *context,
                                   uint32_t current)
{
    return current == 0 ? NULL
                        : context->devices[(uint32_t)__builtin_ctz(current)];
}

static bool operand_is_host_accessible(const struct operand *operand,
                                       const struct device *device)
{
    return operand->home >> device->id & 1;
}

/* Returns true if the device has no current copy of the operand. */
static bool operand_away(const struct operand *operand,
                         const struct device *device)
{
    return !(
        operand->current &
        (operand_is_host_accessible(operand, device) ? HOST_BIT : device->bit));
}

/* Returns the predicted time to move one operand to the device.  Adds to
 * *out_wait the devices whose pending work must finish first. */
static double operand_transfer(const struct operand *operand,
                               const struct device *device, uint32_t *out_wait)
{
    const struct tandem_context *context = device->context;
    const bool home = operand_is_host_accessible(operand, device);
    double ns = 0;

    if (!operand_away(operand, device)) {
        if (home)
            *out_wait |= operand->writer & ~(1u << device->id);
        return 0;
    }
    if (operand->current & HOST_BIT) {
        *out_wait |= operand->writer;
    } else {
        const struct device *source = holder(context, operand->current);

        if (source == NULL)
            return 0;
        *out_wait |= 1u << source->id;
        ns = curve_at(&source->cost.curves[COST_DOWNLOAD], operand->bytes);
    }
    if (!home)
        ns += curve_at(&device->cost.curves[COST_UPLOAD], operand->bytes);
    return ns;
}

/* Returns the predicted time to forward an output from `device` to its expected
 * reader.  If that reader is this operator itself, as in an accumulation, the
 * time is 0, because the operator will run where the output is. */
static double operand_onward(const struct query *query,
                             const struct operand *operand,
                             const struct device *device)
{
    const struct tandem_context *context = device->context;
    const struct device *reader;
    double ns = 0;

    if (operand->reader == 0 ||
        (operand->read && operand->reader_op == query->op) ||
        !(context->usable >> (operand->reader - 1) & 1))
        return 0;
    reader = context->devices[operand->reader - 1];
    if (reader == device || (operand_is_host_accessible(operand, reader) &&
                             operand_is_host_accessible(operand, device)))
        return 0;
    if (!operand_is_host_accessible(operand, device) && !operand->expected)
        ns = curve_at(&device->cost.curves[COST_DOWNLOAD], operand->bytes);
    if (!operand_is_host_accessible(operand, reader))
        ns += curve_at(&reader->cost.curves[COST_UPLOAD], operand->bytes);
    return ns;
}

static double wait_predict(const struct tandem_context *context, uint32_t mask)
{
    double longest = 0;

    while (mask != 0) {
        const uint32_t id = (uint32_t)__builtin_ctz(mask);
        const struct device *device = context->devices[id];

        mask &= mask - 1;
        if (device->busy) {
            const double ns = device->cost.scalars[COST_SYNC] +
                              positive(device->busy_until_ns - context->now_ns);

            longest = ns > longest ? ns : longest;
        }
    }
    return longest;
}

static void work_predict(const struct query *query, const struct device *device,
                         double *out_launch_ns, double *out_run_ns)
{
    const struct cost_model *cost = &device->cost;
    const double launch = cost->scalars[COST_LAUNCH];
    double batch = 1, ns;

    if (query->cost_class == TANDEM_COST_GEMM) {
        ns = cost_gemm(cost, query->product[0], query->product[1],
                       query->product[2]);
        batch = query->product[3];
    } else {
        ns = curve_at(&cost->curves[query->cost_class], query->bytes);
    }
    *out_launch_ns = launch < ns ? launch : ns;
    *out_run_ns = (ns - *out_launch_ns) * batch;
}

void chooser_predict_run_cost(const struct query *query,
                              const struct device *device,
                              double *out_launch_ns, double *out_run_ns)
{
    struct work *work = query->work;
    const uint32_t id = device->id;

    if (work == NULL) {
        work_predict(query, device, out_launch_ns, out_run_ns);
        return;
    }
    if (!(work->known >> id & 1)) {
        work_predict(query, device, &work->launch_ns[id],
                     &work->execute_ns[id]);
        work->known |= 1u << id;
    }
    *out_launch_ns = work->launch_ns[id];
    *out_run_ns = work->execute_ns[id];
}

static double return_predict(const struct query *query,
                             const struct device *device)
{
    const struct cost_model *cost = &device->cost;
    double ns = 0;
    bool any = false;

    if (device->shares_host)
        return 0;
    for (uint32_t i = 0; i < query->operand_count; i++) {
        const struct operand *operand = &query->operands[i];

        if (!operand->expected)
            continue;
        any = true;
        if (!operand_is_host_accessible(operand, device))
            ns += curve_at(&cost->curves[COST_DOWNLOAD], operand->bytes);
    }
    return any ? ns + cost->scalars[COST_SYNC] : 0;
}

/* Fills all fields of `out` except launch_ns and execute_ns, which must be
 * valid. `debts` enables the migration credit. */
static void movement_predict(const struct query *query,
                             const struct device *device, bool debts,
                             struct prediction *out)
{
    uint32_t wait = 0;

    out->transfer_ns = 0;
    out->moved_ns = 0;
    out->owed_ns = 0;
    for (uint32_t i = 0; i < query->operand_count; i++) {
        const struct operand *operand = &query->operands[i];
        double ns = 0;

        if (operand->read)
            ns = operand_transfer(operand, device, &wait);
        out->moved_ns += ns;
        ns += operand_onward(query, operand, device);
        if (ns == 0)
            continue;
        out->owed_ns += ns;
        if (debts)
            ns = positive(
                ns - (double)operand->storage->migration_credit_ns[device->id]);
        out->transfer_ns += ns;
    }
    out->wait_ns = wait != 0 ? wait_predict(device->context, wait) : 0;
    out->download_ns = return_predict(query, device);
    out->total_ns = out->wait_ns + out->transfer_ns + out->launch_ns +
                    out->execute_ns + out->download_ns;
}

void chooser_predict(struct record *record, const struct device *device)
{
    struct prediction *out = &record->predictions[device->id];

    chooser_predict_run_cost(&record->query, device, &out->launch_ns,
                             &out->execute_ns);
    movement_predict(&record->query, device, false, out);
    record->predicted |= 1u << device->id;
}

/* Returns true if device `id` with predicted time `ns` beats the best one so
 * far, which may be NULL.  The lower number wins a tie. */
static bool better(double ns, uint32_t id, double best_ns,
                   const struct device *best)
{
    return best == NULL || ns < best_ns || (ns == best_ns && id < best->id);
}

uint32_t chooser_eligible_candidates(const struct tandem_context *context,
                                     uint32_t cost_class, uint32_t candidates)
{
    const uint32_t measured = candidates & context->measured[cost_class];

    return measured == 0 ? candidates
                         : measured | (candidates & context->bounded);
}

struct device *chooser_pick(struct tandem_context *context,
                            struct record *record, uint32_t candidates)
{
    const struct work *work = record->query.work;
    struct device *best = NULL;
    double best_ns = INFINITY;
    uint32_t first = work != NULL && work->last != 0 ? work->last - 1 : 0;

    candidates &= ~(record->failed | record->unready);
    candidates = chooser_eligible_candidates(context, record->query.cost_class,
                                             candidates);
    while (candidates != 0) {
        /* The last winner goes first, so that most other devices lose by
         * their launch and run times alone. */
        const uint32_t id = candidates >> first & 1
                                ? first
                                : (uint32_t)__builtin_ctz(candidates);
        struct device *device = context->devices[id];
        struct prediction *out = &record->predictions[id];

        candidates &= ~(1u << id);
        if (!(record->predicted >> id & 1)) {
            chooser_predict_run_cost(&record->query, device, &out->launch_ns,
                                     &out->execute_ns);
            if (!better(out->launch_ns + out->execute_ns, id, best_ns, best))
                continue;
            movement_predict(&record->query, device, !context->deterministic,
                             out);
            record->predicted |= 1u << id;
        }
        if (better(out->total_ns, id, best_ns, best)) {
            best = device;
            best_ns = out->total_ns;
        }
    }
    return best;
}

/* ---- after the launch ---- */

/* Adds migration credit if the device lost only because of transfers. */
static void debts_add(struct record *record, const struct device *device,
                      double chosen_ns)
{
    const struct prediction *prediction = &record->predictions[device->id];
    const double saving =
        chosen_ns - (prediction->total_ns - prediction->transfer_ns);

    if (saving <= 0 || prediction->owed_ns <= 0)
        return;
    for (uint32_t i = 0; i < record->query.operand_count; i++) {
        const struct operand *operand = &record->query.operands[i];
        struct storage *storage = operand->storage;
        uint32_t wait = 0;
        double ns = operand_onward(&record->query, operand, device), debt;

        if (operand->read)
            ns += operand_transfer(operand, device, &wait);
        if (ns <= 0)
            continue;
        debt = (double)storage->migration_credit_ns[device->id] +
               ldexp(saving * ns / prediction->owed_ns, -storage->backoff);
        storage->migration_credit_ns[device->id] =
            (float)(debt < ns ? debt : ns);
    }
}

/* Returns the predicted time of an operator whose inputs are all resident. */
static double resident_ns(const struct prediction *prediction)
{
    return prediction->launch_ns + prediction->execute_ns +
           prediction->download_ns + prediction->owed_ns - prediction->moved_ns;
}

/* Returns the time saved compared with the best other device if the inputs are
 * resident on both. */
static double gain_find(struct record *record, const struct device *device)
{
    const struct tandem_context *context = device->context;
    const uint32_t rivals = chooser_eligible_candidates(
        context, record->query.cost_class, context->usable & ~record->failed);
    double best = INFINITY;

    for (uint32_t i = 0; i < context->device_count; i++) {
        if (i == device->id || !(rivals >> i & 1))
            continue;
        if (!(record->predicted >> i & 1))
            chooser_predict(record, context->devices[i]);
        best = fmin(best, resident_ns(&record->predictions[i]));
    }
    if (!isfinite(best))
        return 0;
    return positive(best - resident_ns(&record->predictions[device->id]));
}

/* Records the moves that this launch makes on credit, and distributes the time
 * that it saves among all storages moved on credit. */
static void moves_book(struct record *record, const struct device *device)
{
    const struct query *query = &record->query;
    const uint32_t bit = 1u << device->id;
    uint32_t count = 0;
    double gain;

    for (uint32_t i = 0; i < query->operand_count; i++) {
        const struct operand *operand = &query->operands[i];
        struct storage *storage = operand->storage;
        uint32_t wait = 0;

        if (operand->read && operand_away(operand, device) &&
            storage->migration_credit_ns[device->id] > 0) {
            storage->moved |= bit;
            storage->migration_cost_ns =
                (float)operand_transfer(operand, device, &wait);
            storage->migration_saved_ns = 0;
        }
        storage->migration_credit_ns[device->id] = 0;
        count += operand->read && (storage->moved & bit);
    }
    if (count == 0)
        return;
    gain = gain_find(record, device) / count;
    for (uint32_t i = 0; i < query->operand_count; i++) {
        const struct operand *operand = &query->operands[i];

        if (operand->read && (operand->storage->moved & bit))
            operand->storage->migration_saved_ns += (float)gain;
    }
}

static void time_book(const struct prediction *prediction,
                      struct device *device)
{
    struct tandem_context *context = device->context;

    context->now_ns +=
        prediction->wait_ns + prediction->moved_ns + prediction->launch_ns;
    if (!device->async) {
        context->now_ns += prediction->execute_ns;
        return;
    }
    if (device->busy_until_ns < context->now_ns)
        device->busy_until_ns = context->now_ns;
    device->busy_until_ns += prediction->execute_ns;
    device->busy = true;
}

void chooser_launched(struct record *record, struct device *device)
{
    struct tandem_context *context = device->context;
    const struct prediction *chosen = &record->predictions[device->id];
    uint32_t losers = record->predicted & ~(1u << device->id);

    if (record->query.work != NULL)
        record->query.work->last = device->id + 1;
    if (!context->deterministic) {
        losers &= chooser_eligible_candidates(
            context, record->query.cost_class,
            context->usable & ~(record->failed | record->unready));
        while (losers != 0 && !record->forced) {
            const struct device *loser =
                context->devices[(uint32_t)__builtin_ctz(losers)];

            losers &= losers - 1;
            debts_add(record, loser, chosen->total_ns);
        }
        moves_book(record, device);
    }
    time_book(chosen, device);
}
