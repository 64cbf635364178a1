/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The list of rows to measure.  tandem-bench runs it, --list prints it, and
 * pytorch_baseline.py runs the same rows.  Needs no device.
 */
#ifndef TANDEM_BENCH_ROW_LIST_H
#define TANDEM_BENCH_ROW_LIST_H

#include <tandem/backend.h>

#include <jansson.h>

/* Sizes of the work: for tests, for a CPU, for a GPU. */
enum scale { SCALE_TINY, SCALE_SMALL, SCALE_FULL, SCALES };
extern const char *const scale_names[SCALES];

struct row {
    const char *suite;
    const char *op;   /* name in the operator table, or another activity */
    const char *mode; /* "stream": resident data, many launches, one wait;
                         "wait": a wait after each; "host": from the host's
                         memory to it; others are the suite's */
    char detail[48];  /* "axis=0", "bias+relu", "tf32", ... or "" */
    uint32_t rank;
    int64_t shape[TANDEM_MAX_RANK]; /* of a transfer: the number of bytes */
    char name[96]; /* made of all the above; unique in its suite */
};

struct list {
    enum scale scale;
    /* The device whose memory must hold the work, or NULL if not known yet. */
    const struct tandem_device_info *device;
    bool chosen; /* the library chooses the device; the data is on the host */
    const char *suite; /* suite of the rows that are added */
    struct row *rows;
    size_t count, room;
    size_t skipped_rows; /* number of rows that were too large */
};

/* Returns the largest number of elements that a row may have at the list's
 * scale so that three such operands and a copy of them fit the device. */
double list_fitting_elements(const struct list *list);

/* Adds a row.  `shape` is a text such as "4096x1000". */
void list_add(struct list *list, const char *op, const char *shape,
              const char *detail, const char *mode);
/* Adds a row, or counts it in skipped_rows if it is too large. */
void list_add_shape(struct list *list, const char *op, uint32_t rank,
                    const int64_t *shape, const char *detail, const char *mode);
void list_destroy(struct list *list);

/* Returns true if the row's detail contains the word. */
bool row_has(const struct row *row, const char *word);
json_t *row_json(const struct row *row);

#endif
