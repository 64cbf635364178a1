/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How kernels that give a row of results for a row of elements divide them
 * among work-items.  Pure functions; any thread.
 */
#ifndef TANDEM_OPENCL_PLAN_ROW_MAPPING_H
#define TANDEM_OPENCL_PLAN_ROW_MAPPING_H

#include "opencl/plan/kernel_step.h"

/* As at the head of the parameters in cl/softmax.cl and cl/norm.cl. */
struct row_mapping {
    uint64_t rows, count,
        elements_per_split; /* elements of a row; of a split */
    uint64_t row_groups;
    uint32_t lanes_log2, lanes_interleaved, splits, misalignments;
};

/* ROW_ACCESS of cl/common/row_access.cl. */
enum row_access {
    ROW_ACCESS_STRIDED = 0,
    ROW_ACCESS_VEC4 = 1,
    ROW_ACCESS_LOCAL_MEMORY = 2,
    ROW_ACCESS_VEC4_COLUMNS = 3,
    ROW_ACCESS_SECTOR_ALIGNED = 4
};

/* Divides rows and count, of which 1 << most_log2 work-items may share a row,
 * and each keep 1 << keep_log2 vectors of four (keep_log2 < 0: none): true
 * where they keep all of it, and the key's part that says how; else the row is
 * cut into splits, which are not ROW_ACCESS_LOCAL_MEMORY or
 * ROW_ACCESS_VEC4_COLUMNS. */
bool row_mapping_divide(struct row_mapping *out, enum row_access access,
                        uint32_t most_log2, int32_t keep_log2,
                        const struct op_request *request, uint64_t *out_key);
/* What keep_log2 may be where registers are few, and at most. */
#define MAX_ROW_VEC4_LOG2 3
/* How many work-items share a row of ROW_ACCESS_LOCAL_MEMORY. */
uint32_t row_local_memory_lanes_log2(uint64_t count);
/* Shorter rows that are not in vectors go through local memory. */
#define LOCAL_MEMORY_ROW_LIMIT 48
/* Elements of a sector, as in cl/common/row_access.cl; so many lanes read a
 * whole line of the cache at a time. */
#define SECTOR_ELEMENTS_LOG2 3u
#define SECTOR_ELEMENTS (1 << SECTOR_ELEMENTS_LOG2)
/* Elements that a work-item of ROW_ACCESS_SECTOR_ALIGNED keeps before more of
 * them share a row. */
#define SECTOR_ALIGNED_LANE_ELEMENTS 20
/* Rows of fours side by side of which a group has at least so many. */
#define MIN_VEC4_COLUMNS_LOG2 3u

/* The group that keeps rows best: the request's, but for long rows where groups
 * may be larger. */
uint32_t row_mapping_group_log2(const struct row_mapping *rows,
                                const struct op_request *request);
/* Whether rows of operand start where vectors of four elements do. */
bool rows_are_vec4_aligned(const struct layout *kept, uint32_t operand,
                           const struct tandem_tensor_desc *tensor);
/* skews of the parameters. */
uint32_t rows_misalignments(const struct tandem_tensor_desc *input,
                            const struct tandem_tensor_desc *output);
/* How rows are read that are not in vectors, but whose elements are neighbours;
 * kept: operand 0 the output, 1 the input. */
enum row_access row_access_unaligned(const struct row_mapping *rows,
                                     const struct layout *kept);

#endif
