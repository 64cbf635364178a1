/* SPDX-License-Identifier: Apache-2.0 */
/* Writes the driver blocklist; see driver_blocklist_writer.h. */
#include <config.h>

#include "driver_blocklist_writer.h"

#include "common/environment.h"
#include "common/secure_file.h"
#include "cl_probe.h"

#include <installed_directories.h>

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

void driver_test_results_add(struct driver_test_results *results,
                             const struct icd_list *drivers, const char *what)
{
    const time_t now = time(NULL);
    char when[32] = "";
    struct tm parts;

    if (gmtime_r(&now, &parts) != NULL)
        strftime(when, sizeof when, "%Y-%m-%dT%H:%M:%SZ", &parts);
    driver_records_add(&results->broken, when, what, drivers);
}

/* ---- what was on record before ---- */

/* Returns true if the driver was removed or replaced by another. */
static bool gone(const struct icd *icd)
{
    char library[ICD_TEXT_MAX];

    if (strcmp(icd->file, icd->library) == 0)
        return icd->file[0] == '/' && access(icd->file, F_OK) != 0;
    return !icd_file_read(icd->file, library) ||
           strcmp(library, icd->library) != 0;
}

static bool within(const struct icd_list *list, const struct icd_list *of)
{
    for (uint32_t i = 0; i < list->count; i++) {
        if (!icd_list_has(of, list->icds[i].library))
            return false;
    }
    return true;
}

/* Keeps an earlier entry unless this run tested its drivers or one of them was
 * removed. */
static void keep_earlier(struct driver_test_results *results,
                         const struct driver_record *record)
{
    const struct icd_list *drivers = &record->drivers;

    if (within(drivers,
               drivers->count == 1 ? &results->tested : &results->together))
        return;
    for (uint32_t i = 0; i < drivers->count; i++) {
        if (gone(&drivers->icds[i]))
            return;
    }
    driver_records_add(&results->broken, record->when, record->what, drivers);
}

/* ---- the file ---- */

/* Writes a field, without the characters that end a field. */
static void put_text(FILE *out, const char *text)
{
    for (; *text != '\0'; text++) {
        const unsigned char c = (unsigned char)*text;

        fputc(c < 0x20 || c == 0x7f ? '?' : c, out);
    }
}

/* Writes an absolute path, because readers have other current directories. */
static void put_file(FILE *out, const struct icd *icd)
{
    char *full = NULL;

    if (icd->file[0] != '/' && strcmp(icd->file, icd->library) != 0)
        full = realpath(icd->file, NULL);
    put_text(out, full != NULL ? full : icd->file);
    free(full);
}

/* Returns the text of the file, which the caller frees, or NULL if memory is
 * exhausted. */
static char *compose(const struct driver_records *records, size_t *out_bytes)
{
    char *text = NULL;
    FILE *out = open_memstream(&text, out_bytes);

    if (out == NULL)
        return NULL;
    fprintf(out, "%s\n", DRIVER_RECORD_HEAD);
    for (uint32_t i = 0; i < records->count; i++) {
        const struct driver_record *record = &records->records[i];

        put_text(out, record->when);
        fputc('\t', out);
        put_text(out, record->what);
        for (uint32_t k = 0; k < record->drivers.count; k++) {
            fputc('\t', out);
            put_file(out, &record->drivers.icds[k]);
            fputc('\t', out);
            put_text(out, record->drivers.icds[k].library);
        }
        fputc('\n', out);
    }
    if (fclose(out) == 0)
        return text;
    free(text);
    return NULL;
}

static bool write_file(const struct driver_records *records, const char *cache,
                       char *out_why)
{
    struct file_part part;
    int place;
    char *text = compose(records, &part.bytes);
    bool good;

    if (text == NULL) {
        snprintf(out_why, SECURE_WHY_BYTES, "no memory");
        return false;
    }
    part.data = text;
    place = secure_directory_open(cache, SECURE_WRITE, out_why);
    good =
        place >= 0 && file_replace_atomically(place, DRIVER_RECORD_NAME, &part,
                                              1, REPLACE_DURABLE, out_why);
    if (place >= 0)
        close(place);
    free(text);
    return good;
}

static bool remove_file(const char *cache, char *out_why)
{
    char path[PATH_MAX];
    const int length =
        snprintf(path, sizeof path, "%s/" DRIVER_RECORD_NAME, cache);

    int error;

    if (length < 0 || (size_t)length >= sizeof path || unlink(path) == 0)
        return true;
    error = errno;
    if (access(path, F_OK) != 0) /* it is missing, or nobody here can read it */
        return true;
    snprintf(out_why, SECURE_WHY_BYTES, "%s", strerror(error));
    return false;
}

/* Prints that the blocklist is insecure or invalid.  It is that of the system
 * if the user's cache directory is secure and has none. */
static void complain_unused(const char *cache, const char *why)
{
    char own_why[SECURE_WHY_BYTES];
    struct driver_records records = {0};
    const bool own =
        cache != NULL &&
        driver_records_read(cache, &records, own_why) == DRIVER_RECORD_REFUSED;

    driver_records_finish(&records);
    probe_complain("the driver blocklist in %s is not used: %s",
                   own ? cache : STATEDIR, why);
}

bool driver_test_results_write(struct driver_test_results *results,
                               char *out_problem)
{
    char cache[PATH_MAX], why[SECURE_WHY_BYTES] = "";
    struct driver_records before, system;
    bool has_cache, good;

    has_cache = environment_cache(cache, sizeof cache);
    if (driver_records_find(has_cache ? cache : NULL, STATEDIR, &before, why) ==
        DRIVER_RECORD_REFUSED)
        complain_unused(has_cache ? cache : NULL, why);
    for (uint32_t i = 0; i < before.count; i++)
        keep_earlier(results, &before.records[i]);
    driver_records_finish(&before);
    driver_records_read(STATEDIR, &system, why);
    if (!has_cache) {
        snprintf(why, sizeof why, "neither XDG_CACHE_HOME nor HOME says where");
        good = results->broken.count == 0 && system.count == 0;
    } else if (results->broken.count > 0 || system.count > 0) {
        good = write_file(&results->broken, cache, why);
    } else {
        good = remove_file(cache, why);
    }
    driver_records_finish(&system);
    driver_records_finish(&results->broken);
    icd_list_finish(&results->tested);
    icd_list_finish(&results->together);
    if (!good)
        snprintf(out_problem, DRIVER_PROBLEM_BYTES,
                 DRIVER_BLOCKLIST_UNWRITTEN " (%s): %s",
                 has_cache ? cache : "no cache directory", why);
    return good;
}
