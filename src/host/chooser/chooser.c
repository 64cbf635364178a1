/* SPDX-License-Identifier: Apache-2.0 */
/* Predicts times of operators, chooses devices and updates migration credits;
 * see chooser.h.  The context's mutex must be held. */
#include <config.h>

#include "host/chooser/chooser.h"

#include <math.h>

static double clamp_negative(double value)
{
    return value > 0 ? value : 0;
}

/* Returns the first device of the mask `current`, or NULL if it is empty.
 * Downloads use the first device that has a current copy. */
static const struct device *current_device(const struct tandem_context *context,
                                           uint32_t current)
{
    return current == 0 ? NULL
                        : context->devices[(uint32_t)__builtin_ctz(current)];
}

static bool operand_is_host_accessible(const struct operand *operand,
                                       const struct device *device)
{
    return operand->host_accessible >> device->id & 1;
}

static bool operand_is_resident(const struct operand *operand,
                                const struct device *device)
{
    return operand->current &
           (operand_is_host_accessible(operand, device) ? HOST_BIT
                                                        : device->bit);
}

/* Returns the predicted time to move one operand to the device.  Adds to the
 * mask *out_wait the devices whose pending work must finish first. */
static double operand_transfer_ns(const struct operand *operand,
                                  const struct device *device,
                                  uint32_t *out_wait)
{
    const struct tandem_context *context = device->context;
    const bool accessible = operand_is_host_accessible(operand, device);
    double ns = 0;

    if (operand_is_resident(operand, device)) {
        if (accessible)
            *out_wait |= operand->host_writers & ~(1u << device->id);
        return 0;
    }
    if (operand->current & HOST_BIT) {
        *out_wait |= operand->host_writers;
    } else {
        const struct device *source = current_device(context, operand->current);

        if (source == NULL)
            return 0;
        *out_wait |= 1u << source->id;
        ns = cost_curve_predict(&source->cost.curves[COST_DOWNLOAD],
                                operand->bytes);
    }
    if (!accessible)
        ns += cost_curve_predict(&device->cost.curves[COST_UPLOAD],
                                 operand->bytes);
    return ns;
}

/* Returns the predicted time to move an output from `device` to the device that
 * will probably read it next.  Returns 0 if the operator itself is that reader,
 * as in an accumulation, because it will run where the output is. */
static double operand_forwarding_ns(const struct placement_request *request,
                                    const struct operand *operand,
                                    const struct device *device)
{
    const struct tandem_context *context = device->context;
    const struct device *reader;
    double ns = 0;

    if (operand->next_reader == 0 ||
        (operand->read && operand->next_reader_op == request->op) ||
        !(context->usable >> (operand->next_reader - 1) & 1))
        return 0;
    reader = context->devices[operand->next_reader - 1];
    if (reader == device || (operand_is_host_accessible(operand, reader) &&
                             operand_is_host_accessible(operand, device)))
        return 0;
    if (!operand_is_host_accessible(operand, device) &&
        !operand->host_read_expected)
        ns = cost_curve_predict(&device->cost.curves[COST_DOWNLOAD],
                                operand->bytes);
    if (!operand_is_host_accessible(operand, reader))
        ns += cost_curve_predict(&reader->cost.curves[COST_UPLOAD],
                                 operand->bytes);
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
                              clamp_negative(device->predicted_busy_until_ns -
                                             context->predicted_now_ns);

            longest = ns > longest ? ns : longest;
        }
    }
    return longest;
}

static void run_cost_predict(const struct placement_request *request,
                             const struct device *device, double *out_launch_ns,
                             double *out_run_ns)
{
    const struct cost_model *cost = &device->cost;
    const double launch = cost->scalars[COST_LAUNCH];
    double batch = 1, ns;

    if (request->cost_class == TANDEM_COST_GEMM) {
        ns = cost_predict_gemm(cost, request->gemm_size[0],
                               request->gemm_size[1], request->gemm_size[2]);
        batch = request->gemm_size[3];
    } else {
        ns = cost_curve_predict(&cost->curves[request->cost_class],
                                request->bytes);
    }
    *out_launch_ns = launch < ns ? launch : ns;
    *out_run_ns = (ns - *out_launch_ns) * batch;
}

void chooser_predict_run_cost(const struct placement_request *request,
                              const struct device *device,
                              double *out_launch_ns, double *out_run_ns)
{
    struct run_cost *run_cost = request->run_cost;
    const uint32_t id = device->id;

    if (run_cost == NULL) {
        run_cost_predict(request, device, out_launch_ns, out_run_ns);
        return;
    }
    if (!(run_cost->known >> id & 1)) {
        run_cost_predict(request, device, &run_cost->launch_ns[id],
                         &run_cost->execute_ns[id]);
        run_cost->known |= 1u << id;
    }
    *out_launch_ns = run_cost->launch_ns[id];
    *out_run_ns = run_cost->execute_ns[id];
}

