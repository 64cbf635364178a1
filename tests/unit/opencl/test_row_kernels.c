/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Row kernels of softmax and the norms, for short rows that are cached and
 * long rows that are split. Memory before and after a row must be neither read
 * nor written, at any alignment of the row. Parts of a row that contain only
 * -infinity, of the size of a vector, a work-group iteration or a split, must
 * not affect the result.
 */
#include <config.h>

#include <math.h>

#include "support/test_list.h"
#include "support.h"

/* Elements around all rows. */
#define GUARD 64
#define ROWS 3
/*
 * Rows that a work-group caches, of sizes that the conformance suite also has,
 * to avoid further compilations; and rows that are split, with and without
 * vectors of four.
 */
#define SHORT_NORM 1001
#define SHORT_SOFTMAX 3858
#define LONG_VECTORS 40000
#define LONG 40001
#define FLOATS (2 * GUARD + ROWS * LONG + 16)

static struct tandem_buffer *in, *out, *affine;
static float x[FLOATS], y[FLOATS], before[FLOATS];

static void device_new(void)
{
    const float one = 1.0f;
    device_open_with("cache_dir", "");
    in = buffer_new(sizeof(x));
    out = buffer_new(sizeof(x));
    affine = buffer_new(sizeof(x));
    OK(backend->fill(stream, affine, 0, sizeof(x), &one, 4));
}

/* Launches an operator on rows with this pitch, from element first on. */
static void launch(uint32_t id, int64_t rows, int64_t count, int64_t first,
                   int64_t pitch)
{
    const bool norm = id == TANDEM_OP_LAYER_NORM;
    const double epsilon = 1e-5;
    const int64_t axis = 1;
    const struct tandem_op op = {.struct_size = sizeof(op),
                                 .id = id,
                                 .int_count = 1,
                                 .ints = &axis,
                                 .float_count = norm ? 1 : 0,
                                 .floats = &epsilon};
    const struct tandem_tensor_desc from = {
        in, (uint64_t)first * 4, TANDEM_F32, 2, {rows, count}, {pitch, 1}};
    const struct tandem_tensor_desc to = {out, (uint64_t)first * 4, TANDEM_F32,
                                          2,   {rows, count},       {pitch, 1}};
    const struct tandem_tensor_desc by = {affine, 0,       TANDEM_F32,
                                          1,      {count}, {1}};
    const struct tandem_tensor_desc *inputs[] = {&from, &by, &by};
    const struct tandem_tensor_desc *output = &to;
    for (int i = 0; i < FLOATS; i++)
        before[i] = -123.0f - (float)(i % 7);
    buffer_write(in, x, sizeof(x));
    buffer_write(out, before, sizeof(x));
    OK(tensors_launch(backend, device, stream, &op, inputs, norm ? 3 : 1,
                      &output, 1, 64));
    buffer_read(out, y, sizeof(x));
}

/* ---- references ---- */

/* Computes the mean of a row and the reciprocal of its standard deviation. */
static void norm_reference(const float *row, int64_t count, double *mean,
                           double *factor)
{
    double sum = 0, square = 0;
    for (int64_t i = 0; i < count; i++)
        sum += (double)row[i];
    *mean = sum / (double)count;
    for (int64_t i = 0; i < count; i++)
        square += ((double)row[i] - *mean) * ((double)row[i] - *mean);
    *factor = 1 / sqrt(square / (double)count + 1e-5);
}

static void softmax_reference(const float *row, int64_t count, double *largest,
                              double *sum)
{
    *largest = -INFINITY;
    *sum = 0;
    for (int64_t i = 0; i < count; i++)
        *largest = fmax(*largest, (double)row[i]);
    for (int64_t i = 0; i < count; i++)
        *sum += exp((double)row[i] - *largest);
}

static void row_check(uint32_t id, const float *from, const float *to,
                      int64_t count)
{
    double a, b;
    const bool norm = id == TANDEM_OP_LAYER_NORM;
    if (norm)
        norm_reference(from, count, &a, &b);
    else
        softmax_reference(from, count, &a, &b);
    for (int64_t i = 0; i < count; i++) {
        const double want =
            norm ? ((double)from[i] - a) * b + 1 : exp((double)from[i] - a) / b;
        const double absolute = norm ? 1e-5 : 1e-9;
        if ((double)to[i] != want &&
            !(fabs((double)to[i] - want) <= absolute + 1e-5 * fabs(want)))
            ck_abort_msg("operator %u, element %lld of %lld is %g, not %g", id,
                         (long long)i, (long long)count, (double)to[i], want);
    }
}

