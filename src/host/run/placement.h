/* SPDX-License-Identifier: Apache-2.0 */
/* The choice of the device of a call. */
#ifndef TANDEM_HOST_RUN_PLACEMENT_H
#define TANDEM_HOST_RUN_PLACEMENT_H

#include "host/chooser/chooser.h"
#include "host/run/call.h"

/* Checks the call, finds its entry and the devices that may run it, locks its
 * operands, and initializes `decision`.  *out_forced is the device that must
 * run the call, or NULL.  On success, call_release must follow. */
enum tandem_status call_prepare_decision(struct call *call,
                                         struct placement_decision *decision,
                                         struct device **out_forced);
/* Sets *out_forced to the device that the call or the context requires, or to
 * NULL if any device may run the call.  Enumerates devices if necessary. */
enum tandem_status forced_device_resolve(const struct call *call,
                                         struct device **out_forced);
/* Unlocks the operands, and returns the call's entry to the cache. */
void call_release(struct call *call, struct placement_decision *decision);

/* Unlocks the operands and locks them again: alone the outputs and those in the
 * mask `alone`, shared the others.  Updates their locations and, if a tensor
 * was rebound meanwhile, the call's entry.  After an error the request has no
 * operands any more, and the call ends. */
enum tandem_status operands_relock(struct call *call,
                                   struct placement_request *request,
                                   uint32_t alone);
/* Updates the locations of the request's operands from the storages, which must
 * be locked.  Fails if an input's content was lost or never written. */
enum tandem_status request_locate_operands(struct placement_request *request);

/* Returns memory for the calling thread's next placement decision in this
 * context, or NULL if memory is exhausted.  The thread owns the memory. */
struct placement_decision *
placement_decision_get(const struct tandem_context *context);
/* Returns the calling thread's last placement decision, or NULL if it has none.
 * The decision may belong to another context. */
struct placement_decision *
placement_decision_find(const struct tandem_context *context);
/* Converts the decision to an explanation.  Predicts device times that are
 * missing. */
void explanation_fill(struct tandem_context *context,
                      struct placement_decision *decision,
                      struct tandem_explanation *out);

#endif