static double download_predict(const struct placement_request *request,
                               const struct device *device)
{
    const struct cost_model *cost = &device->cost;
    double ns = 0;
    bool any = false;

    if (device->is_zero_copy)
        return 0;
    for (uint32_t i = 0; i < request->operand_count; i++) {
        const struct operand *operand = &request->operands[i];

        if (!operand->host_read_expected)
            continue;
        any = true;
        if (!operand_is_host_accessible(operand, device))
            ns += cost_curve_predict(&cost->curves[COST_DOWNLOAD],
                                     operand->bytes);
    }
    return any ? ns + cost->scalars[COST_SYNC] : 0;
}

/* Fills in all predicted times in `out` but launch_ns and execute_ns, which the
 * caller has set.  Subtracts migration credit if use_credit is true. */
static void transfers_predict(const struct placement_request *request,
                              const struct device *device, bool use_credit,
                              struct prediction *out)
{
    uint32_t wait = 0;

    out->transfer_ns = 0;
    out->input_transfer_ns = 0;
    out->full_transfer_ns = 0;
    for (uint32_t i = 0; i < request->operand_count; i++) {
        const struct operand *operand = &request->operands[i];
        double ns = 0;

        if (operand->read)
            ns = operand_transfer_ns(operand, device, &wait);
        out->input_transfer_ns += ns;
        ns += operand_forwarding_ns(request, operand, device);
        if (ns == 0)
            continue;
        out->full_transfer_ns += ns;
        if (use_credit)
            ns = clamp_negative(
                ns - (double)operand->storage->migration_credit_ns[device->id]);
        out->transfer_ns += ns;
    }
    out->wait_ns = wait != 0 ? wait_predict(device->context, wait) : 0;
    out->download_ns = download_predict(request, device);
    out->total_ns = out->wait_ns + out->transfer_ns + out->launch_ns +
                    out->execute_ns + out->download_ns;
}

void chooser_predict(struct placement_decision *decision,
                     const struct device *device)
{
    struct prediction *out = &decision->predictions[device->id];

    chooser_predict_run_cost(&decision->request, device, &out->launch_ns,
                             &out->execute_ns);
    transfers_predict(&decision->request, device, false, out);
    decision->predicted |= 1u << device->id;
}

/* Returns true if device number `id`, with predicted time `ns`, is faster than
 * `best`, or if `best` is NULL.  The lower device number wins a tie. */
static bool is_faster(double ns, uint32_t id, double best_ns,
                      const struct device *best)
{
    return best == NULL || ns < best_ns || (ns == best_ns && id < best->id);
}

uint32_t chooser_eligible_candidates(const struct tandem_context *context,
                                     uint32_t cost_class, uint32_t candidates)
{
    const uint32_t measured = candidates & context->calibrated[cost_class];

    return measured == 0 ? candidates
                         : measured | (candidates &
                                       context->default_costs_are_upper_bound);
}

struct device *chooser_pick(struct tandem_context *context,
                            struct placement_decision *decision,
                            uint32_t candidates)
{
    const struct run_cost *run_cost = decision->request.run_cost;
    struct device *best = NULL;
    double best_ns = INFINITY;
    uint32_t first =
        run_cost != NULL && run_cost->last != 0 ? run_cost->last - 1 : 0;

    candidates &= ~(decision->failed | decision->must_compile);
    candidates = chooser_eligible_candidates(
        context, decision->request.cost_class, candidates);
    while (candidates != 0) {
        /* Start with the device chosen last time: most other devices are slower
         * even without transfers, so their transfers need not be predicted. */
        const uint32_t id = candidates >> first & 1
                                ? first
                                : (uint32_t)__builtin_ctz(candidates);
        struct device *device = context->devices[id];
        struct prediction *out = &decision->predictions[id];

        candidates &= ~(1u << id);
        if (!(decision->predicted >> id & 1)) {
            chooser_predict_run_cost(&decision->request, device,
                                     &out->launch_ns, &out->execute_ns);
            if (!is_faster(out->launch_ns + out->execute_ns, id, best_ns, best))
                continue;
            transfers_predict(&decision->request, device,
                              !context->deterministic, out);
            decision->predicted |= 1u << id;
        }
        if (is_faster(out->total_ns, id, best_ns, best)) {
            best = device;
            best_ns = out->total_ns;
        }
    }
    return best;
}

/* ---- after the launch ---- */

/* Adds migration credit for `device` to the call's storages if `device` would
 * have been faster than the chosen device without transfers. */
