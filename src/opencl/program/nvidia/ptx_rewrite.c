/* SPDX-License-Identifier: Apache-2.0 */
/* Line by line; see ptx_rewrite.h. */
#include "opencl/program/nvidia/ptx_rewrite.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#define MARK "//@ "
#define TARGET ".target sm_90"
#define GROUP ".reqntid "
/* Without it the assembler ignores setmaxnreg. */
#define MIN_GROUPS "\n.minnctapersm 1"
/* What the new text has more than the old one; it has fewer marks. */
#define ADDED_BYTES (1 + sizeof(MIN_GROUPS))

/* A part of the text, which may hold any bytes. */
struct piece {
    const char *at;
    size_t bytes;
};

struct patch {
    char *out;
    size_t used;
    unsigned targets, groups, instructions;
    const char *why;
};

static bool begins(struct piece piece, const char *with)
{
    size_t length = strlen(with);
    return piece.bytes >= length && memcmp(piece.at, with, length) == 0;
}

static bool holds(struct piece piece, const char *what)
{
    size_t length = strlen(what);
    for (; piece.bytes >= length; piece.at++, piece.bytes--)
        if (memcmp(piece.at, what, length) == 0)
            return true;
    return false;
}

static struct piece after(struct piece piece, size_t bytes)
{
    return (struct piece){piece.at + bytes, piece.bytes - bytes};
}

/* Without blanks before it. */
static struct piece trimmed(struct piece line)
{
    while (line.bytes > 0 && (*line.at == ' ' || *line.at == '\t'))
        line = after(line, 1);
    return line;
}

static void put(struct patch *patch, struct piece piece)
{
    memcpy(patch->out + patch->used, piece.at, piece.bytes);
    patch->used += piece.bytes;
}

/* Whether it is one of the instructions that gemm_wgmma.cl has, whole: of small
 * letters, digits, registers and punctuation, and a semicolon at the end
 * alone. */
static bool instruction_is_known(struct piece piece)
{
    static const char allowed[] = "abcdefghijklmnopqrstuvwxyz0123456789"
                                  "_.,:%{} ";
    if (!begins(piece, "wgmma.mma_async.sync.aligned.m64n") &&
        !begins(piece, "wgmma.fence.sync.aligned;") &&
        !begins(piece, "wgmma.commit_group.sync.aligned;") &&
        !begins(piece, "wgmma.wait_group.sync.aligned ") &&
        !begins(piece, "setmaxnreg."))
        return false;
    for (size_t i = 0; i + 1 < piece.bytes; i++)
        if (piece.at[i] == '\0' || strchr(allowed, piece.at[i]) == NULL)
            return false;
    return piece.at[piece.bytes - 1] == ';';
}

/* Comes after sm_90 where that is a target of its own. */
static bool target_is_complete(struct piece rest)
{
    return rest.bytes == 0 || *rest.at == ',' || *rest.at == ' ' ||
           *rest.at == '\r';
}

static bool line_rewrite(struct patch *patch, struct piece line)
{
    struct piece own = trimmed(line);
    if (begins(own, MARK)) {
        struct piece instruction = after(own, strlen(MARK));
        if (!instruction_is_known(instruction)) {
            patch->why = "a marked instruction is not one of ours";
            return false;
        }
        patch->instructions++;
        put(patch, instruction);
        return true;
    }
    if (holds(line, "//@")) {
        patch->why = "a mark is not at the start of a line";
        return false;
    }
    if (begins(own, ".target")) {
        size_t length = strlen(TARGET);
        if (patch->targets++ > 0)
            return false;
        if (!begins(own, TARGET) || !target_is_complete(after(own, length))) {
            patch->why = "the target is not sm_90";
            return false;
        }
        put(patch, (struct piece){own.at, length});
        put(patch, (struct piece){"a", 1});
        put(patch, after(own, length));
        return true;
    }
    put(patch, line);
    if (begins(own, GROUP)) {
        patch->groups++;
        if (patch->groups == 1)
            put(patch, (struct piece){MIN_GROUPS, strlen(MIN_GROUPS)});
    }
    return true;
}

static bool lines_rewrite(struct patch *patch, struct piece text)
{
    while (text.bytes > 0) {
        const char *end = memchr(text.at, '\n', text.bytes);
        struct piece line = {text.at, text.bytes};
        if (end != NULL)
            line.bytes = (size_t)(end - text.at);
        if (!line_rewrite(patch, line))
            return false;
        text = after(text, line.bytes);
        if (end != NULL) {
            put(patch, (struct piece){"\n", 1});
            text = after(text, 1);
        }
    }
    return true;
}

/* What is wrong with the whole, or NULL. */
static const char *ptx_error(const struct patch *patch)
{
    if (patch->targets != 1)
        return "there is not one target";
    if (patch->groups != 1)
        return "there is not one kernel of a fixed group";
    return patch->instructions == 0 ? "no instruction is marked" : NULL;
}

char *ptx_rewrite_sm90a(const char *text, size_t bytes, size_t *out_bytes,
                        const char **out_why)
{
    struct patch patch = {.why = "there is not one target"};
    *out_bytes = 0;
    *out_why = NULL;
    while (bytes > 0 && text[bytes - 1] == '\0')
        bytes--;
    if (bytes == 0 || bytes > MAX_PTX_BYTES ||
        memchr(text, '\0', bytes) != NULL) {
        *out_why = "it is no text";
        return NULL;
    }
    patch.out = malloc(bytes + ADDED_BYTES);
    if (patch.out == NULL) {
        *out_why = "out of host memory";
        return NULL;
    }
    bool done = lines_rewrite(&patch, (struct piece){text, bytes});
    if (done)
        patch.why = ptx_error(&patch);
    if (!done || patch.why != NULL) {
        *out_why = patch.why;
        free(patch.out);
        return NULL;
    }
    patch.out[patch.used] = '\0';
    *out_bytes = patch.used;
    return patch.out;
}
