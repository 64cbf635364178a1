/* SPDX-License-Identifier: Apache-2.0 */
/* Names the CPU; see cpu_info.h. */
#include <config.h>

#include "common/cpu_info.h"

#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>

/* Linux identifies AArch64 CPUs only by the numbers of the MIDR register. This
 * table names common CPUs; other CPUs are shown as numbers. */
static const struct {
    unsigned implementer, part;
    const char *name;
} arm_parts[] = {
    {0x41, 0xd03, "Arm Cortex-A53"},   {0x41, 0xd05, "Arm Cortex-A55"},
    {0x41, 0xd07, "Arm Cortex-A57"},   {0x41, 0xd08, "Arm Cortex-A72"},
    {0x41, 0xd0b, "Arm Cortex-A76"},   {0x41, 0xd0c, "Arm Neoverse N1"},
    {0x41, 0xd40, "Arm Neoverse V1"},  {0x41, 0xd49, "Arm Neoverse N2"},
    {0x41, 0xd4f, "Arm Neoverse V2"},  {0x46, 0x001, "Fujitsu A64FX"},
    {0x48, 0xd01, "HiSilicon TSV110"}, {0xc0, 0xac3, "Ampere-1"},
};

static void value_read(FILE *cpuinfo, const char *key, char *out, size_t bytes)
{
    const size_t length = strlen(key);
    char line[512];

    out[0] = '\0';
    rewind(cpuinfo);
    while (fgets(line, sizeof(line), cpuinfo) != NULL) {
        const char *value = line + length;

        if (strncmp(line, key, length) != 0)
            continue;
        value += strspn(value, " \t");
        if (*value != ':')
            continue;
        value += strspn(value, ": \t");
        snprintf(out, bytes, "%.*s", (int)strcspn(value, "\n"), value);
        return;
    }
}

static void arm_name_read(FILE *cpuinfo, char *out, size_t bytes)
{
    char implementer[16], part[16];

    value_read(cpuinfo, "CPU implementer", implementer, sizeof(implementer));
    value_read(cpuinfo, "CPU part", part, sizeof(part));
    if (implementer[0] == '\0' || part[0] == '\0')
        return;
    for (size_t i = 0; i < sizeof(arm_parts) / sizeof(arm_parts[0]); i++) {
        if (strtoul(implementer, NULL, 0) == arm_parts[i].implementer &&
            strtoul(part, NULL, 0) == arm_parts[i].part) {
            snprintf(out, bytes, "%s", arm_parts[i].name);
            return;
        }
    }
    snprintf(out, bytes, "AArch64 (implementer %s, part %s)", implementer,
             part);
}

void processor_name_read(FILE *cpuinfo, char *out, size_t bytes)
{
    value_read(cpuinfo, "model name", out, bytes);
    if (out[0] == '\0')
        arm_name_read(cpuinfo, out, bytes);
}

void processor_name(char *out, size_t bytes)
{
    FILE *file = fopen("/proc/cpuinfo", "re");
    struct utsname names;

    out[0] = '\0';
    if (file != NULL) {
        processor_name_read(file, out, bytes);
        fclose(file);
    }
    if (out[0] == '\0' && uname(&names) == 0)
        snprintf(out, bytes, "%s", names.machine);
}

void processor_value(const char *key, char *out, size_t bytes)
{
    FILE *file = fopen("/proc/cpuinfo", "re");

    out[0] = '\0';
    if (file == NULL)
        return;
    value_read(file, key, out, bytes);
    fclose(file);
}
