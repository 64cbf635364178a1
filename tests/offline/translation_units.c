/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writes variants as source files. A translation unit contains a .cl file once
 * for each variant, with the variant's options as macros, and with all names
 * that the file declares (functions, types, macros) made unique. Compiling
 * many kernels together takes much less time than compiling each alone.
 */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "opencl/device/device_enumeration.h"
#include "opencl/plan/kernel_info.h"
#include "variants.h"

#define MAX_UNITS 64u
#define MAX_NAMES 256u
#define NAME_BYTES 64u
#define LABEL_BYTES 160u

struct unit {
    FILE *file;
    char name[NAME_BYTES];
    const char *cl; /* "reduce.cl" */
    char shared[KERNEL_OPTION_BYTES];
    uint32_t variants;
    /* The options of each variant, to skip duplicates. */
    char (*own)[KERNEL_OPTION_BYTES];
};

struct options {
    /* Options of the compiler and of indexing.cl. */
    char shared[KERNEL_OPTION_BYTES];
    char own[KERNEL_OPTION_BYTES]; /* Options of the .cl file. */
};

struct names {
    char name[MAX_NAMES][NAME_BYTES];
    uint32_t count;
};

/* ---- options ---- */

static void join(char *text, size_t bytes, const char *word)
{
    size_t used = strlen(text);
    snprintf(text + used, bytes - used, "%s%s", used > 0 ? " " : "", word);
}

/* Returns true if word is "-DNAME..." and indexing.cl does not use NAME. */
static bool option_own(const char *source, const char *word)
{
    static const char directive[] = "#line ";
    char guard[NAME_BYTES];
    const char *file = NULL;
    if (strncmp(word, "-D", 2) != 0)
        return false;
    snprintf(guard, sizeof(guard), "#ifndef %.*s\n",
             (int)strcspn(word + 2, "="), word + 2);
    const char *found = strstr(source, guard);
    /* The last directive before the guard names the file. */
    for (const char *at = source; found != NULL && at != NULL && at < found;
         at = strstr(at + 1, directive))
        file = at;
    const char *name = file != NULL ? strstr(file, "\"indexing.cl\"\n") : NULL;
    return name == NULL || name > file + strcspn(file, "\n");
}

static void options_split(struct options *out, const char *source,
                          const char *options)
{
    char text[KERNEL_OPTION_BYTES], *rest = NULL;
    out->shared[0] = out->own[0] = '\0';
    snprintf(text, sizeof(text), "%s", options);
    for (char *word = strtok_r(text, " ", &rest); word != NULL;
         word = strtok_r(NULL, " ", &rest)) {
        char *list = option_own(source, word) ? out->own : out->shared;
        join(list, KERNEL_OPTION_BYTES, word);
    }
}

/* Returns a label of the variant's own options, like "op_add_2_float". */
static void label_make(char *out, const char *own)
{
    char text[KERNEL_OPTION_BYTES], *rest = NULL;
    out[0] = '\0';
    snprintf(text, sizeof(text), "%s", own);
    for (char *word = strtok_r(text, " ", &rest); word != NULL;
         word = strtok_r(NULL, " ", &rest)) {
        const char *value = strchr(word, '=');
        size_t used = strlen(out);
        snprintf(out + used, LABEL_BYTES - used, "_%s",
                 value != NULL ? value + 1 : word + strlen("-D"));
    }
}

/* ---- names that a .cl file declares ---- */

static void name_add(struct names *names, const char *start, const char *end)
{
    size_t length = (size_t)(end - start);
    if (length == 0 || length >= NAME_BYTES || names->count == MAX_NAMES)
        return;
    char *name = names->name[names->count];
    memcpy(name, start, length);
    name[length] = '\0';
    for (uint32_t i = 0; i < names->count; i++)
        if (strcmp(names->name[i], name) == 0)
            return;
    names->count++;
}

static bool in_name(char c)
{
    return isalnum((unsigned char)c) || c == '_';
}

/* Adds the name that ends before end. */
static void name_add_before(struct names *names, const char *line,
                            const char *end)
{
    const char *start = end;
    while (start > line && in_name(start[-1]))
        start--;
    name_add(names, start, end);
}

