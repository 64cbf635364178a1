/* SPDX-License-Identifier: Apache-2.0 */
/* Reads and extends the blocklist of OpenCL drivers; see driver_blocklist.h. */
#include <config.h>

#include "common/driver_blocklist.h"
#include "common/secure_file.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ---- records ---- */

static void record_finish(struct driver_record *record)
{
    free(record->when);
    free(record->what);
    icd_list_finish(&record->drivers);
    *record = (struct driver_record){0};
}

void driver_records_finish(struct driver_records *records)
{
    for (uint32_t i = 0; i < records->count; i++)
        record_finish(&records->records[i]);
    free(records->records);
    *records = (struct driver_records){0};
}

bool driver_records_add(struct driver_records *records, const char *when,
                        const char *what, const struct icd_list *drivers)
{
    struct driver_record *record;
    bool good;

    if (records->records == NULL)
        records->records = calloc(DRIVER_RECORDS_MAX, sizeof(*record));
    if (records->records == NULL || records->count == DRIVER_RECORDS_MAX)
        return false;
    record = &records->records[records->count];
    record->when = strdup(when);
    record->what = strdup(what);
    good = record->when != NULL && record->what != NULL;
    for (uint32_t i = 0; i < drivers->count && good; i++)
        good = icd_list_add(&record->drivers, drivers->icds[i].file,
                            drivers->icds[i].library);
    if (good)
        records->count++;
    else
        record_finish(record);
    return good;
}

const struct driver_record *
driver_records_match(const struct driver_records *records,
                     const struct icd_list *list)
{
    for (uint32_t i = 0; i < records->count; i++) {
        const struct icd_list *drivers = &records->records[i].drivers;
        uint32_t there = 0;

        while (there < drivers->count &&
               icd_list_has(list, drivers->icds[there].library))
            there++;
        if (there == drivers->count)
            return &records->records[i];
    }
    return NULL;
}

/* ---- the file ---- */

static bool line_parse(char *line, struct driver_records *out)
{
    struct icd_list drivers = {0};
    char *rest = line, *when = strsep(&rest, "\t"), *what = strsep(&rest, "\t");
    char *file, *library;
    bool good = what != NULL && rest != NULL;

    while (good && (file = strsep(&rest, "\t")) != NULL) {
        library = strsep(&rest, "\t");
        good = library != NULL && library[0] != '\0' && file[0] != '\0' &&
               icd_list_add(&drivers, file, library);
    }
    good = good && driver_records_add(out, when, what, &drivers);
    icd_list_finish(&drivers);
    return good;
}

/* Returns true if the text ends with a newline and has no control characters
 * except tabs and newlines. */
static bool text_plain(const char *text, size_t bytes)
{
    for (size_t i = 0; i < bytes; i++) {
        const unsigned char c = (unsigned char)text[i];

        if ((c < 0x20 && c != '\t' && c != '\n') || c == 0x7f)
            return false;
    }
    return bytes > 0 && text[bytes - 1] == '\n';
}

const char *driver_records_parse(char *text, size_t bytes,
                                 struct driver_records *out)
{
    char *line = text, *end;
    bool first = true;

    if (!text_plain(text, bytes))
        return "it is no whole text";
    for (; (end = strchr(line, '\n')) != NULL; line = end + 1) {
        *end = '\0';
        if (first && strcmp(line, DRIVER_RECORD_HEAD) != 0)
            return "it does not begin with \"" DRIVER_RECORD_HEAD "\"";
        if (!first && !line_parse(line, out))
            return "a line of it is not understood";
        first = false;
    }
    return NULL;
}

enum driver_record_end driver_records_read(const char *directory,
                                           struct driver_records *out,
                                           char *out_why)
{
    const int place = secure_directory_open(directory, SECURE_READ, out_why);
    const char *problem;
    char *text = NULL;
    size_t bytes;

    *out = (struct driver_records){0};
    if (place >= 0) {
        text = secure_file_read(place, DRIVER_RECORD_NAME,
                                DRIVER_RECORD_BYTES_MAX, &bytes, out_why);
        close(place);
    }
    if (text == NULL)
        return out_why[0] == '\0' ? DRIVER_RECORD_ABSENT
                                  : DRIVER_RECORD_REFUSED;
    problem = driver_records_parse(text, bytes, out);
    free(text);
    if (problem == NULL)
        return DRIVER_RECORD_READ;
    driver_records_finish(out);
    snprintf(out_why, SECURE_WHY_BYTES, "%s", problem);
    return DRIVER_RECORD_REFUSED;
}

enum driver_record_end driver_records_find(const char *cache,
                                           const char *system,
                                           struct driver_records *out,
                                           char *out_why)
{
    enum driver_record_end end = DRIVER_RECORD_ABSENT;

    *out = (struct driver_records){0};
    if (cache != NULL)
        end = driver_records_read(cache, out, out_why);
    if (end == DRIVER_RECORD_ABSENT)
        end = driver_records_read(system, out, out_why);
    return end;
}
