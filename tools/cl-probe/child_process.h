/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs work that may crash or hang in a child process.  The child reports its
 * progress and one JSON value to the parent over a pipe.  The parent is
 * single-threaded.
 */
#ifndef CL_PROBE_CHILD_PROCESS_H
#define CL_PROBE_CHILD_PROCESS_H

#include "../common/progress_bar.h"

#include <jansson.h>

struct child_link; /* write end of the pipe, in the child */

enum child_end {
    CHILD_ANSWERED, /* `result` is set */
    CHILD_FAILED,   /* `message` is the error that the child reported */
    CHILD_CRASHED,
    CHILD_TIMED_OUT
};

struct child_outcome {
    enum child_end end;
    json_t *result; /* owned; NULL unless CHILD_ANSWERED */
    /* The last value of child_partial, or NULL.  Owned. */
    json_t *partial;
    /* Reason why there is no result, or an error after the result, or "". */
    char message[512];
    /* How the child ended if it crashed or timed out, such as "crashed: ...";
     * else "". */
    char what[160];
};

/* Function that runs in the child.  Ends with child_answer or child_fail. */
typedef void (*child_fn)(void *argument, struct child_link *link);

/* [blocks] Runs `body` in a child for at most limit_s seconds.  `progress` may
 * be NULL.  The child's standard output goes to the parent's standard error. */
void child_run(child_fn body, void *argument, unsigned limit_s,
               struct progress *progress, struct child_outcome *out);
void child_outcome_destroy(struct child_outcome *outcome);

void child_progress(struct child_link *link, double fraction, const char *step);
/* Sends the result to the parent.  Takes ownership of `result`. */
void child_answer(struct child_link *link, json_t *result);
/* Sends what the result would be if the child ended now.  Does not take
 * ownership. */
void child_partial(struct child_link *link, json_t *result);
void child_fail(struct child_link *link, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
/* Returns a text as JSON.  If it is not valid UTF-8, as text from drivers or
 * paths may be, non-ASCII bytes become '?'. */
json_t *child_text(const char *format, ...)
    __attribute__((format(printf, 1, 2)));

#endif
