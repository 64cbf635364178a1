/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The messages between the plugin and the program tandem-compile.
 *
 * The program sends a compile_greeting when its device is open.  The plugin
 * then sends requests: a compile_request, the options with a final NUL, and the
 * text.  The program answers each with a compile_reply and the binary.  Both
 * sides are built from the same source and run on the same machine, so structs
 * are sent as they are.
 */
#ifndef TANDEM_OPENCL_COMPILE_PROCESS_COMPILE_MESSAGE_H
#define TANDEM_OPENCL_COMPILE_PROCESS_COMPILE_MESSAGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Limits of the sizes in messages. */
#define MAX_COMPILE_OPTION_BYTES 4096u
#define MAX_COMPILE_TEXT_BYTES ((uint64_t)64 << 20)

enum compile_input { COMPILE_SOURCE = 1, COMPILE_BINARY = 2 };

struct compile_greeting {
    char version[32]; /* of Tandem */
    char device[128]; /* the device's name */
    char driver[128]; /* the driver's version */
};

struct compile_request {
    uint32_t input;        /* enum compile_input */
    uint32_t option_bytes; /* with the final NUL */
    uint64_t text_bytes;   /* of the source, or of the binary */
};

struct compile_reply {
    int32_t code; /* OpenCL error code of the build */
    uint32_t reserved;
    uint64_t binary_bytes; /* 0 if the build failed */
};

/* One side of the connection. */
struct message_link {
    int socket;
    int process; /* pidfd of the other side, or -1 if it is not watched */
    uint64_t deadline_ns; /* end of waits (CLOCK_MONOTONIC); 0 means none */
};

/* Send and receive all bytes.  Return false if the other side has closed the
 * socket or has ended, or after the deadline. */
bool message_send(const struct message_link *link, const void *data,
                  size_t bytes);
bool message_receive(const struct message_link *link, void *data, size_t bytes);

#endif
