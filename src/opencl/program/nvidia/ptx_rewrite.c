/* SPDX-License-Identifier: Apache-2.0 */
/* Rewrites the PTX of an NVIDIA kernel line by line. */
#include "opencl/program/nvidia/ptx_rewrite.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#define MARK "//@ "
#define TARGET ".target sm_90"
#define GROUP ".reqntid "
/* Directive that the rewriting adds, because NVIDIA's assembler ignores the
 * instruction setmaxnreg without this directive. */
#define MIN_GROUPS "\n.minnctapersm 1"
/* Maximum number of bytes that the rewriting adds to the PTX. */
#define ADDED_BYTES (1 + sizeof(MIN_GROUPS))

/* A part of the PTX text. */
struct slice {
    const char *at;
    size_t bytes;
};

struct rewriter {
    char *out;
    size_t used;
    unsigned targets, kernels, instructions;
};

static bool starts_with(struct slice slice, const char *with)
{
    size_t length = strlen(with);
    return slice.bytes >= length && memcmp(slice.at, with, length) == 0;
}

static bool contains(struct slice slice, const char *what)
{
    size_t length = strlen(what);
    for (; slice.bytes >= length; slice.at++, slice.bytes--)
        if (memcmp(slice.at, what, length) == 0)
            return true;
    return false;
}

static struct slice after(struct slice slice, size_t bytes)
{
    return (struct slice){slice.at + bytes, slice.bytes - bytes};
}

static struct slice trimmed(struct slice line)
{
    while (line.bytes > 0 && (*line.at == ' ' || *line.at == '\t'))
        line = after(line, 1);
    return line;
}

static void append(struct rewriter *rewriter, struct slice slice)
{
    memcpy(rewriter->out + rewriter->used, slice.at, slice.bytes);
    rewriter->used += slice.bytes;
}

/* Returns true if gemm_wgmma.cl is allowed to contain this instruction. */
static bool instruction_is_known(struct slice slice)
{
    static const char allowed[] = "abcdefghijklmnopqrstuvwxyz0123456789"
                                  "_.,:%{} ";
    if (!starts_with(slice, "wgmma.mma_async.sync.aligned.m64n") &&
        !starts_with(slice, "wgmma.fence.sync.aligned;") &&
        !starts_with(slice, "wgmma.commit_group.sync.aligned;") &&
        !starts_with(slice, "wgmma.wait_group.sync.aligned ") &&
        !starts_with(slice, "setmaxnreg."))
        return false;
    for (size_t i = 0; i + 1 < slice.bytes; i++)
        if (slice.at[i] == '\0' || strchr(allowed, slice.at[i]) == NULL)
            return false;
    return slice.at[slice.bytes - 1] == ';';
}

/* Returns true if the target is exactly sm_90.  `rest` is the text after
 * sm_90. */
static bool target_is_complete(struct slice rest)
{
    return rest.bytes == 0 || *rest.at == ',' || *rest.at == ' ' ||
           *rest.at == '\r';
}

/* Rewrites a line.  Returns why the line is invalid, or NULL if it is valid. */
static const char *line_rewrite(struct rewriter *rewriter, struct slice line)
{
    struct slice trimmed_line = trimmed(line);
    if (starts_with(trimmed_line, MARK)) {
        struct slice instruction = after(trimmed_line, strlen(MARK));
        if (!instruction_is_known(instruction))
            return "a marked instruction is not allowed";
        rewriter->instructions++;
        append(rewriter, instruction);
        return NULL;
    }
    if (contains(line, "//@"))
        return "a mark is not at the start of a line";
    if (starts_with(trimmed_line, ".target")) {
        size_t length = strlen(TARGET);
        if (rewriter->targets++ > 0)
            return "there is not exactly one target";
        if (!starts_with(trimmed_line, TARGET) ||
            !target_is_complete(after(trimmed_line, length)))
            return "the target is not sm_90";
        append(rewriter, (struct slice){trimmed_line.at, length});
        append(rewriter, (struct slice){"a", 1});
        append(rewriter, after(trimmed_line, length));
        return NULL;
    }
    append(rewriter, line);
    if (starts_with(trimmed_line, GROUP) && rewriter->kernels++ == 0)
        append(rewriter, (struct slice){MIN_GROUPS, strlen(MIN_GROUPS)});
    return NULL;
}

/* Rewrites the PTX.  Returns why the PTX is invalid, or NULL if it is valid. */
static const char *text_rewrite(struct rewriter *rewriter, struct slice text)
{
    while (text.bytes > 0) {
        const char *end = memchr(text.at, '\n', text.bytes);
        struct slice line = {text.at, end != NULL ? (size_t)(end - text.at)
                                                  : text.bytes};
        const char *why = line_rewrite(rewriter, line);
        if (why != NULL)
            return why;
        text = after(text, line.bytes);
        if (end != NULL) {
            append(rewriter, (struct slice){"\n", 1});
            text = after(text, 1);
        }
    }
    if (rewriter->targets != 1)
        return "there is not exactly one target";
    if (rewriter->kernels != 1)
        return "there is not exactly one kernel with a fixed work-group size";
    return rewriter->instructions == 0 ? "no instruction is marked" : NULL;
}

char *ptx_rewrite_sm90a(const char *text, size_t bytes, size_t *out_bytes,
                        const char **out_why)
{
    struct rewriter rewriter = {0};
    *out_bytes = 0;
    while (bytes > 0 && text[bytes - 1] == '\0')
        bytes--;
    if (bytes == 0 || bytes > MAX_PTX_BYTES ||
        memchr(text, '\0', bytes) != NULL) {
        *out_why = "it is not text";
        return NULL;
    }
    rewriter.out = malloc(bytes + ADDED_BYTES);
    if (rewriter.out == NULL) {
        *out_why = "out of host memory";
        return NULL;
    }
    *out_why = text_rewrite(&rewriter, (struct slice){text, bytes});
    if (*out_why != NULL) {
        free(rewriter.out);
        return NULL;
    }
    rewriter.out[rewriter.used] = '\0';
    *out_bytes = rewriter.used;
    return rewriter.out;
}
