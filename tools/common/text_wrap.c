/* SPDX-License-Identifier: Apache-2.0 */
/* Breaks text into lines; see text_wrap.h. */
#include <config.h>

#include "text_wrap.h"

#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#define COLUMNS_DEFAULT 80u
#define COLUMNS_LEAST 20u

size_t output_columns(FILE *out)
{
    const char *text = getenv("COLUMNS");
    struct winsize size;
    char *end = NULL;
    long columns = text != NULL ? strtol(text, &end, 10) : 0;

    if (columns >= (long)COLUMNS_LEAST && columns <= 1000000 && *end == '\0')
        return (size_t)columns;
    if (isatty(fileno(out)) && ioctl(fileno(out), TIOCGWINSZ, &size) == 0 &&
        size.ws_col >= COLUMNS_LEAST)
        return size.ws_col;
    return COLUMNS_DEFAULT;
}

/* Returns the width of the first `bytes` bytes of the text: the number of bytes
 * that begin a character. */
static size_t part_columns(const char *text, size_t bytes)
{
    size_t columns = 0;

    for (size_t i = 0; i < bytes; i++)
        columns += ((unsigned char)text[i] & 0xc0) != 0x80;
    return columns;
}

size_t text_columns(const char *text)
{
    return part_columns(text, strlen(text));
}

void text_wrap(FILE *out, const char *text, size_t start, size_t indent,
               size_t columns)
{
    size_t at = start;
    const char *before = "";

    text += strspn(text, " ");
    while (*text != '\0') {
        const size_t bytes = strcspn(text, " ");
        const size_t width = part_columns(text, bytes);

        if (before[0] != '\0' && at + 1 + width > columns) {
            fprintf(out, "\n%*s", (int)indent, "");
            before = "";
            at = indent;
        }
        fprintf(out, "%s%.*s", before, (int)bytes, text);
        at += strlen(before) + width;
        before = " ";
        text += bytes;
        text += strspn(text, " ");
    }
    fputc('\n', out);
}
