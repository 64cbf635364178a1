/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Casts between f32, i32, i64, u8 and bool: truncating, saturating, NaN to 0;
 * and of f16 and bf16 by way of f32, a piece at a time.  The caller's thread
 * and the pool's.
 */
#include "config.h"

#include "common/float16.h"
#include "cpu/cpu.h"
#include "cpu/elementwise.h"

#define CHUNK_ELEMENTS 2048

typedef void (*cast_fn)(void *to, int64_t to_step, const void *from,
                        int64_t from_step, int64_t n);

/* 2^31 and 2^63 are f32 values, the largest integers below are not: hence >=.
 * Each comparison is false for NaN. */
static inline int32_t f32_to_i32(float x)
{
    return x >= 0x1p31f    ? INT32_MAX
           : x >= -0x1p31f ? (int32_t)x
           : x < 0         ? INT32_MIN
                           : 0;
}

static inline int64_t f32_to_i64(float x)
{
    return x >= 0x1p63f    ? INT64_MAX
           : x >= -0x1p63f ? (int64_t)x
           : x < 0         ? INT64_MIN
                           : 0;
}

static inline uint8_t f32_to_u8(float x)
{
    return x >= 255.0f ? 255 : x > 0 ? (uint8_t)x : 0;
}

static inline int32_t i64_to_i32(int64_t x)
{
    return x > INT32_MAX ? INT32_MAX : x < INT32_MIN ? INT32_MIN : (int32_t)x;
}

static inline uint8_t i64_to_u8(int64_t x)
{
    return x > 255 ? 255 : x < 0 ? 0 : (uint8_t)x;
}

#define CAST(from_name, from_type, to_name, to_type, expression)               \
    static void from_name##_##to_name(void *to, int64_t to_step,               \
                                      const void *from, int64_t from_step,     \
                                      int64_t n)                               \
    {                                                                          \
        const from_type *in = from;                                            \
        to_type *out = to;                                                     \
        if (to_step == 1 && from_step == 1) {                                  \
            for (int64_t i = 0; i < n; i++) {                                  \
                from_type x = in[i];                                           \
                out[i] = (to_type)(expression);                                \
            }                                                                  \
            return;                                                            \
        }                                                                      \
        for (int64_t i = 0; i < n; i++) {                                      \
            from_type x = in[i * from_step];                                   \
            out[i * to_step] = (to_type)(expression);                          \
        }                                                                      \
    }

CAST(f32, float, f32, float, x)
CAST(f32, float, i32, int32_t, f32_to_i32(x))
CAST(f32, float, i64, int64_t, f32_to_i64(x))
CAST(f32, float, u8, uint8_t, f32_to_u8(x))
CAST(f32, float, bool, uint8_t, x != 0)
CAST(i32, int32_t, f32, float, x)
CAST(i32, int32_t, i32, int32_t, x)
CAST(i32, int32_t, i64, int64_t, x)
CAST(i32, int32_t, u8, uint8_t, i64_to_u8(x))
CAST(i32, int32_t, bool, uint8_t, x != 0)
CAST(i64, int64_t, f32, float, x)
CAST(i64, int64_t, i32, int32_t, i64_to_i32(x))
CAST(i64, int64_t, i64, int64_t, x)
CAST(i64, int64_t, u8, uint8_t, i64_to_u8(x))
CAST(i64, int64_t, bool, uint8_t, x != 0)
CAST(u8, uint8_t, f32, float, x)
CAST(u8, uint8_t, i32, int32_t, x)
CAST(u8, uint8_t, i64, int64_t, x)
CAST(u8, uint8_t, u8, uint8_t, x)
CAST(u8, uint8_t, bool, uint8_t, x != 0)
CAST(i32, int32_t, odd, float, integer_odd(x))
CAST(i64, int64_t, odd, float, integer_odd(x))

/* f32, i32, i64, u8 (which bool is read as, holding 0 or 1), bool. */
static const cast_fn casts[4][5] = {
    {f32_f32, f32_i32, f32_i64, f32_u8, f32_bool},
    {i32_f32, i32_i32, i32_i64, i32_u8, i32_bool},
    {i64_f32, i64_i32, i64_i64, i64_u8, i64_bool},
    {u8_f32, u8_i32, u8_i64, u8_u8, u8_bool},
};

/* To the f32 that a bf16 is rounded from.  (An integer of more digits than f32
 * has is past the largest f16.) */
static const cast_fn odds[4] = {f32_f32, i32_odd, i64_odd, u8_f32};

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
    struct layout layout;
    cast_fn fn; /* of the operands as they are, or of f32 in their place */
    void (*widen)(float *y, const uint16_t *x, int64_t n);  /* NULL: as is */
    void (*narrow)(uint16_t *y, const float *x, int64_t n); /* likewise */
    unsigned char *base[2];
    uint32_t bytes[2];
    int64_t chunks;
};