/* If the line starts with this word, returns the text after it. */
static const char *after_word(const char *line, const char *word)
{
    size_t length = strlen(word);
    return strncmp(line, word, length) == 0 ? line + length : NULL;
}

/* Adds the names that a line starting in the first column declares. */
static void line_scan(struct names *types, struct names *macros,
                      const char *line, const char *end)
{
    const char *rest = after_word(line, "#define ");
    if (rest != NULL) {
        const char *stop = rest;
        while (in_name(*stop))
            stop++;
        name_add(macros, rest, stop);
        return;
    }
    /* params.cl */
    const char *size = after_word(line, "PARAMS_SIZE(");
    if (size != NULL) {
        char name[NAME_BYTES];
        snprintf(name, sizeof(name), "%.*s_size_check", (int)strcspn(size, ","),
                 size);
        name_add(types, name, name + strlen(name));
        return;
    }
    const char *typedefs = after_word(line, "typedef ");
    const char *body = typedefs != NULL ? typedefs : line;
    if (after_word(body, "struct ") != NULL && end[-1] == '{')
        name_add_before(types, body, end - 2);
    else if ((typedefs != NULL || line[0] == '}') && end[-1] == ';')
        name_add_before(types, line, end - 1);
    else if (isalpha((unsigned char)line[0]) && typedefs == NULL) {
        const char *paren = memchr(line, '(', (size_t)(end - line));
        if (paren != NULL)
            name_add_before(types, line, paren);
    }
}

/* A line of a kernel's source. Lines of the files in shared_files depend only
 * on the shared options, so a unit contains them once. */
struct line {
    const char *start, *end;
    bool shared;
};

static const char *const shared_files[] = {"float16.cl",     "indexing.cl",
                                           "lane_reduce.cl", "math.cl",
                                           "operators.cl",   "params.cl"};

/*
 * Advances to the next line. Before the first call, end points to the source.
 */
static bool line_next(struct line *line)
{
    char directive[NAME_BYTES];
    line->start = line->end;
    if (*line->start == '\n')
        line->start++;
    if (*line->start == '\0')
        return false;
    line->end = line->start + strcspn(line->start, "\n");
    const char *file = after_word(line->start, "#line ");
    if (file == NULL)
        return true;
    file = strchr(file, '"');
    line->shared = false;
    for (size_t i = 0; i < sizeof(shared_files) / sizeof(*shared_files); i++) {
        snprintf(directive, sizeof(directive), "\"%s\"\n", shared_files[i]);
        line->shared = line->shared || after_word(file, directive) != NULL;
    }
    return true;
}

static void source_scan(struct names *own, struct names *macros,
                        const char *source)
{
    struct line line = {.end = source};
    own->count = macros->count = 0;
    while (line_next(&line))
        if (!line.shared && line.end > line.start)
            line_scan(own, macros, line.start, line.end);
}

/* ---- writing ---- */

/* Writes the shared lines of a source, or all other lines. */
static void lines_write(FILE *file, const char *source, bool shared)
{
    struct line line = {.end = source};
    while (line_next(&line))
        if (line.shared == shared)
            fprintf(file, "%.*s\n", (int)(line.end - line.start), line.start);
}

static void defines_write(FILE *file, const char *own)
{
    char text[KERNEL_OPTION_BYTES], *rest = NULL;
    snprintf(text, sizeof(text), "%s", own);
    for (char *word = strtok_r(text, " ", &rest); word != NULL;
         word = strtok_r(NULL, " ", &rest)) {
        char *value = strchr(word, '=');
        if (value != NULL)
            *value++ = '\0';
        fprintf(file, "#define %s %s\n", word + 2, value != NULL ? value : "1");
    }
}

static void undefs_write(FILE *file, const char *own)
{
    char text[KERNEL_OPTION_BYTES], *rest = NULL;
    snprintf(text, sizeof(text), "%s", own);
    for (char *word = strtok_r(text, " ", &rest); word != NULL;
         word = strtok_r(NULL, " ", &rest))
        fprintf(file, "#undef %.*s\n", (int)strcspn(word + 2, "="), word + 2);
}

