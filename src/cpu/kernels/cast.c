/* SPDX-License-Identifier: Apache-2.0 */
/* Implements the cast operator.  Casts to integers truncate and saturate, and
 * NaN becomes 0.  Casts from or to f16 and bf16 go through f32, PACK_ELEMENTS
 * elements at a time.  Runs on the caller's thread and the thread pool. */
#include "config.h"

#include "cpu/kernels/cast_element.h"
#include "cpu/kernels/elementwise.h"

#define CHUNK_ELEMENTS 2048

typedef void (*cast_fn)(void *to, int64_t to_step, const void *from,
                        int64_t from_step, int64_t n);

#define STRIDED_CAST(from_name, from_type, to_name, to_type, expression)       \
    static void from_name##_##to_name(void *restrict to, int64_t to_step,      \
                                      const void *restrict from,               \
                                      int64_t from_step, int64_t n)            \
    {                                                                          \
        const from_type *in = from;                                            \
        to_type *out = to;                                                     \
        _Pragma("GCC unroll 4") for (int64_t i = 0; i < n; i++)                \
        {                                                                      \
            from_type x = in[i * from_step];                                   \
            out[i * to_step] = (to_type)(expression);                          \
        }                                                                      \
    }

CASTS(STRIDED_CAST)

static const cast_fn casts[CAST_SOURCES][CAST_TARGETS] = CAST_TABLE;

static uint32_t dtype_place(uint32_t dtype)
{
    switch (dtype) {
    case TANDEM_F32:
    case TANDEM_F16:
    case TANDEM_BF16:
        return 0;
    case TANDEM_I32:
        return 1;
    case TANDEM_I64:
        return 2;
    case TANDEM_U8:
        return 3;
    default:
        return 4;
    }
}

struct cast {
    struct rows rows; /* operands: target and source */
    unsigned char *base[ROW_OPERANDS];
    /* Function that casts strided elements, from f32 if `widen` is not NULL,
     * and to f32 if `narrow` is not NULL. */
    cast_fn strided;
    dense_cast_fn dense;
    void (*widen)(float *y, const uint16_t *x, int64_t n);  /* or NULL */
    void (*narrow)(uint16_t *y, const float *x, int64_t n); /* or NULL */
};

static void steps_cast(const struct cast *cast, void *to, int64_t to_step,
                       const void *from, int64_t from_step, int64_t n)
{
    if (to_step == 1 && from_step == 1)
        cast->dense(to, from, n);
    else
        cast->strided(to, to_step, from, from_step, n);
}

/* Casts n <= PACK_ELEMENTS elements from or to a 16-bit type, through f32. */
static void piece_cast(const struct cast *cast, void *to, int64_t to_step,
                       const void *from, int64_t from_step, int64_t n)
{
    uint16_t packed[PACK_ELEMENTS];
    float wide[PACK_ELEMENTS];
    if (cast->widen != NULL) {
        bool at_once =
            to_step == 1 && cast->narrow == NULL && cast->strided == u32_u32;
        if (from_step != 1)
            elements_copy(packed, 1, from, from_step, n, sizeof *packed);
        cast->widen(at_once ? to : wide, from_step != 1 ? packed : from, n);
        if (at_once)
            return;
        from = wide;
        from_step = 1;
    }
    if (cast->narrow == NULL) {
        steps_cast(cast, to, to_step, from, from_step, n);
        return;
    }
    if (cast->strided != u32_u32 || from_step != 1) {
        steps_cast(cast, wide, 1, from, from_step, n);
        from = wide;
    }
    cast->narrow(to_step != 1 ? packed : to, from, n);
    if (to_step != 1)
        elements_copy(to, to_step, packed, 1, n, sizeof *packed);
}

/* Casts a part of a row.  The parameters are those of row_part_fn. */
static inline void part_cast(const void *context, unsigned char *const *at,
                             int64_t first, int64_t end)
{
    const struct cast *cast = context;
    uint32_t inner = cast->rows.space.rank - 1;
    int64_t to_step = cast->rows.space.strides[0][inner];
    int64_t from_step = cast->rows.space.strides[1][inner];
    int64_t to_bytes = to_step * (int64_t)cast->rows.bytes[0];
    int64_t from_bytes = from_step * (int64_t)cast->rows.bytes[1];
    if (cast->widen == NULL && cast->narrow == NULL)
        steps_cast(cast, at[0] + first * to_bytes, to_step,
                   at[1] + first * from_bytes, from_step, end - first);
    else
        for (; first < end; first += PACK_ELEMENTS)
            piece_cast(cast, at[0] + first * to_bytes, to_step,
                       at[1] + first * from_bytes, from_step,
                       min64(end - first, PACK_ELEMENTS));
}

static void cast_rows(const void *context, int64_t first, int64_t end)
{
    const struct cast *cast = context;
    rows_visit(&cast->rows, cast->base, first, end, INT64_MAX, part_cast, cast);
}

static void cast_choose(struct cast *cast, const struct kernels *kernels,
                        uint32_t from, uint32_t to)
{
    uint32_t source = dtype_place(from), target = dtype_place(to);
    bool f16_copy = from == TANDEM_F16 && to == TANDEM_F16;
    source = source == 4 ? 3 : source;
    if (f16_copy || (to == TANDEM_BF16 && source != 0))
        target = 5;
    cast->widen = f16_copy              ? NULL
                  : from == TANDEM_F16  ? kernels->f16_widen
                  : from == TANDEM_BF16 ? kernels->bf16_widen
                                        : NULL;
    cast->narrow = target == 5         ? NULL
                   : to == TANDEM_F16  ? kernels->f16_narrow
                   : to == TANDEM_BF16 ? kernels->bf16_narrow
                                       : NULL;
    cast->strided = casts[source][target];
    cast->dense = kernels->casts[source][target];
}

static enum tandem_status cast_run(const struct work *work)
{
    struct cast cast;
    const struct tandem_tensor_desc *operands[2] = {work->outputs[0],
                                                    work->inputs[0]};
    space_broadcast(&cast.rows.space, operands, 2, false);
    if (cast.rows.space.elements == 0)
        return TANDEM_OK;
    cast_choose(&cast, work->device->kernels, operands[1]->dtype,
                operands[0]->dtype);
    rows_set(&cast.rows, cast.base, operands, CHUNK_ELEMENTS);
    rows_run(&cast.rows, work->device->pool, TANDEM_OP_CAST, cast_rows, &cast);
    return TANDEM_OK;
}

const struct cpu_class cpu_class_cast = {.run = cast_run};
