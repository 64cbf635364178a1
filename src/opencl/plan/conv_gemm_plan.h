/* SPDX-License-Identifier: Apache-2.0 */
/* Plans convolutions as GEMMs.  Pure functions that any thread may call. */
#ifndef TANDEM_OPENCL_PLAN_CONV_GEMM_PLAN_H
#define TANDEM_OPENCL_PLAN_CONV_GEMM_PLAN_H

#include "common/op_conv.h"
#include "opencl/plan/gemm_plan.h"

/* Returns false, without a plan, if no GEMM kernel supports the strides or the
 * sizes of the convolution, or if gemm_selector_choose_own selects none. */
bool plan_conv_as_gemm(struct launch_plan *plan,
                       const struct op_request *request,
                       const struct conv_problem *conv);

/* Describes the patches of a convolution, from its window and the strides of
 * its input. */
void patches_params_fill(struct patches_params *out,
                         const struct conv_problem *conv);

#endif