/* ---- memory around rows ---- */

/* A read of the memory around the rows, which is NaN, changes the result. */
static void rows_check_surroundings(uint32_t id, int64_t rows, int64_t count,
                                    int64_t shift, int64_t pitch)
{
    const int64_t first = GUARD + shift;
    for (int i = 0; i < FLOATS; i++)
        x[i] = NAN;
    for (int64_t row = 0; row < rows; row++)
        for (int64_t i = 0; i < count; i++)
            x[first + row * pitch + i] = (float)((i * 7 + row) % 13) - 5.5f;
    launch(id, rows, count, first, pitch);
    for (int64_t i = 0; i < FLOATS; i++) {
        const int64_t place = i - first;
        const int64_t row = place < 0 ? rows : place / pitch;
        const bool inside = row < rows && place - row * pitch < count;
        if (!inside && y[i] != before[i])
            ck_abort_msg("operator %u, rows of %lld from %lld: element %lld "
                         "outside them was written",
                         id, (long long)count, (long long)first, (long long)i);
    }
    for (int64_t row = 0; row < rows; row++)
        row_check(id, x + first + row * pitch, y + first + row * pitch, count);
}

/* The rows start at each position in a sector of eight elements. */
LOOP_TEST(surroundings_of_short_rows_are_untouched, 2)
{
    const uint32_t id = _i == 0 ? TANDEM_OP_SOFTMAX : TANDEM_OP_LAYER_NORM;
    const int64_t count = _i == 0 ? SHORT_SOFTMAX : SHORT_NORM;
    for (int64_t shift = 0; shift < 9; shift++)
        rows_check_surroundings(id, ROWS, count, shift, count);
    rows_check_surroundings(id, ROWS, count, 3, count + 50);
}

LOOP_TEST(surroundings_of_long_rows_are_untouched, 2)
{
    const uint32_t id = _i == 0 ? TANDEM_OP_SOFTMAX : TANDEM_OP_LAYER_NORM;
    for (int64_t shift = 0; shift < 9; shift++)
        rows_check_surroundings(id, 1 + shift % 2, LONG, shift, LONG);
    rows_check_surroundings(id, ROWS, LONG - 9, 5, LONG);
}

/* ---- -infinity ---- */

/* Sets elements from `from` to `to` to -infinity. */
static void masked_rows_check(int64_t count, int64_t from, int64_t to)
{
    for (int i = 0; i < FLOATS; i++)
        x[i] = 1e30f;
    for (int64_t i = 0; i < count; i++)
        x[GUARD + i] =
            i >= from && i < to ? -INFINITY : (float)((i * 7) % 13) - 5.5f;
    launch(TANDEM_OP_SOFTMAX, 1, count, GUARD, count);
    row_check(TANDEM_OP_SOFTMAX, x + GUARD, y + GUARD, count);
}

/* A split has a few iterations of a work-group, of about 4096 elements. */
LOOP_TEST(parts_of_minus_infinity_do_not_count, 3)
{
    static const int64_t counts[] = {SHORT_SOFTMAX, LONG_VECTORS, LONG};
    static const int64_t pieces[] = {1,    4,     37,    1024,  4096,
                                     5000, 16384, 20480, 39000, LONG};
    const int64_t count = counts[_i];
    for (size_t i = 0; i < sizeof(pieces) / sizeof(pieces[0]); i++) {
        const int64_t piece = pieces[i];
        if (piece >= count)
            break;
        masked_rows_check(count, 0, piece);
        masked_rows_check(count, count - piece, count);
        masked_rows_check(count, count / 2 - piece / 2,
                          count / 2 - piece / 2 + piece);
    }
    masked_rows_check(count, 0, count - 1);
    masked_rows_check(count, 1, count);
}

TEST_MAIN(opencl_tests_run("rows", device_new, device_close))
