/* SPDX-License-Identifier: Apache-2.0 */
/* Parameters, operands and macros of GEMM kernels.  Pure functions
 * that any thread may call. */
#ifndef TANDEM_OPENCL_PLAN_GEMM_PARAMS_H
#define TANDEM_OPENCL_PLAN_GEMM_PARAMS_H

#include "opencl/plan/gemm_plan.h"
#include "opencl/plan/kernel_step.h"
#include "gemm/gemm_params.cl"

/* Operand `a` or `b` of a GEMM, as rows of k elements: the m rows of `a` or the
 * n columns of `b`. */
struct gemm_operand {
    const struct tandem_matrix *matrix;
    int64_t rows;
    uint32_t batches; /* number of matrices; 1 if all batches share one */
    bool is_mn_major; /* adjacent elements in memory are in different rows */
};

struct gemm_operand operand_of(const struct tandem_gemm *gemm,
                               enum operand_id id);
/* Returns true if the operand can be read with aligned vec4 loads. */
bool operand_is_vec4(const struct tandem_gemm *gemm,
                     struct gemm_operand operand);
/* Returns true if each stored row of the matrix is aligned to the size of
 * `elements` elements. */
bool matrix_is_aligned(const struct tandem_matrix *matrix, uint32_t dtype,
                       int64_t batch, uint32_t elements);
/* Returns the number of elements of `c`, including all batches. */
uint64_t gemm_c_elements(const struct tandem_gemm *gemm);
void gemm_params_set_operands(struct gemm_params *out,
                              const struct tandem_matrix *a,
                              const struct tandem_matrix *b, uint32_t dtype);
/* Sets the parameters for `old`, unless it is NULL. */
void gemm_params_set_old(struct gemm_params *out,
                         const struct tandem_tensor_desc *old);
/* Sets all GEMM parameters except the numbers of tiles.  Splits k into at most
 * `splits` ranges, whose lengths are multiples of k_tile. */
void gemm_params_fill(struct gemm_params *out, const struct tandem_gemm *gemm,
                      uint32_t k_tile, uint32_t splits);
/* Sets the numbers of tiles of the result.  If k is split, only the last
 * `split_tiles` tiles are computed as several partial sums. */
void gemm_params_set_tiles(struct gemm_params *out, uint32_t tiles_m,
                           uint32_t tiles_n, uint32_t split_tiles);
/* Sets out[0] and out[1] to the attributes of the activation. */
void activation_fill(float *out, const struct tandem_gemm *gemm);
/* Set the fields of a key for the activation, and for the dtypes of `c`, and of
 * `a` and `b`.  The second function also sets the activation of kernels that
 * store only partial sums. */
void gemm_key_set_activation(struct kernel_key *key,
                             const struct tandem_gemm *gemm);
void kernel_key_set_types(struct kernel_key *key,
                          const struct tandem_gemm *gemm);
/* Macros for the dtype of `c`, and of `a` and `b`; the argument is the operand.
 */
define_text_fn define_gemm_dtype;
#define GEMM_DTYPE_DEFINES                                                     \
    DEFINE_TEXT("C_DTYPE", define_gemm_dtype, 0),                              \
        DEFINE_TEXT("AB_DTYPE", define_gemm_dtype, 1)
/* A macro with a member of the kernel's struct gemm_kernel_config. */
define_number_fn define_gemm_config;
#define DEFINE_CONFIG(name, member)                                            \
    DEFINE_NUMBER(name, define_gemm_config,                                    \
                  offsetof(struct gemm_kernel_config, member))
/* 4 if the field of the key is set, otherwise 1. */
define_number_fn define_vector;
#define DEFINE_VECTOR(name, field)                                             \
    DEFINE_NUMBER(name, define_vector, offsetof(struct kernel_key, field))
/* The macro for the epilogue. */
#define EPILOGUE_DEFINES DEFINE_TEXT("ACTIVATION", define_activation, 0)

/* Add an argument to a step, whose offset is at position `at` of the
 * parameters.  Without a bias, the argument for the bias is `c` as a
 * placeholder, because it must be a valid buffer. */
void step_add_gemm_operand(struct kernel_step *step,
                           const struct tandem_gemm *gemm,
                           struct gemm_operand operand, uint32_t at);
void step_add_gemm_c(struct kernel_step *step, const struct tandem_gemm *gemm,
                     bool written, uint32_t at);
void step_add_gemm_bias(struct kernel_step *step,
                        const struct tandem_gemm *gemm, uint32_t at);
/* Without `old`, the argument is `c`.  The offset is that of struct
 * gemm_params. */
void step_add_gemm_old(struct kernel_step *step, const struct tandem_gemm *gemm,
                       const struct tandem_tensor_desc *old);
/* Plans the kernel that adds partial sums and applies bias and activation.
 * `old` is what beta multiplies instead of c, or NULL. */
void plan_split_k_fixup(struct launch_plan *plan,
                        const struct tandem_gemm *gemm,
                        const struct tandem_tensor_desc *old,
                        const struct gemm_params *from, uint32_t group_log2);

#endif
