/* SPDX-License-Identifier: Apache-2.0 */
/* Weights: constants of models as tensors, which all sessions of a process
 * share.  Any thread may call these functions. */
#ifndef TANDEM_ONNXRUNTIME_WEIGHT_H
#define TANDEM_ONNXRUNTIME_WEIGHT_H

#include "adapters/onnxruntime/runtime.h"

enum weight_memory {
    WEIGHT_COPIED,  /* the content belongs to the caller and is copied */
    WEIGHT_OWNED,   /* the content is from weight_allocate; it passes to the
                     * weight, or is freed */
    WEIGHT_MAPPED,  /* the content is in `file` */
    WEIGHT_BORROWED /* the content belongs to the caller's session */
};

struct weight_content {
    enum weight_memory memory;
    uint32_t dtype;
    uint64_t bytes;
    const void *content;
    struct mapped_file *file; /* NULL unless `memory` is WEIGHT_MAPPED */
};

/* A constant of one or more models.  Its tensor has rank 1 and is never
 * written, so each device gets one copy. */
struct weight {
    struct weight *next;
    uint64_t hash;
    uint32_t users;
    struct weight_content content;
    struct tandem_tensor *tensor;
};

/* Returns memory for the content of a weight, or NULL. */
void *weight_allocate(uint64_t bytes);
/* Returns a weight with this content.  An equal weight is used if there is one
 * that does not end with another session.  The caller releases the weight.  On
 * failure *out is NULL. */
enum tandem_status weight_acquire(struct runtime *runtime,
                                  const struct weight_content *content,
                                  struct weight **out);
/* Returns true if there is probably a weight with this content, even a borrowed
 * one. */
bool weight_exists(struct runtime *runtime, uint32_t dtype, uint64_t bytes,
                   const void *content);
/* Accepts NULL. */
void weight_release(struct runtime *runtime, struct weight *weight);

#endif
