/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One device and one stream of the plugin behind the layer, for tests of
 * single faults with libcheck.  One thread.
 */
#ifndef TANDEM_TESTS_LAYER_SINGLE_H
#define TANDEM_TESTS_LAYER_SINGLE_H

#include <check.h>

#include "plugin_under_layer.h"
#include "opencl_workload.h"

/* The elements of each buffer. */
#define N 256

extern struct plug plug;
extern struct workload work; /* its device and stream */

/* With these keys and values, ended by NULL, and with no cache on disk. */
void device_new(const char *key, const char *value);
/* No object is left of those since device_new. */
void none_left(void);
/* Objects as before device_new. */
bool contexts_gone(void);
/* Each call of function with text fails so from now on. */
void script(enum layer_fault fault, const char *function, const char *text,
            int code);
/* 1, 2, 3, ... */
struct tandem_buffer *ramp_new(void);
enum tandem_status unary(uint32_t id, struct tandem_buffer *buffer);
enum tandem_status
ask(uint32_t id, __typeof__(((struct tandem_backend *)0)->query_ready) entry);
/* ready, until it is no longer NOT_READY. */
enum tandem_status ready_until(uint32_t id);
enum tandem_status synchronize(void);
/* The last message has text in it. */
void said(const char *text);
/* Runs this program in a process of its own, on a device that says it is a GPU
 * (devices are looked at once), unless that is what runs; its exit status.
 * Before OpenCL is used. */
int single_as_gpu(void);
int single_main(Suite *suite);

#endif
