/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Creates, reads and writes results as JSON; see result_document.h.
 */
#include <config.h>

#include "result_document.h"

#include "../../src/common/cpu_info.h"
#include "../common/text_table.h"

#include <tandem/host.h>

#include <string.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

#define REALS JSON_REAL_PRECISION(6)

const char *const format_names[FORMATS] = {"text", "json", "markdown", "svg"};

json_t *document_create(uint32_t samples, uint64_t seed,
                        const struct open_options *open_options)
{
    json_t *options = json_object();
    char processor[128] = "", date[32] = "", system[256] = "";
    time_t now = time(NULL);
    struct utsname names;
    struct tm utc;

    processor_name(processor, sizeof processor);
    if (gmtime_r(&now, &utc) != NULL)
        strftime(date, sizeof date, "%Y-%m-%dT%H:%M:%SZ", &utc);
    if (uname(&names) == 0)
        snprintf(system, sizeof system, "%.64s %.100s %.64s", names.sysname,
                 names.release, names.machine);
    for (uint32_t i = 0; i < open_options->count; i++)
        json_object_set_new(options, open_options->keys[i],
                            json_string(open_options->values[i]));
    return json_pack(
        "{s:s, s:s, s:s, s:{s:s, s:i, s:s}, s:i, s:I, s:o, s:[], s:[]}",
        "schema", DOCUMENT_SCHEMA, "version", tandem_version(), "date", date,
        "machine", "processor", processor, "cpus",
        (int)sysconf(_SC_NPROCESSORS_ONLN), "system", system, "samples",
        (int)samples, "seed", (json_int_t)seed, "open_options", options,
        "devices", "rows");
}

static bool well_formed(const json_t *document)
{
    const json_t *rows = json_object_get(document, "rows"), *row;
    size_t i;

    if (strcmp(row_text(document, "schema"), DOCUMENT_SCHEMA) != 0 ||
        !json_is_array(rows) ||
        !json_is_array(json_object_get(document, "devices")))
        return false;
    json_array_foreach (rows, i, row)
        if (row_text(row, "name")[0] == '\0' ||
            (strcmp(row_text(row, "status"), "measured") == 0 &&
             row_number(row_implementation(row, NULL), "ns") <= 0))
            return false;
    return true;
}

json_t *document_read(const char *path)
{
    json_error_t error;
    json_t *document = json_load_file(path, JSON_REJECT_DUPLICATES, &error);

    if (document == NULL)
        fprintf(stderr, "tandem-bench: %s: %s\n", path, error.text);
    else if (!well_formed(document))
        fprintf(stderr, "tandem-bench: %s is no result of the schema \"%s\"\n",
                path, DOCUMENT_SCHEMA);
    else
        return document;
    json_decref(document);
    return NULL;
}

static void write_array(const json_t *array, FILE *out)
{
    const json_t *item;
    size_t i;

    fputs("[", out);
    json_array_foreach (array, i, item) {
        fputs(i == 0 ? "\n  " : ",\n  ", out);
        json_dumpf(item, out, REALS);
    }
    fputs("\n ]", out);
}

void document_write(const json_t *document, FILE *out)
{
    const char *key, *separator = "";
    json_t *value;

    fputs("{", out);
    json_object_foreach ((json_t *)document, key, value) {
        fprintf(out, "%s\n \"%s\": ", separator, key);
        if (json_is_array(value))
            write_array(value, out);
        else
            json_dumpf(value, out, REALS | JSON_ENCODE_ANY);
        separator = ",";
    }
    fputs("\n}\n", out);
}

/* ---- rows ---- */

const char *row_text(const json_t *row, const char *key)
{
    const char *text = json_string_value(json_object_get(row, key));

    return text == NULL ? "" : text;
}

double row_number(const json_t *row, const char *key)
{
    return json_number_value(json_object_get(row, key));
}

const json_t *row_implementation(const json_t *row, const char *name)
{
    const json_t *implementations = json_object_get(row, "implementations"),
                 *implementation;
    size_t i;

    if (name == NULL)
        return json_array_get(implementations, 0);
    json_array_foreach (implementations, i, implementation)
        if (strcmp(row_text(implementation, "name"), name) == 0)
            return implementation;
    return NULL;
}

double row_upper_bound_fraction(const json_t *row)
{
    const char *limit = row_text(row, "upper_bound");
    const json_t *implementation =
        limit[0] == '\0' ? NULL : row_implementation(row, limit);
    double ours = row_number(row_implementation(row, NULL), "ns");

    return implementation == NULL || ours <= 0
               ? 0
               : row_number(implementation, "ns") / ours;
}

char *row_result_text(char *out, const json_t *row,
                      const json_t *implementation)
{
    double work = row_number(row, "work_amount"),
           ns = row_number(implementation, "ns");
    double rate = ns > 0 ? work / ns : 0;

    if (work <= 0)
        return text_ns(out, ns);
    snprintf(out, TEXT_BYTES, rate < 1000 ? "%.4g %.12s" : "%.0f %.12s", rate,
             row_text(row, "unit"));
    return out;
}
