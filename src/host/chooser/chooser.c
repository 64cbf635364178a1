/* SPDX-License-Identifier: Apache-2.0 */
/* Predicts times of operators, chooses devices and updates migration credits;
 * see chooser.h. */
#include <config.h>

#include "host/chooser/chooser.h"

#include <math.h>

static double clamp_negative(double value)
{
    return value > 0 ? value : 0;
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

/* Returns the predicted time to move an operand to the device.  A current copy
 * of the operand must exist.  Adds to the mask *out_wait the devices whose
 * pending work must finish before the move. */
static double operand_transfer_ns(const struct operand *operand,
                                  const struct device *device,
                                  uint32_t *out_wait)
{
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
        /* Assume that the first device with a current copy is the source. */
        const uint32_t id = (uint32_t)__builtin_ctz(operand->current);
        const struct device *source = device->context->devices[id];

        *out_wait |= 1u << id;
        ns = cost_curve_predict(&source->cost.curves[COST_DOWNLOAD],
                                operand->bytes);
    }
    if (!accessible)
        ns += cost_curve_predict(&device->cost.curves[COST_UPLOAD],
                                 operand->bytes);
    return ns;
}

/* Returns the predicted time to move an output from `device` to the device that
 * will probably read it next.  Returns 0 if the same operator will read it, as
 * in an accumulation, because that operator will run where the output is. */
