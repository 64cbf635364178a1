/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Compares a result with an earlier one; see result_document.h.
 */
#include <config.h>

#include "result_document.h"

#include "../common/text_table.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Smaller changes are noise: unchanged code differs by this fraction. */
#define MIN_REPORTED_CHANGE 0.03

struct change_counts {
    struct table table;
    size_t same, slower, faster, gone, added, other;
};

static const json_t *find_row(const json_t *document, const json_t *like)
{
    static const char *const keys[] = {"device", "suite", "name"};
    const json_t *row;
    size_t i;

    json_array_foreach (json_object_get(document, "rows"), i, row) {
        bool same = true;

        for (size_t j = 0; j < sizeof keys / sizeof keys[0]; j++)
            same = same &&
                   strcmp(row_text(row, keys[j]), row_text(like, keys[j])) == 0;
        if (same)
            return row;
    }
    return NULL;
}

static void add_line(struct change_counts *counts, const json_t *row,
                     const char *was, const char *is, const char *change,
                     const char *beside)
{
    table_row(&counts->table);
    table_cell(&counts->table, "%s %s: %s", row_text(row, "device"),
               row_text(row, "suite"), row_text(row, "name"));
    table_cell(&counts->table, "%s", was);
    table_cell(&counts->table, "%s", is);
    table_cell(&counts->table, "%s", change);
    table_cell(&counts->table, "%s", beside);
}

/* Writes how the first common reference changed, which shows changes of the
 * machine. */
static void reference_change(const json_t *was, const json_t *is, char out[64])
{
    const json_t *implementations = json_object_get(is, "implementations"),
                 *implementation;
    size_t i;

    out[0] = '\0';
    json_array_foreach (implementations, i, implementation) {
        const json_t *other =
            row_implementation(was, row_text(implementation, "name"));

        if (i == 0 || other == NULL)
            continue;
        snprintf(
            out, 64, "%.30s %+.1f%%", row_text(implementation, "name"),
            100 * (row_number(implementation, "ns") / row_number(other, "ns") -
                   1));
        return;
    }
}

static void compare_times(struct change_counts *counts, const json_t *was,
                          const json_t *is)
{
    const json_t *a = row_implementation(was, NULL),
                 *b = row_implementation(is, NULL);
    double change = row_number(b, "ns") / row_number(a, "ns") - 1;
    double spread = row_number(a, "iqr_ratio") + row_number(b, "iqr_ratio");
    char before[TEXT_BYTES], after[TEXT_BYTES], text[48], beside[64];

    if (fabs(change) <= fmax(spread, MIN_REPORTED_CHANGE)) {
        counts->same++;
        return;
    }
    if (change > 0)
        counts->slower++;
    else
        counts->faster++;
    snprintf(text, sizeof text, "%s %.1f%%", change > 0 ? "SLOWER" : "faster",
             100 * fabs(change));
    reference_change(was, is, beside);
    add_line(counts, is, row_result_text(before, was, a),
             row_result_text(after, is, b), text, beside);
}

static void compare_row(struct change_counts *counts, const json_t *was,
                        const json_t *is)
{
    const char *before = row_text(was, "status");
    const char *after = row_text(is, "status");

    if (strcmp(before, after) != 0) {
        counts->other++;
        add_line(counts, is, before, after, "", "");
    } else if (strcmp(after, "measured") == 0) {
        compare_times(counts, was, is);
    }
}

static void differ(const char *of, const char *key, const json_t *was,
                   const json_t *is, FILE *out)
{
    char *before, *after;

    if (json_equal(json_object_get(was, key), json_object_get(is, key)))
        return;
    before = json_dumps(json_object_get(was, key), JSON_ENCODE_ANY);
    after = json_dumps(json_object_get(is, key), JSON_ENCODE_ANY);
    fprintf(out, "differs: %s %s: was %s, is %s\n", of, key,
            before == NULL ? "not told" : before,
            after == NULL ? "not told" : after);
    free(before);
    free(after);
}

static const json_t *find_device(const json_t *document, const char *name)
{
    const json_t *device;
    size_t i;

    json_array_foreach (json_object_get(document, "devices"), i, device)
        if (strcmp(row_text(device, "device"), name) == 0)
            return device;
    return NULL;
}

/* Prints differences in machine, device, driver, sizes and options, which may
 * explain changes. */
static void print_differences(const json_t *earlier, const json_t *now,
                              FILE *out)
{
    static const char *const of_machine[] = {"processor", "cpus", "system"};
    static const char *const of_device[] = {"name", "platform", "driver",
                                            "scale"};
    const json_t *device, *was;
    size_t i;

    for (i = 0; i < sizeof of_machine / sizeof of_machine[0]; i++)
        differ("machine", of_machine[i], json_object_get(earlier, "machine"),
               json_object_get(now, "machine"), out);
    /* Earlier versions omit the member if there are no options. */
    if (json_object_size(json_object_get(earlier, "open_options")) +
            json_object_size(json_object_get(now, "open_options")) >
        0)
        differ("devices'", "open_options", earlier, now, out);
    json_array_foreach (json_object_get(now, "devices"), i, device) {
        was = find_device(earlier, row_text(device, "device"));
        for (size_t j = 0; was != NULL && j < 4; j++)
            differ(row_text(device, "device"), of_device[j], was, device, out);
    }
}

size_t document_compare(const json_t *earlier, const json_t *now, FILE *out,
                        size_t *out_common)
{
    struct change_counts counts = {.table.fold = 1};
    const json_t *row;
    size_t i;

    print_differences(earlier, now, out);
    table_row(&counts.table);
    table_cell(&counts.table, "against %s of %s", row_text(earlier, "version"),
               row_text(earlier, "date"));
    table_cell(&counts.table, "was");
    table_cell(&counts.table, "is");
    table_cell(&counts.table, "time");
    table_cell(&counts.table, "its reference");
    json_array_foreach (json_object_get(now, "rows"), i, row) {
        const json_t *was = find_row(earlier, row);

        if (was == NULL)
            counts.added++;
        else
            compare_row(&counts, was, row);
    }
    json_array_foreach (json_object_get(earlier, "rows"), i, row)
        if (find_row(now, row) == NULL) {
            counts.gone++;
            add_line(&counts, row, "", "", "not in this run", "");
        }
    table_print(&counts.table, out);
    table_destroy(&counts.table);
    fprintf(out,
            "  %zu slower, %zu faster, %zu within the spread, %zu of another "
            "status, %zu new, %zu not in this run\n",
            counts.slower, counts.faster, counts.same, counts.other,
            counts.added, counts.gone);
    *out_common = json_array_size(json_object_get(now, "rows")) - counts.added;
    return counts.slower;
}
