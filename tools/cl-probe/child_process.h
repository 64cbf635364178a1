/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Child processes that do what may crash or hang, report their progress and
 * answer with one JSON value over a pipe.  The parent is single-threaded.
 */
#ifndef CL_PROBE_CHILD_H
#define CL_PROBE_CHILD_H

#include "../common/progress_bar.h"

#include <jansson.h>

struct child_link; /* the child's end of the pipe */

enum child_end {
    CHILD_ANSWERED, /* result is there */
    CHILD_FAILED,   /* it said why */
    CHILD_CRASHED,
    CHILD_TIMED_OUT
};

struct child_outcome {
    enum child_end end;
    json_t *result; /* owned; NULL unless CHILD_ANSWERED */
    /* Why there is no result; with one, what went wrong after it, or "". */
    char message[512];
    /* Of a child that crashed or ran out of time, what it did: "crashed: ...";
     * else "". */
    char what[160];
};

/* Runs in the child.  Answers by child_answer or child_fail. */
typedef void (*child_fn)(void *argument, struct child_link *link);

/* [blocks] Runs body in a child for at most limit_s seconds; progress may be
 * NULL.  The child's standard output is the parent's standard error. */
void child_run(child_fn body, void *argument, unsigned limit_s,
               struct progress *progress, struct child_outcome *out);
void child_outcome_destroy(struct child_outcome *outcome);

void child_progress(struct child_link *link, double fraction,
                    const char *step);
/* Takes result over. */
void child_answer(struct child_link *link, json_t *result);
void child_fail(struct child_link *link, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
/* Text as JSON.  A driver's, and a path, need not be UTF-8: then all beyond
 * ASCII is '?'. */
json_t *child_text(const char *format, ...)
    __attribute__((format(printf, 1, 2)));

#endif
