/* SPDX-License-Identifier: Apache-2.0 */
/* The chooser predicts the time of an operator on each candidate device and
 * picks the fastest one.  Unless a comment says otherwise, the storages of the
 * operands must be locked, perhaps shared.
 *
 *     predicted = wait + transfer + launch + run + download
 *
 *   wait      time until other devices have finished the pending work that the
 *             inputs need, plus the time of a sync; 0 without pending work
 *   transfer  time to move inputs to the candidate and outputs to the expected
 *             next reader, minus the migration credit.  The expected reader is
 *             the device that was the first to read the last result in the same
 *             storage, because programs repeat themselves
 *   launch    measured time of a launch on the candidate, but at most the time
 *             that the cost model predicts for the operator
 *   run       time that the cost model predicts for the operator, minus
 *             `launch`, which is part of the model's measured times
 *   download  time to download outputs that the caller is expected to read on
 *             the host (storage_read_expected), plus the time of a sync
 *
 * The clock is virtual, so that the same calls always lead to the same choices.
 * Each operator advances context->predicted_now_ns by the predicted time that
 * the caller spends in the call.
 *
 * Migration credit: one operator rarely saves enough time to pay for the move
 * of its weights to a GPU.  If only the transfer time keeps a device from being
 * chosen, the time that the device would have saved is added to the credit for
 * this device (migration_credit_ns) of the storages to be moved, in proportion
 * to their transfer times.  Later predictions subtract the credit from the
 * transfer time, down to 0.
 *
 * A storage therefore moves (migrates) when staying has cost as much as the
 * move.  By this ski-rental rule, the total cost is at most twice the optimum
 * in hindsight.  If a write makes the moved copy stale before the migration has
 * saved as much time as it cost, credit_halvings of the storage increases by 1,
 * which halves its later credits.  A migration that pays off resets it to 0.
 * A write by the host clears the credit.
 *
 * Deterministic contexts use no credit and do not learn who reads results. */
#ifndef TANDEM_HOST_CHOOSER_CHOOSER_H
#define TANDEM_HOST_CHOOSER_CHOOSER_H

#include "host/tensor/storage.h"

/* A storage that an operator uses, and its state before the operator runs. */
struct operand {
    struct storage *storage; /* not owned; can be freed after the call */
    double bytes;
    /* The next fields are masks of devices; bit d stands for device d. */
    uint32_t current; /* devices with a current copy; HOST_BIT: the host */
    uint32_t host_accessible; /* devices that access the host copy in place */
    uint32_t host_writers;    /* devices that may be writing the host copy */
    bool read;                /* the operator needs the storage's old content */
    bool written;
    bool partial; /* the operator overwrites only a part of the storage */
    /* For an output: number plus 1 of the device that is expected to read it
     * next (0 means unknown), and the operator (enum tandem_op_id) that is
     * expected to read it on that device. */
    uint8_t next_reader, next_reader_op;
    bool host_read_expected; /* the caller will probably read this output */
};

/* The operator and the amount of work of a call. */
struct workload {
    uint32_t op;
    uint32_t cost_class;
    double elements;     /* number of elements of the largest operand */
    double bytes;        /* total bytes that the call reads and writes */
    double gemm_size[4]; /* m, n, k, batch size (TANDEM_COST_GEMM only) */
};

/* Predicted time of a launch and of the run that follows it. */
struct run_time {
    double launch_ns, execute_ns;
};

struct cached_run_time {
    _Atomic double launch_ns, execute_ns;
};

/* Cached predictions of a call's launch and run times on each device. */
struct run_cost {
    _Atomic uint32_t known; /* bit d is set if times[d] is valid */
    _Atomic uint32_t last;  /* 1 + number of the device chosen last, or 0 */
    struct cached_run_time times[TANDEM_MAX_DEVICES];
};

/* A request to choose a device for an operator call. */
struct placement_request {
    struct workload workload;
    struct run_cost *run_cost; /* cached predictions, not owned, or NULL */
    /* Mask of the operands whose storages are not shared; see placement.h. */
    uint32_t alone;
    uint32_t operand_count;
    struct operand operands[2 * TANDEM_MAX_OPERANDS];
};

/* Predicted times of a call on one device. */
struct prediction {
    struct run_time run;
    double wait_ns, transfer_ns, download_ns, total_ns;
    double full_transfer_ns;  /* transfer_ns without migration credit */
    double input_transfer_ns; /* transfer time of inputs, without credit */
};

/* The last placement decision of a thread, for tandem_explain_last. */
struct placement_decision {
    uint32_t serial; /* context->serial, or 0 if the call failed */
    uint32_t chosen;
    bool forced;        /* the caller or the context required `chosen` */
    double measured_ns; /* measured time of the call; 0 if not measured */
    /* Predicted time of calls that the virtual clock does not include yet. */
    double unclocked_ns;
    uint32_t predicted;    /* bit d is set if predictions[d] is valid */
    uint32_t failed;       /* bit d is set if device d failed with status[d] */
    uint32_t must_compile; /* bit d is set if device d must compile first */
    uint8_t status[TANDEM_MAX_DEVICES];
    struct placement_request request;
    struct prediction predictions[TANDEM_MAX_DEVICES];
};

/* Predicts only the launch and run times of a call on one device.  Reads and
 * updates `cache`, which may be NULL. */
struct run_time chooser_predict_run_time(const struct workload *workload,
                                         struct run_cost *cache,
                                         const struct device *device);

/* Predicts all times of the call on one device and stores them in
 * decision->predictions.  Ignores migration credit, because it is stored in the
 * operands' storages, which may already be freed. */
void chooser_predict(struct placement_decision *decision,
                     const struct device *device);

/* Returns the devices in the mask `candidates` that may run operators of a cost
 * class.  If some have measured costs for the class, removes the others, except
 * the CPU plugin's devices, whose default costs are never too low, and except
 * GPUs if no GPU has measured costs. */
uint32_t chooser_eligible_candidates(const struct tandem_context *context,
                                     uint32_t cost_class, uint32_t candidates);

/* Returns the device in the mask `candidates` with the shortest predicted time,
 * or NULL if no device is eligible.  Ignores devices that failed the call or
 * must compile code first.  If times are equal, the lowest device number wins.
 * Predicts no transfers for devices whose launch and run alone are too slow. */
struct device *chooser_pick(struct tandem_context *context,
                            struct placement_decision *decision,
                            uint32_t candidates);

/* Updates the operands' migration credits and migration records, and the
 * context's virtual clock, after a launch on `device`. */
void chooser_note_launch(struct placement_decision *decision,
                         struct device *device);

#endif
