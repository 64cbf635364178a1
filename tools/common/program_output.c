/* SPDX-License-Identifier: Apache-2.0 */
/* Detects lost output; see program_output.h. */
#include <config.h>

#include "program_output.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

void output_begin(void)
{
    for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++) {
        const int flags = fd == STDIN_FILENO ? O_WRONLY : O_RDONLY;

        /* open returns the lowest free descriptor, which is fd. */
        if (fcntl(fd, F_GETFD) < 0 && errno == EBADF)
            (void)open("/dev/null", flags);
    }
}

bool output_close(FILE *out, const char *program, const char *name)
{
    const bool lost = ferror(out) != 0;
    const char *why = "some of the output is lost";

    errno = 0;
    if (fclose(out) == 0 && !lost)
        return true;
    if (errno != 0)
        why = strerror(errno);
    fprintf(stderr, "%s: %s: %s\n", program, name, why);
    return false;
}

int output_end(const char *program, int status, int failed)
{
    const bool kept = output_close(stdout, program, "standard output");

    return kept || status != 0 ? status : failed;
}
