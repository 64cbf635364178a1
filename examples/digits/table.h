/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The table of digits: read from a text file that is not trusted, and split
 * into images to train on and images held out.  One thread at a time.
 */
#ifndef DIGITS_TABLE_H
#define DIGITS_TABLE_H

#include <stdbool.h>
#include <stdint.h>

#define DIGIT_PIXELS 64
#define DIGIT_CLASSES 10

struct table {
    uint32_t count;
    float *images; /* [count][DIGIT_PIXELS], 0 to 1 */
    int32_t *labels;
};

/* Reads a file of lines of 64 pixels (0 to 16) and a label (0 to 9).  On
 * failure says why on standard error, and *out is empty. */
bool table_read(const char *path, struct table *out);

/* Shuffles each class by seed and puts a fifth of it, rounded, in out_held,
 * the rest in out_train.  On failure both are empty. */
bool table_split(const struct table *table, uint64_t seed,
                 struct table *out_train, struct table *out_held);

/* An emptied table is accepted. */
void table_clear(struct table *table);

#endif