static void variant_write(struct unit *unit, const struct kernel_source *text,
                          const char *own)
{
    struct names names, macros;
    char label[LABEL_BYTES];
    label_make(label, own);
    source_scan(&names, &macros, text->kernel->source);
    defines_write(unit->file, own);
    for (uint32_t i = 0; i < names.count; i++)
        fprintf(unit->file, "#define %s %s%s\n", names.name[i], names.name[i],
                label);
    lines_write(unit->file, text->kernel->source, false);
    for (uint32_t i = 0; i < names.count; i++)
        fprintf(unit->file, "#undef %s\n", names.name[i]);
    for (uint32_t i = 0; i < macros.count; i++)
        fprintf(unit->file, "#undef %s\n", macros.name[i]);
    undefs_write(unit->file, own);
}

/* ---- units ---- */

static struct unit *unit_open(struct unit *units, uint32_t *count,
                              const char *directory,
                              const struct kernel_source *text,
                              const char *shared, uint32_t variants)
{
    uint32_t number = 1;
    char path[4096];
    for (uint32_t i = 0; i < *count; i++) {
        if (strcmp(units[i].cl, text->kernel->file) != 0)
            continue;
        if (strcmp(units[i].shared, shared) == 0)
            return &units[i];
        number++;
    }
    if (*count == MAX_UNITS)
        return NULL;
    struct unit *unit = &units[(*count)++];
    unit->cl = text->kernel->file;
    snprintf(unit->shared, sizeof(unit->shared), "%s", shared);
    snprintf(unit->name, sizeof(unit->name), "%.*s-%u.cl",
             (int)strcspn(text->kernel->file, "."), text->kernel->file,
             (unsigned)number);
    snprintf(path, sizeof(path), "%s/%s", directory, unit->name);
    unit->own = calloc(variants, sizeof(*unit->own));
    unit->file = fopen(path, "we");
    if (unit->file != NULL)
        lines_write(unit->file, text->kernel->source, true);
    return unit;
}

/* Returns true if the unit contains a variant with the same options. */
static bool unit_has_variant(struct unit *unit, const char *own)
{
    for (uint32_t i = 0; i < unit->variants; i++)
        if (strcmp(unit->own[i], own) == 0)
            return true;
    snprintf(unit->own[unit->variants++], KERNEL_OPTION_BYTES, "%s", own);
    return false;
}

static bool units_close(struct unit *units, uint32_t count)
{
    bool written = true;
    for (uint32_t i = 0; i < count; i++) {
        struct unit *unit = &units[i];
        written = written && unit->file != NULL && !ferror(unit->file);
        if (unit->file != NULL && fclose(unit->file) != 0)
            written = false;
        if (written)
            printf("%s %u %s\n", unit->name, (unsigned)unit->variants,
                   unit->shared);
        free(unit->own);
    }
    return written;
}

bool units_write(const char *directory, const struct keys *keys)
{
    /* The device for which keys_find plans. */
    struct platform_device hardware = {.correct_divide = true};
    struct unit units[MAX_UNITS] = {{0}};
    uint32_t count = 0;
    bool opened = true;
    for (uint32_t i = 0; opened && i < keys->chosen; i++) {
        struct kernel_source text;
        struct options options;
        kernel_source_make(&text, &keys->key[i], &hardware);
        if (strlen(text.options) + 1 >= sizeof(text.options)) {
            fprintf(stderr, "%s: the options exceed KERNEL_OPTION_BYTES\n",
                    text.kernel->function);
            opened = false;
            break;
        }
        options_split(&options, text.kernel->source, text.options);
        struct unit *unit = unit_open(units, &count, directory, &text,
                                      options.shared, keys->chosen);
        opened = unit != NULL && unit->file != NULL && unit->own != NULL;
        if (opened && !unit_has_variant(unit, options.own))
            variant_write(unit, &text, options.own);
    }
    bool written = units_close(units, count);
    if (!opened || !written)
        fprintf(stderr, "cannot write the units in %s\n", directory);
    return opened && written;
}
