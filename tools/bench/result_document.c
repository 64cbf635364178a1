/* SPDX-License-Identifier: Apache-2.0 */
/* Creates and writes results as JSON; see result_document.h. */
#include <config.h>

#include "result_document.h"

#include "../../src/common/cpu_info.h"

#include <stdio.h>
#include <sys/utsname.h>
#include <unistd.h>

#define REALS JSON_REAL_PRECISION(6)

json_t *document_create(const struct bench *bench)
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
    for (uint32_t i = 0; i < bench->open_options.count; i++)
        json_object_set_new(options, bench->open_options.keys[i],
                            json_string(bench->open_options.values[i]));
    return json_pack(
        "{s:s, s:s, s:s, s:{s:s, s:i, s:s}, s:i, s:I, s:o, s:[], s:[]}",
        "schema", "tandem-bench 2", "version", tandem_version(), "date", date,
        "machine", "processor", processor, "cpus",
        (int)sysconf(_SC_NPROCESSORS_ONLN), "system", system, "samples",
        (int)bench->samples, "seed", (json_int_t)bench->seed, "open_options",
        options, "devices", "rows");
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