static double operand_forwarding_ns(const struct placement_request *request,
                                    const struct operand *operand,
                                    const struct device *device)
{
    const struct tandem_context *context = device->context;
    const struct device *reader;
    double ns = 0;

    if (operand->next_reader == 0 ||
        (operand->read && operand->next_reader_op == request->workload.op) ||
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

    for (; mask != 0; mask &= mask - 1) {
        const struct device *device =
            context->devices[(uint32_t)__builtin_ctz(mask)];

        if (device->busy) {
            const double ns = device->cost.scalars[COST_SYNC] +
                              clamp_negative(device->predicted_busy_until_ns -
                                             context->predicted_now_ns);

            longest = ns > longest ? ns : longest;
        }
    }
    return longest;
}

static struct run_time run_time_predict(const struct workload *workload,
                                        const struct cost_model *cost)
{
    const double launch = cost->scalars[COST_LAUNCH];
    const double *gemm = workload->gemm_size;
    struct run_time time;
    double batch = 1, ns;

    if (workload->cost_class == TANDEM_COST_GEMM) {
        ns = cost_predict_gemm(cost, gemm[0], gemm[1], gemm[2]);
        batch = gemm[3];
    } else {
        ns = cost_curve_predict(&cost->curves[workload->cost_class],
                                workload->bytes);
    }
    time.launch_ns = launch < ns ? launch : ns;
    time.execute_ns = (ns - time.launch_ns) * batch;
    return time;
}

struct run_time chooser_predict_run_time(const struct workload *workload,
                                         struct run_cost *cache,
                                         const struct device *device)
{
    struct cached_run_time *cached;
    struct run_time time;

    if (cache == NULL)
        return run_time_predict(workload, &device->cost);
    cached = &cache->times[device->id];
    if (cache->known >> device->id & 1)
        return (struct run_time){cached->launch_ns, cached->execute_ns};
    time = run_time_predict(workload, &device->cost);
    cached->launch_ns = time.launch_ns;
    cached->execute_ns = time.execute_ns;
    cache->known |= 1u << device->id;
    return time;
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

/* Fills in all predicted times in `out` except out->run, which the caller has
 * set.  If use_credit is true, subtracts the storages' migration credit from
 * the transfer times. */
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
    out->total_ns = out->wait_ns + out->transfer_ns + out->run.launch_ns +
                    out->run.execute_ns + out->download_ns;
}

void chooser_predict(struct placement_decision *decision,
                     const struct device *device)
{
    struct placement_request *request = &decision->request;
    struct prediction *out = &decision->predictions[device->id];

    out->run =
        chooser_predict_run_time(&request->workload, request->run_cost, device);
    transfers_predict(request, device, false, out);
    decision->predicted |= 1u << device->id;
}

/* Returns true if `best` is NULL or if device number `id`, with predicted time
 * `ns`, is faster than `best`.  If times are equal, the lower number wins. */
static bool is_faster(double ns, uint32_t id, double best_ns,
                      const struct device *best)
{
    return best == NULL || ns < best_ns || (ns == best_ns && id < best->id);
}

uint32_t chooser_eligible_candidates(const struct tandem_context *context,
                                     uint32_t cost_class, uint32_t candidates)
{
    const uint32_t measured = candidates & context->calibrated[cost_class];
    const uint32_t cpus = context->default_costs_are_upper_bound;

    if (measured == 0)
        return candidates;
    /* A GPU's default costs are high enough to compete with a measured CPU, but
     * a guess must not win against a measured GPU. */
    if ((measured & context->gpus) == 0)
        return measured | (candidates & (cpus | context->gpus));
    return measured | (candidates & cpus);
}

struct device *chooser_pick(struct tandem_context *context,
                            struct placement_decision *decision,
                            uint32_t candidates)
{
    const struct placement_request *request = &decision->request;
    struct run_cost *run_cost = request->run_cost;
    struct device *best = NULL;
    double best_ns = INFINITY;
    uint32_t first =
        run_cost != NULL && run_cost->last != 0 ? run_cost->last - 1 : 0;

    candidates &= ~(decision->failed | decision->must_compile);
    candidates = chooser_eligible_candidates(
        context, request->workload.cost_class, candidates);
    while (candidates != 0) {
        /* Start with the device that ran the call last.  For most other
         * devices, the launch and run alone take longer, so that their
         * transfers need not be predicted. */
        const uint32_t id = candidates >> first & 1
                                ? first
                                : (uint32_t)__builtin_ctz(candidates);
        struct device *device = context->devices[id];
        struct prediction *out = &decision->predictions[id];

        candidates &= ~(1u << id);
        if (!(decision->predicted >> id & 1)) {
            out->run =
                chooser_predict_run_time(&request->workload, run_cost, device);
            if (!is_faster(out->run.launch_ns + out->run.execute_ns, id,
                           best_ns, best))
                continue;
            transfers_predict(request, device, !context->deterministic, out);
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

/* Adds migration credit for `device` to the call's storages if `device`,
 * without its transfers, would have been faster than the chosen device. */
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
    return prediction->run.launch_ns + prediction->run.execute_ns +
           prediction->download_ns + prediction->full_transfer_ns -
           prediction->input_transfer_ns;
}

/* Returns the time in ns that `device` saves compared with the fastest other
 * device if all inputs are on both devices, or 0 if `device` is slower. */
static double migration_saving_ns(struct placement_decision *decision,
                                  const struct device *device)
{
    const struct tandem_context *context = device->context;
    const uint32_t eligible = chooser_eligible_candidates(
        context, decision->request.workload.cost_class,
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

/* Records which storages this launch moves to the device because of migration
 * credit.  Divides the time that the launch saves equally among all inputs that
 * are on the device because of migration credit. */
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
        if (storage->migration_credit_ns[device->id] != 0)
            storage->migration_credit_ns[device->id] = 0;
        count += operand->read && (storage->migrated_to & bit);
    }
    if (count == 0)
        return;
    gain = migration_saving_ns(decision, device) / count;
    for (uint32_t i = 0; i < request->operand_count; i++) {
        const struct operand *operand = &request->operands[i];

        if (operand->read && (operand->storage->migrated_to & bit))
            operand->storage->migration_saved_ns =
                operand->storage->migration_saved_ns + (float)gain;
    }
}

static void virtual_clock_advance(const struct prediction *prediction,
                                  struct device *device)
{
    struct tandem_context *context = device->context;
    double ns = prediction->wait_ns + prediction->input_transfer_ns +
                prediction->run.launch_ns;

    if (!device->async)
        ns += prediction->run.execute_ns;
    virtual_clock_add(context, ns);
    if (device->async)
        device->predicted_busy_until_ns =
            fmax(device->predicted_busy_until_ns, context->predicted_now_ns) +
            prediction->run.execute_ns;
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
            context, decision->request.workload.cost_class,
            context->usable & ~(decision->failed | decision->must_compile));
        for (; slower != 0 && !decision->forced; slower &= slower - 1)
            migration_credit_add(
                decision, context->devices[(uint32_t)__builtin_ctz(slower)],
                chosen->total_ns);
        migrations_record(decision, device);
    }
    virtual_clock_advance(chosen, device);
}
