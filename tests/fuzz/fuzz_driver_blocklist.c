/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Parses arbitrary bytes as a driver blocklist. All texts in the result must
 * be non-empty. If the first byte is 'r', the rest are lines after a valid
 * first line.
 */
#include <config.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/driver_blocklist.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

#define HEAD DRIVER_RECORD_HEAD "\n"

static void expect(bool good, const char *what)
{
    if (good)
        return;
    fprintf(stderr, "%s\n", what);
    abort();
}

static void check_records(const struct driver_records *records)
{
    expect(records->count <= DRIVER_RECORDS_MAX, "too many records");
    for (uint32_t i = 0; i < records->count; i++) {
        const struct driver_record *record = &records->records[i];

        expect(record->when != NULL && record->what != NULL, "no text");
        expect(record->drivers.count > 0, "a record of no driver");
        expect(record->drivers.count <= ICD_COUNT_MAX, "too many drivers");
        for (uint32_t j = 0; j < record->drivers.count; j++) {
            expect(record->drivers.icds[j].file[0] != '\0' &&
                       record->drivers.icds[j].library[0] != '\0',
                   "a driver without a name");
            expect(strchr(record->drivers.icds[j].library, '\t') == NULL,
                   "two fields in one");
        }
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    const bool lines = bytes > 0 && data[0] == 'r';
    const size_t head = lines ? sizeof(HEAD) - 1 : 0;
    const size_t rest = lines ? bytes - 1 : bytes;
    struct driver_records records = {0};
    char *text = malloc(head + rest + 1);

    expect(text != NULL, "out of memory");
    memcpy(text, HEAD, head);
    if (rest > 0)
        memcpy(text + head, data + bytes - rest, rest);
    text[head + rest] = '\0';
    (void)driver_records_parse(text, head + rest, &records);
    check_records(&records);
    driver_records_finish(&records);
    free(text);
    return 0;
}
