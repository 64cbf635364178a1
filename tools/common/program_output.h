/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a program prints, and whether it arrived.  For main alone, before
 * other threads are started and after they have ended.
 */
#ifndef TOOLS_OUTPUT_H
#define TOOLS_OUTPUT_H

#include <stdbool.h>
#include <stdio.h>

/* The first call of main.  A standard stream that is closed is opened so that
 * it fails; else the next file that is opened, a profile or a driver's, would
 * have its number and get what is printed. */
void output_begin(void);

/* Closes the stream.  false: some of what was written is lost, and standard
 * error says so, as "PROGRAM: NAME: No space left on device". */
bool output_close(FILE *out, const char *program, const char *name);

/* The last call of main: closes standard output.  Returns the exit status:
 * this one, but failed where it is 0 and output was lost. */
int output_end(const char *program, int status, int failed);

#endif
