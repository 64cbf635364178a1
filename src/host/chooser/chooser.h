/* SPDX-License-Identifier: Apache-2.0 */
/* The chooser predicts the time of an operator on each candidate device and
 * picks the fastest one.  The context's mutex must be held for all functions.
 *
 *     predicted = wait + transfer + launch + run + download
 *
 *   wait      time until the devices that hold inputs have finished their
 *             pending work, and their sync cost, if inputs must be moved
 *   transfer  time to move the inputs that are not on the candidate, and to
 *             forward the outputs to the device that was the first to read the
 *             last result in the same memory (programs repeat themselves),
 *             minus the migration credit
 *   launch    the launch cost of the candidate, but not more than the value of
 *             the cost curve that `run` is taken from
 *   run       the cost curve of the cost class at the bytes read and written,
 *             or the GEMM cost grid, minus the launch.  The curves were
 *             measured over many launches and include the launch cost
 *   download  time of a sync and of the downloads of outputs that the caller
 *             is expected to read on the host (storage_read_expected)
 *
 * The clock is virtual: each operator advances predicted_now_ns of the context
 * by the predicted time that the caller spends in the call, and each device has
 * a predicted_busy_until_ns on this clock.  No real clock is read, so the same
 * calls always lead to the same choices.
 *
 * Migration credit: a greedy choice would never move weights to a GPU, because
 * one operator rarely pays for the move.  Whenever a device loses only because
 * of transfers, the time that it would have saved is credited to the storages
 * to be moved, as migration_credit_ns of that device.  The credit is divided in
 * proportion to the transfer costs, is never more than the transfer cost, and
 * lowers the transfer time in later predictions.  A storage therefore moves
 * when staying has cost as much as the move.  This is the ski-rental rule: the
 * total is at most twice the optimum in hindsight.  A copy that was moved on
 * credit is tracked until it becomes stale.  If it saved less than the move
 * cost, later credits of the storage are halved, cumulatively; otherwise they
 * count in full again.  A write by the host clears the credit.
 *
 * Deterministic contexts use no credit and do not learn who reads results. */
#ifndef TANDEM_HOST_CHOOSER_CHOOSER_H
#define TANDEM_HOST_CHOOSER_CHOOSER_H

#include "host/tensor/storage.h"

/* A storage that the operator uses, and its state when the call began. */
struct operand {
    struct storage *storage; /* borrowed; may be freed after the call */
    double bytes;
    /* The next fields are masks of devices; bit d stands for device d. */
    uint32_t current;         /* devices (and HOST_BIT) with a current copy */
    uint32_t host_accessible; /* devices that would use the host copy */
    uint32_t host_writers;    /* devices that may be writing the host copy */
    bool read;                /* the operator needs the content on the device */
    bool written;
    bool partial; /* the operator overwrites only a part of the storage */
    /* Expected next reader of an output: its device number plus 1, or 0 if
     * unknown, and the operator (enum tandem_op_id) of that read. */
    uint8_t next_reader, next_reader_op;
    bool host_read_expected; /* the caller will probably read this output */
};

/* Cached run costs of a call on each device. */
struct run_cost {
    uint32_t known; /* bit d is set if the times of device d are valid */
    uint32_t last;  /* number of the device chosen last plus 1; 0 means none */
    double launch_ns[TANDEM_MAX_DEVICES], execute_ns[TANDEM_MAX_DEVICES];
};

/* A request to choose a device for an operator call. */
struct placement_request {
    uint32_t op;
    uint32_t cost_class;
    double elements;           /* number of elements of the largest operand */
    double bytes;              /* total bytes read and written */
    double gemm_size[4];       /* m, n, k, batch size (TANDEM_COST_GEMM only) */
    struct run_cost *run_cost; /* cached times, borrowed; NULL means no cache */
    uint32_t operand_count;
    struct operand operands[2 * TANDEM_MAX_OPERANDS];
};

/* Predicted times of a call on one device. */
struct prediction {
    double wait_ns, transfer_ns, launch_ns, execute_ns, download_ns;
    double total_ns;
    double full_transfer_ns;  /* transfer_ns without the migration credit */
    double input_transfer_ns; /* part of full_transfer_ns spent on inputs */
};

/* The last placement decision of a thread, kept for explanations. */
struct placement_decision {
    const struct tandem_context *context; /* NULL if the operator call failed */
    uint32_t serial;                      /* serial number of the context */
    uint32_t chosen;
    bool forced;           /* the caller or the context demanded this device */
    double measured_ns;    /* measured time, 0 if operators are not timed */
    uint32_t predicted;    /* bit d is set if predictions[d] is valid */
    uint32_t failed;       /* bit d is set if device d failed with status[d] */
    uint32_t must_compile; /* bit d is set if device d must compile first */
    uint8_t status[TANDEM_MAX_DEVICES];
    struct placement_request request;
    struct prediction predictions[TANDEM_MAX_DEVICES];
};

/* Predicts only the launch time and the run time of a call.  Reads and updates
 * the cache request->run_cost. */
void chooser_predict_run_cost(const struct placement_request *request,
                              const struct device *device,
                              double *out_launch_ns, double *out_run_ns);

/* Predicts all times of the call on one device and stores them in
 * decision->predictions.  Ignores the migration credit, because the storages
 * that hold the credit may have been freed. */
void chooser_predict(struct placement_decision *decision,
                     const struct device *device);

/* Returns the devices in `candidates` (a mask) that may run operators of a cost
 * class.  If some are calibrated for the class, only these and the CPU plugin's
 * devices may, because the CPU plugin's default costs are never too low. */
uint32_t chooser_eligible_candidates(const struct tandem_context *context,
                                     uint32_t cost_class, uint32_t candidates);

/* Returns the fastest eligible device in `candidates` (a mask) that has no bit
 * in decision->failed or decision->must_compile, or NULL.  The lowest device
 * number wins a tie.  Does not predict the transfers of a device that would be
 * slower even without transfers. */
struct device *chooser_pick(struct tandem_context *context,
                            struct placement_decision *decision,
                            uint32_t candidates);

/* Updates the migration credits, the record of migrations and the context's
 * virtual clock after a launch on `device`. */
void chooser_note_launch(struct placement_decision *decision,
                         struct device *device);

#endif