/* n elements from one step apart to another. */
static void move(uint16_t *to, int64_t to_step, const uint16_t *from,
                 int64_t from_step, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        to[i * to_step] = from[i * from_step];
}

/* At most PACK_ELEMENTS, one side at least of 16 bits. */
static void piece_cast(const struct cast *cast, void *to, int64_t to_step,
                       const void *from, int64_t from_step, int64_t n)
{
    uint16_t packed[PACK_ELEMENTS];
    float wide[PACK_ELEMENTS];
    if (cast->widen != NULL) {
        bool at_once =
            to_step == 1 && cast->narrow == NULL && cast->fn == f32_f32;
        if (from_step != 1)
            move(packed, 1, from, from_step, n);
        cast->widen(at_once ? to : wide, from_step != 1 ? packed : from, n);
        if (at_once)
            return;
        from = wide;
        from_step = 1;
    }
    if (cast->narrow == NULL) {
        cast->fn(to, to_step, from, from_step, n);
        return;
    }
    if (cast->fn != f32_f32 || from_step != 1) {
        cast->fn(wide, 1, from, from_step, n);
        from = wide;
    }
    cast->narrow(to_step != 1 ? packed : to, from, n);
    if (to_step != 1)
        move(to, to_step, packed, 1, n);
}

static void line_cast(const struct cast *cast, unsigned char *to,
                      int64_t to_step, const unsigned char *from,
                      int64_t from_step, int64_t n)
{
    int64_t to_bytes = to_step * (int64_t)cast->bytes[0];
    int64_t from_bytes = from_step * (int64_t)cast->bytes[1];
    if (cast->widen == NULL && cast->narrow == NULL) {
        cast->fn(to, to_step, from, from_step, n);
        return;
    }
    for (int64_t i = 0; i < n; i += PACK_ELEMENTS)
        piece_cast(cast, to + i * to_bytes, to_step, from + i * from_bytes,
                   from_step, n - i < PACK_ELEMENTS ? n - i : PACK_ELEMENTS);
}

static void cast_rows(const void *context, int64_t first, int64_t end)
{
    const struct cast *cast = context;
    const struct layout *layout = &cast->layout;
    uint32_t inner = layout->rank - 1;
    int64_t extent = layout->shape[inner], index[TANDEM_MAX_RANK];
    int64_t chunk = first % cast->chunks;
    unsigned char *at[2];
    layout_seek(layout, first / cast->chunks, index);
    for (uint32_t i = 0; i < 2; i++)
        at[i] = cast->base[i] +
                layout_offset(layout, i, index) * (int64_t)cast->bytes[i];
    for (int64_t task = first; task < end; task++) {
        int64_t skip = chunk * CHUNK_ELEMENTS;
        int64_t n =
            extent - skip < CHUNK_ELEMENTS ? extent - skip : CHUNK_ELEMENTS;
        int64_t to = layout->strides[0][inner],
                from = layout->strides[1][inner];
        line_cast(cast, at[0] + skip * to * (int64_t)cast->bytes[0], to,
                  at[1] + skip * from * (int64_t)cast->bytes[1], from, n);
        if (++chunk < cast->chunks)
            continue;
        chunk = 0;
        layout_next(layout, index, at, cast->bytes);
    }
}

static void cast_choose(struct cast *cast, const struct kernels *kernels,
                        uint32_t from, uint32_t to)
{
    uint32_t place = dtype_place(from);
    place = place == 4 ? 3 : place;
    cast->widen = from == TANDEM_F16    ? kernels->f16_widen
                  : from == TANDEM_BF16 ? kernels->bf16_widen
                                        : NULL;
    cast->narrow = to == TANDEM_F16    ? kernels->f16_narrow
                   : to == TANDEM_BF16 ? kernels->bf16_narrow
                                       : NULL;
    cast->fn = to == TANDEM_BF16 ? odds[place]
                                 : casts[place][dtype_place(to)];
}

void cast_run(const struct work *work)
{
    struct cast cast;
    const struct tandem_tensor_desc *operands[2] = {work->outputs[0],
                                                    work->inputs[0]};
    layout_broadcast(&cast.layout, operands, 2, false);
    if (cast.layout.elements == 0)
        return;
    cast_choose(&cast, work->device->kernels, operands[1]->dtype,
                operands[0]->dtype);
    for (uint32_t i = 0; i < 2; i++) {
        cast.base[i] = tensor_data(operands[i]);
        cast.bytes[i] = TANDEM_DTYPE_BYTES(operands[i]->dtype);
    }
    int64_t extent = cast.layout.shape[cast.layout.rank - 1];
    cast.chunks = (extent + CHUNK_ELEMENTS - 1) / CHUNK_ELEMENTS;
    pool_run(work->device->pool, TANDEM_OP_CAST, cast_rows, &cast,
             cast.layout.elements / extent * cast.chunks,
             (extent + cast.chunks - 1) / cast.chunks);
}