static void migration_credit_add(struct placement_decision *decision,
                                 const struct device *device, double chosen_ns)
{
    const struct prediction *prediction = &decision->predictions[device->id];
    const double saving =
        chosen_ns - (prediction->total_ns - prediction->transfer_ns);

    if (saving <= 0 || prediction->full_transfer_ns <= 0)
        return;
    for (uint32_t i = 0; i < decision->request.operand_count; i++) {
        const struct operand *operand = &decision->request.operands[i];
        struct storage *storage = operand->storage;
        uint32_t wait = 0;
        double ns = operand_forwarding_ns(&decision->request, operand, device),
               credit;

        if (operand->read)
            ns += operand_transfer_ns(operand, device, &wait);
        if (ns <= 0)
            continue;
        credit = (double)storage->migration_credit_ns[device->id] +
                 ldexp(saving * ns / prediction->full_transfer_ns,
                       -storage->credit_halvings);
        storage->migration_credit_ns[device->id] =
            (float)(credit < ns ? credit : ns);
    }
}

/* Returns the predicted time of the call if all inputs were on the device. */
static double resident_ns(const struct prediction *prediction)
{
    return prediction->launch_ns + prediction->execute_ns +
           prediction->download_ns + prediction->full_transfer_ns -
           prediction->input_transfer_ns;
}

/* Returns the time that the call saves by running on `device` instead of the
 * fastest other device, if the inputs were already on both devices. */
static double migration_saving_ns(struct placement_decision *decision,
                                  const struct device *device)
{
    const struct tandem_context *context = device->context;
    const uint32_t eligible =
        chooser_eligible_candidates(context, decision->request.cost_class,
                                    context->usable & ~decision->failed);
    double best = INFINITY;

    for (uint32_t i = 0; i < context->device_count; i++) {
        if (i == device->id || !(eligible >> i & 1))
            continue;
        if (!(decision->predicted >> i & 1))
            chooser_predict(decision, context->devices[i]);
        best = fmin(best, resident_ns(&decision->predictions[i]));
    }
    if (!isfinite(best))
        return 0;
    return clamp_negative(best -
                          resident_ns(&decision->predictions[device->id]));
}

/* Records which storages this launch moves to the device due to their credit.
 * Divides the time that the launch saves among all inputs moved that way. */
static void migrations_record(struct placement_decision *decision,
                              const struct device *device)
{
    const struct placement_request *request = &decision->request;
    const uint32_t bit = 1u << device->id;
    uint32_t count = 0;
    double gain;

    for (uint32_t i = 0; i < request->operand_count; i++) {
        const struct operand *operand = &request->operands[i];
        struct storage *storage = operand->storage;
        uint32_t wait = 0;

        if (operand->read && !operand_is_resident(operand, device) &&
            storage->migration_credit_ns[device->id] > 0) {
            storage->migrated_to |= bit;
            storage->migration_cost_ns =
                (float)operand_transfer_ns(operand, device, &wait);
            storage->migration_saved_ns = 0;
        }
        storage->migration_credit_ns[device->id] = 0;
        count += operand->read && (storage->migrated_to & bit);
    }
    if (count == 0)
        return;
    gain = migration_saving_ns(decision, device) / count;
    for (uint32_t i = 0; i < request->operand_count; i++) {
        const struct operand *operand = &request->operands[i];

        if (operand->read && (operand->storage->migrated_to & bit))
            operand->storage->migration_saved_ns += (float)gain;
    }
}

static void virtual_clock_advance(const struct prediction *prediction,
                                  struct device *device)
{
    struct tandem_context *context = device->context;

    context->predicted_now_ns += prediction->wait_ns +
                                 prediction->input_transfer_ns +
                                 prediction->launch_ns;
    if (!device->async) {
        context->predicted_now_ns += prediction->execute_ns;
        return;
    }
    if (device->predicted_busy_until_ns < context->predicted_now_ns)
        device->predicted_busy_until_ns = context->predicted_now_ns;
    device->predicted_busy_until_ns += prediction->execute_ns;
    device->busy = true;
}

void chooser_note_launch(struct placement_decision *decision,
                         struct device *device)
{
    struct tandem_context *context = device->context;
    const struct prediction *chosen = &decision->predictions[device->id];
    uint32_t slower = decision->predicted & ~(1u << device->id);

    if (decision->request.run_cost != NULL)
        decision->request.run_cost->last = device->id + 1;
    if (!context->deterministic) {
        slower &= chooser_eligible_candidates(
            context, decision->request.cost_class,
            context->usable & ~(decision->failed | decision->must_compile));
        while (slower != 0 && !decision->forced) {
            const struct device *other =
                context->devices[(uint32_t)__builtin_ctz(slower)];

            slower &= slower - 1;
            migration_credit_add(decision, other, chosen->total_ns);
        }
        migrations_record(decision, device);
    }
    virtual_clock_advance(chosen, device);
}
