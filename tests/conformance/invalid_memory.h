/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Invalid calls of the functions for transfers and mapped memory, as lists
 * X(function, arguments...).  The names in the arguments:
 *
 *   s                    a stream
 *   b, other, freed      a buffer of 4096 bytes, one of another device, and one
 *                        that was freed
 *   host                 host memory of more than 4097 bytes
 *   t, read, memory      a timeout, TANDEM_MAP_READ, and a void pointer
 */
#ifndef TANDEM_CONFORMANCE_INVALID_MEMORY_H
#define TANDEM_CONFORMANCE_INVALID_MEMORY_H

#define INVALID_UPLOADS(X)                                                     \
    X(upload, NULL, b, 0, host, 4, 0)                                          \
    X(upload, s, NULL, 0, host, 4, 0)                                          \
    X(upload, s, b, 0, NULL, 4, 0)                                             \
    X(upload, s, b, 4095, host, 2, 0)                                          \
    X(upload, s, b, UINT64_MAX, host, 4, 0)                                    \
    X(upload, s, b, 0, host, 4097, 0)                                          \
    X(upload, s, b, 8, host, UINT64_MAX - 4, 0)                                \
    X(upload, s, other, 0, host, 4, 0)

#define INVALID_DOWNLOADS(X)                                                   \
    X(download, NULL, b, 0, host, 4, 0, t)                                     \
    X(download, s, NULL, 0, host, 4, 0, t)                                     \
    X(download, s, b, 0, NULL, 4, 0, t)                                        \
    X(download, s, b, 4095, host, 2, 0, t)                                     \
    X(download, s, b, UINT64_MAX - 1, host, 1, 0, t)                           \
    X(download, s, other, 0, host, 4, 0, t)

#define INVALID_COPIES_AND_FILLS(X)                                            \
    X(copy, NULL, b, 0, b, 64, 4)                                              \
    X(copy, s, NULL, 0, b, 0, 4)                                               \
    X(copy, s, b, 0, NULL, 0, 4)                                               \
    X(copy, s, other, 0, b, 0, 4)                                              \
    X(copy, s, b, 0, other, 0, 5)                                              \
    X(copy, s, b, 4095, b, 0, 2)                                               \
    X(copy, s, b, 0, b, 4095, 3)                                               \
    X(copy, s, b, 0, b, 0, 64)                                                 \
    X(copy, s, b, 32, b, 0, 65)                                                \
    X(fill, NULL, b, 0, 4, host, 1)                                            \
    X(fill, s, NULL, 0, 4, host, 1)                                            \
    X(fill, s, b, 0, 4, NULL, 1)                                               \
    X(fill, s, b, 0, 6, host, 3)                                               \
    X(fill, s, b, 0, 4, host, 0)                                               \
    X(fill, s, b, 0, 32, host, 16)                                             \
    X(fill, s, b, 0, 7, host, 4)                                               \
    X(fill, s, b, 2, 8, host, 4)                                               \
    X(fill, s, b, 4092, 8, host, 4)                                            \
    X(fill, s, other, 0, 4, host, 1)

#define TRANSFERS_OF_FREED_BUFFERS(X)                                          \
    X(upload, s, freed, 0, host, 4, 0)                                         \
    X(download, s, freed, 0, host, 4, 0, t)                                    \
    X(copy, s, b, 0, freed, 0, 4)                                              \
    X(fill, s, freed, 0, 4, host, 1)

#define INVALID_MAPS(X)                                                        \
    X(map, NULL, b, 0, 64, read, t, &memory)                                   \
    X(map, s, NULL, 0, 64, read, t, &memory)                                   \
    X(map, s, b, 0, 64, read, t, NULL)                                         \
    X(map, s, b, 4000, 97, read, t, &memory)                                   \
    X(map, s, b, 0, 64, 0, t, &memory)                                         \
    X(map, s, other, 0, 64, read, t, &memory)                                  \
    X(unmap, s, b, host)

#endif
