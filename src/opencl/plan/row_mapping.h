/* SPDX-License-Identifier: Apache-2.0 */
/* Row mapping: how softmax and norm kernels divide rows of elements among
 * work-items.  Pure functions that any thread may call. */
#ifndef TANDEM_OPENCL_PLAN_ROW_MAPPING_H
#define TANDEM_OPENCL_PLAN_ROW_MAPPING_H

#include "opencl/plan/kernel_step.h"
#include "common/row_params.cl"

/* How kernels access rows (macro ROW_ACCESS in cl/common/row_access.cl). */
enum row_access {
    ROW_ACCESS_STRIDED = 0,
    ROW_ACCESS_VEC4 = 1,
    ROW_ACCESS_LOCAL_MEMORY = 2,
    ROW_ACCESS_VEC4_COLUMNS = 3,
    ROW_ACCESS_SECTOR_ALIGNED = 4
};

/* Log2 of the elements of a memory sector, as in cl/common/row_access.cl.  If
 * SECTOR_ELEMENTS lanes read a vec4 each, they read a whole cache line. */
#define SECTOR_ELEMENTS_LOG2 3u
#define SECTOR_ELEMENTS (1 << SECTOR_ELEMENTS_LOG2)
/* With ROW_ACCESS_SECTOR_ALIGNED: number of elements that a work-item keeps.
 * More work-items share a longer row. */
#define SECTOR_ALIGNED_LANE_ELEMENTS 20
/* Unaligned rows can use local memory if they have fewer elements than this. */
#define LOCAL_MEMORY_ROW_LIMIT 48
/* With ROW_ACCESS_VEC4_COLUMNS, a vec4 has elements of four rows.  Log2 of the
 * minimum number of such sets of four rows per work-group. */
#define MIN_VEC4_COLUMNS_LOG2 3u
/* Elements that a lane (a work-item) reads per iteration of a split row. */
#define ITERATION_ELEMENTS 16u
/* Argument max_vec4_log2 of row_mapping_divide() if registers are few. */
#define MAX_ROW_VEC4_LOG2 3

/* Divides out->rows rows of out->count elements among work-items, at most
 * 2^max_lanes_log2 per row.  Returns true if the rows fit in registers, with at
 * most 2^max_vec4_log2 vec4 per work-item, or none if max_vec4_log2 is
 * negative.  Otherwise splits each row and returns false.  If rows do not fit
 * with ROW_ACCESS_LOCAL_MEMORY, uses ROW_ACCESS_STRIDED.  Does not support
 * splits with ROW_ACCESS_VEC4_COLUMNS.  Sets the fields of the key that
 * describe rows. */
bool row_mapping_divide(struct row_mapping *out, enum row_access access,
                        uint32_t max_lanes_log2, int32_t max_vec4_log2,
                        const struct op_request *request,
                        struct kernel_key *key);

/* The kernels of an operator that processes rows. */
struct row_kernels {
    const struct kernel_info *single_pass; /* keeps rows in registers */
    const struct kernel_info *partial_pass, *final_pass;
    uint32_t partial_floats; /* f32 values per split of a row */
    /* Positions of the offsets in the parameters, of the output and of the
     * inputs. */
    uint32_t offsets_at[5];
};
/* Plans the single pass if `register_resident` is set, otherwise the partial
 * pass and the final pass.  `params` are the parameters of the three kernels,
 * which start with a struct row_mapping, whose misalignments are set
 * at the launch. */
void plan_row_kernels(struct launch_plan *plan,
                      const struct op_request *request,
                      const struct row_kernels *kernels,
                      const struct kernel_key *key, bool register_resident,
                      const void *params);
/* The macros with which kernels read rows (cl/common/row_access.cl). */
define_number_fn define_row_elements, define_row_lanes_log2, define_row_stages;
#define ROW_DEFINES                                                            \
    DEFINE_FIELD("ROW_ACCESS", row_access),                                    \
        DEFINE_FIELD("VECTORS_PER_ITEM", item_vec4),                           \
        DEFINE_NUMBER("ROW_ELEMENTS", define_row_elements, 0),                 \
        DEFINE_NUMBER("LANES_LOG2", define_row_lanes_log2, 0),                 \
        DEFINE_NUMBER("STAGES_PER_ITEM", define_row_stages, 0)
/* Returns log2 of the work-items per row with ROW_ACCESS_LOCAL_MEMORY. */
uint32_t row_local_memory_lanes_log2(uint64_t count);
/* Returns log2 of the work-group size: the requested size, or a larger one if
 * the rows are long. */
uint32_t row_mapping_group_log2(const struct row_mapping *rows,
                                const struct op_request *request);
/* Returns how to access contiguous rows that are not aligned to vec4.  In
 * `outer`, operand 0 is the output and operand 1 is the input. */
enum row_access row_access_unaligned(const struct row_mapping *rows,
                                     const struct iteration_space *outer);

#endif
