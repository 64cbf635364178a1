/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reading and splitting the table of digits.  Owns nothing but what it puts
 * in the caller's struct table.  One thread at a time.
 */
#include "table.h"
#include "random.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum {
    COLUMNS = DIGIT_PIXELS + 1,
    LINE_BYTES = 512, /* the longest line that is right has 195 bytes */
    MAX_ROWS = 1000000,
    MIN_PER_CLASS = 5 /* so that a fifth is at least one */
};

void table_clear(struct table *table)
{
    free(table->images);
    free(table->labels);
    memset(table, 0, sizeof(*table));
}

/* A whole number of at most three digits at *text, which is moved past it. */
static bool number_read(const char **text, int *out_value)
{
    const char *digit = *text;
    int value = 0;

    while (*digit >= '0' && *digit <= '9' && digit - *text < 3)
        value = value * 10 + (*digit++ - '0');
    if (digit == *text)
        return false;
    *text = digit;
    *out_value = value;
    return true;
}

/* NULL, or what is wrong with the line. */
static const char *line_read(const char *text, float *image, int32_t *out_label)
{
    for (int i = 0; i < COLUMNS; i++) {
        bool label = i == DIGIT_PIXELS;
        int value;

        if (i > 0 && *text++ != ',')
            return "there are not 65 numbers with commas between them";
        if (!number_read(&text, &value))
            return "there are not 65 numbers with commas between them";
        if (!label && value > 16)
            return "a pixel is not from 0 to 16";
        if (label && value >= DIGIT_CLASSES)
            return "the label, the last number, is not from 0 to 9";
        if (label)
            *out_label = value;
        else
            image[i] = (float)value / 16.0f;
    }
    if (*text != '\0' && strcmp(text, "\n") != 0 && strcmp(text, "\r\n") != 0)
        return "there is more than 65 numbers";
    return NULL;
}

static bool table_grow(struct table *table, uint32_t *capacity)
{
    uint32_t rows = *capacity == 0 ? 2048 : *capacity * 2;
    float *images;
    int32_t *labels;

    images = realloc(table->images, rows * sizeof(*images) * DIGIT_PIXELS);
    if (images == NULL)
        return false;
    table->images = images;
    labels = realloc(table->labels, rows * sizeof(*labels));
    if (labels == NULL)
        return false;
    table->labels = labels;
    *capacity = rows;
    return true;
}

/* NULL, or what is wrong with the line after the table's last. */
static const char *rows_read(FILE *file, struct table *table)
{
    char line[LINE_BYTES];
    uint32_t capacity = 0;

    for (;;) {
        const char *wrong;
        size_t length;

        memset(line, 1, sizeof(line)); /* so that a byte 0 is the file's */
        if (fgets(line, sizeof(line), file) == NULL)
            break;
        length = strlen(line);
        if (length == sizeof(line) - 1)
            return "the line is too long";
        if (memchr(line + length + 1, 0, sizeof(line) - length - 1) != NULL)
            return "the line holds a byte 0";
        if (table->count == MAX_ROWS)
            return "there are more than a million lines";
        if (table->count == capacity && !table_grow(table, &capacity))
            return "memory is out";
        wrong = line_read(line,
                          table->images + (size_t)table->count * DIGIT_PIXELS,
                          table->labels + table->count);
        if (wrong != NULL)
            return wrong;
        table->count++;
    }
    if (ferror(file))
        return strerror(errno);
    return NULL;
}

static bool classes_suffice(const char *path, const struct table *table)
{
    uint32_t counts[DIGIT_CLASSES] = {0};

    for (uint32_t i = 0; i < table->count; i++)
        counts[table->labels[i]]++;
    for (int digit = 0; digit < DIGIT_CLASSES; digit++) {
        if (counts[digit] >= MIN_PER_CLASS)
            continue;
        fprintf(stderr, "digits: %s: has %u images of the digit %d, %d or more"
                " are needed\n", path, counts[digit], digit, MIN_PER_CLASS);
        return false;
    }
    return true;
}

bool table_read(const char *path, struct table *out)
{
    struct stat status;
    const char *wrong;
    FILE *file;

    memset(out, 0, sizeof(*out));
    file = fopen(path, "re");
    if (file == NULL || fstat(fileno(file), &status) != 0) {
        fprintf(stderr, "digits: %s: %s; name the table with --data FILE\n",
                path, strerror(errno));
        if (file != NULL)
            fclose(file);
        return false;
    }
    wrong = S_ISREG(status.st_mode) ? rows_read(file, out)
                                    : "this is not a regular file";
    fclose(file);
    if (wrong != NULL)
        fprintf(stderr, "digits: %s:%u: %s\n", path, out->count + 1, wrong);
    else if (classes_suffice(path, out))
        return true;
    table_clear(out);
    return false;
}

static void table_append(struct table *target, const struct table *source,
                         int32_t row)
{
    memcpy(target->images + (size_t)target->count * DIGIT_PIXELS,
           source->images + (size_t)row * DIGIT_PIXELS,
           DIGIT_PIXELS * sizeof(float));
    target->labels[target->count++] = source->labels[row];
}

static bool table_allocate(struct table *table, uint32_t rows)
{
    memset(table, 0, sizeof(*table));
    table->images = malloc(rows * sizeof(float) * DIGIT_PIXELS);
    table->labels = malloc(rows * sizeof(int32_t));
    return table->images != NULL && table->labels != NULL;
}

bool table_split(const struct table *table, uint64_t seed,
                 struct table *out_train, struct table *out_held)
{
    struct random_state random = {seed};
    int32_t *rows = malloc(table->count * sizeof(*rows));
    bool done = table_allocate(out_train, table->count);

    done = table_allocate(out_held, table->count) && done && rows != NULL;
    if (!done) {
        fprintf(stderr, "digits: memory is out\n");
        table_clear(out_train);
        table_clear(out_held);
        free(rows);
        return false;
    }
    for (int digit = 0; digit < DIGIT_CLASSES; digit++) {
        uint32_t count = 0;

        for (uint32_t i = 0; i < table->count; i++)
            if (table->labels[i] == digit)
                rows[count++] = (int32_t)i;
        random_shuffle(&random, rows, count);
        for (uint32_t i = 0; i < count; i++)
            table_append(i < (count + 2) / 5 ? out_held : out_train, table,
                         rows[i]);
    }
    free(rows);
    return true;
}
