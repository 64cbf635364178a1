/* SPDX-License-Identifier: Apache-2.0 */
/* How a kernel that processes rows divides them among work-items; the first
 * member of its parameters.  See row_access.cl. */
#ifndef TANDEM_ROW_PARAMS_CL
#define TANDEM_ROW_PARAMS_CL

#include "common/params.cl"

struct row_mapping {
    /* Number of rows. With ROW_ACCESS_VEC4_COLUMNS, four rows count as one. */
    uint64_t rows;
    uint64_t count; /* elements per row */
    uint64_t elements_per_split;
    uint64_t row_groups;        /* work-groups for one split of each row */
    uint32_t lanes_log2;        /* log2 of work-items per row */
    uint32_t lanes_interleaved; /* 1 if neighbouring work-items share no row */
    uint32_t splits;
    /* Bits 0 and 1 are the number of elements from a vector boundary to offset
     * 0 of the input, bits 2 and 3 that of the output. With
     * ROW_ACCESS_SECTOR_ALIGNED, the number of elements from a sector boundary
     * to offset 0 of the output. */
    uint32_t misalignments;
};
PARAMS_SIZE(row_mapping, 48);

#endif
