/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The chooser: predicts what an operator takes on each device and picks one.
 *
 *     predicted = wait + transfer + launch + run + return
 *
 *   wait      for the work under way on a device that holds an input which
 *             must leave it: its sync cost and what is predicted to be
 *             outstanding on it
 *   transfer  of the inputs that are not on the candidate, and of the outputs
 *             on to the device that was the first to read the last result in
 *             the same memory (programs repeat themselves), less their debt
 *   launch    the candidate's launch cost, at most
 *   run       its curve of the cost class at the bytes read and written (or
 *             the matrix product surface), of which the launch is a part: the
 *             curve is that of a long stream of launches
 *   return    a sync and the downloads of outputs that the caller is expected
 *             to read on the host (storage_read_expected)
 *
 * Time is predicted, too: every operator advances a clock of the context
 * (now_ns) by what the caller is predicted to spend in it, and each device
 * knows until when it is busy on that clock.  No real clock is read, so the
 * same calls give the same choices.
 *
 * Debt.  Choosing greedily would never move weights to a GPU, since one
 * operator rarely pays for the move alone.  So each time a device loses only
 * for the transfers that it would need, what it would have saved without them
 * is credited to the storages that were in the way, as migration_credit_ns of
 * that device (shared out by their transfer costs, never more than the cost
 * itself), and is taken off the transfer in later predictions: after as much
 * has been lost by not moving as the move costs, it is made.  That is the ski
 * rental rule; it costs at most twice what was best in hindsight.  A copy that
 * was moved on credit is watched until it goes stale: if by then the operators
 * that used it did not save what the move took, later losses of its storage are
 * credited by half, each time again; if they did, in full.  What the host
 * writes anew starts without debt.
 *
 * Deterministic contexts have no debt, and do not learn who reads.  All
 * functions: locked.
 */
#ifndef TANDEM_HOST_CHOOSER_CHOOSER_H
#define TANDEM_HOST_CHOOSER_CHOOSER_H

#include "host/tensor/storage.h"

/* A storage that the operator uses, as it was when the operator came. */
struct operand {
    struct storage *storage; /* may be gone later */
    double bytes;
    uint32_t current;
    uint32_t home;   /* bit d: device d would use the host's copy */
    uint32_t writer; /* bit d: device d may still be writing the host's copy */
    bool read;       /* its content must be on the device */
    bool written;
    bool partial;  /* written in part: what is there must be kept */
    /* Written, and the device numbered one less is expected to read it next;
     * 0: not known. */
    uint8_t reader;
    uint8_t reader_op; /* for this operator, enum tandem_op_id */
    bool expected; /* written, and the host is expected to read it */
};

/* What is known of an operator at its size on each device, for the next time
 * that it is placed. */
struct work {
    uint32_t known; /* bit d: launch_ns[d] and run_ns[d] are set */
    uint32_t last;  /* the device chosen last, plus 1; 0: none */
    double launch_ns[TANDEM_MAX_DEVICES], run_ns[TANDEM_MAX_DEVICES];
};

/* What is to be placed. */
struct query {
    uint32_t op;
    uint32_t cost_class;
    double elements; /* of the largest operand */
    double bytes;    /* read and written */
    double product[4]; /* TANDEM_COST_GEMM: m, n, k, batch */
    struct work *work; /* NULL: nothing is kept */
    uint32_t operand_count;
    struct operand operands[2 * TANDEM_MAX_OPERANDS];
};

struct prediction {
    double wait_ns, transfer_ns, launch_ns, run_ns, download_ns;
    double total_ns;
    double owed_ns;  /* the transfer before debt was taken off */
    double moved_ns; /* the part of it that is due at once */
};

/* What became of the last operator of a thread, for explanations. */
struct record {
    const struct tandem_context *context;
    uint32_t serial; /* of the context */
    uint32_t chosen;
    bool forced;
    double measured_ns;
    uint32_t predicted; /* bit d: predictions[d] is set */
    uint32_t failed;    /* bit d: could not run it, why: status[d] */
    uint32_t unready;   /* bit d: not compiled yet */
    uint8_t status[TANDEM_MAX_DEVICES];
    struct query query;
    struct prediction predictions[TANDEM_MAX_DEVICES];
};

/* The launch and run parts alone. */
void chooser_predict_run_cost(const struct query *query,
                              const struct device *device,
                              double *out_launch_ns, double *out_run_ns);

/* Predicts for one device into record->predictions, as if there were no
 * debt: the storages may be gone. */
void chooser_predict(struct record *record, const struct device *device);

/* Those of the candidates (a mask) that compete for operators of a cost class:
 * all of them, or, where its costs were measured on some, these, and the CPU
 * plugin, whose guessed costs are no less than its true ones. */
uint32_t chooser_eligible_candidates(const struct tandem_context *context,
                        uint32_t cost_class, uint32_t candidates);

/* The best of the devices in candidates (a mask) that have no bit in
 * record->failed or record->unready; the first of equal ones; NULL where
 * there is none.  Only chooser_eligible_candidates of them compete.  Devices
 * that cannot win whatever the transfers are not predicted. */
struct device *chooser_pick(struct tandem_context *context,
                            struct record *record, uint32_t candidates);

/* The operator was launched on record->chosen: books debts, moves and time. */
void chooser_launched(struct record *record, struct device *device);

#endif
