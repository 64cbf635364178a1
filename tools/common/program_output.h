/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Detects output that could not be written.  Called by main only, while the
 * process has a single thread.
 */
#ifndef TOOLS_PROGRAM_OUTPUT_H
#define TOOLS_PROGRAM_OUTPUT_H

#include <stdbool.h>
#include <stdio.h>

/* Must be the first call of main.  Opens closed standard streams such that
 * reading and writing fail.  Otherwise the next file to be opened would get
 * the stream's descriptor, and output would be written into it. */
void output_begin(void);

/* Closes the stream.  Returns false if some output was lost, and prints a
 * message such as "PROGRAM: NAME: No space left on device" to stderr. */
bool output_close(FILE *out, const char *program, const char *name);

/* Must be the last call of main.  Closes standard output.  Returns the exit
 * status: `failed` if `status` is 0 and output was lost, else `status`. */
int output_end(const char *program, int status, int failed);

#endif
