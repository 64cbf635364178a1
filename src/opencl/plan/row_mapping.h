/* SPDX-License-Identifier: Apache-2.0 */
/* Row mapping: how softmax and norm kernels divide rows of elements among
 * work-items.  Pure functions; any thread. */
#ifndef TANDEM_OPENCL_PLAN_ROW_MAPPING_H
#define TANDEM_OPENCL_PLAN_ROW_MAPPING_H

#include "opencl/plan/kernel_step.h"

/* ROW_PARAMS of cl/common/row_access.cl. */
struct row_mapping {
    uint64_t rows, count; /* number of rows; elements of a row */
    uint64_t elements_per_split;
    uint64_t row_groups;        /* work-groups for all rows, per split */
    uint32_t lanes_log2;        /* work-items that share a row */
    uint32_t lanes_interleaved; /* 1: neighbouring items have different rows */
    uint32_t splits, misalignments;
};

/* How a row kernel reads memory: ROW_ACCESS of cl/common/row_access.cl. */
enum row_access {
    ROW_ACCESS_STRIDED = 0,
    ROW_ACCESS_VEC4 = 1,
    ROW_ACCESS_LOCAL_MEMORY = 2,
    ROW_ACCESS_VEC4_COLUMNS = 3,
    ROW_ACCESS_SECTOR_ALIGNED = 4
};

/* Elements of a sector, as in cl/common/row_access.cl.  This number of lanes
 * reads whole cache lines. */
#define SECTOR_ELEMENTS_LOG2 3u
#define SECTOR_ELEMENTS (1 << SECTOR_ELEMENTS_LOG2)
/* ROW_ACCESS_SECTOR_ALIGNED: elements that a work-item keeps before more
 * work-items share a row. */
#define SECTOR_ALIGNED_LANE_ELEMENTS 20
/* Unaligned rows shorter than this go through local memory. */
#define LOCAL_MEMORY_ROW_LIMIT 48
/* ROW_ACCESS_VEC4_COLUMNS: a work-group has at least this number of vec4
 * columns. */
#define MIN_VEC4_COLUMNS_LOG2 3u
/* A limit for row_mapping_divide on devices with few registers. */
#define MAX_ROW_VEC4_LOG2 3

/* Divides `rows` rows of `count` elements.  At most 1 << max_lanes_log2
 * work-items share a row, and each keeps at most 1 << max_vec4_log2 vec4 in
 * registers; a negative max_vec4_log2 means none.  Returns true and sets the
 * register and lane bits of the variant key if the rows fit in registers.
 * Otherwise divides each row into splits; these support neither
 * ROW_ACCESS_LOCAL_MEMORY nor ROW_ACCESS_VEC4_COLUMNS. */
bool row_mapping_divide(struct row_mapping *out, enum row_access access,
                        uint32_t max_lanes_log2, int32_t max_vec4_log2,
                        const struct op_request *request, uint64_t *out_key);
/* Returns the number of work-items that share a row in local memory. */
uint32_t row_local_memory_lanes_log2(uint64_t count);
/* Returns the work-group size: that of the request, or a larger one for long
 * rows. */
uint32_t row_mapping_group_log2(const struct row_mapping *rows,
                                const struct op_request *request);
/* Returns true if all rows of the operand start at aligned vec4. */
bool rows_are_vec4_aligned(const struct layout *outer, uint32_t operand,
                           const struct tandem_tensor_desc *tensor);
/* Returns the misalignment of both buffers in elements: bits 0 and 1 for the
 * input, 2 and 3 for the output. */
uint32_t rows_misalignments(const struct tandem_tensor_desc *input,
                            const struct tandem_tensor_desc *output);
/* Returns the access for contiguous rows that are not aligned to vec4.  In
 * `outer`, operand 0 is the output and operand 1 the input. */
enum row_access row_access_unaligned(const struct row_mapping *rows,
                                     const struct layout *outer);

#endif
