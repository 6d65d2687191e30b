/* SPDX-License-Identifier: Apache-2.0
 *
 * Defaults of a loader's options: one table for C, the command, --config files and Python. Numbers are macros
 * without a cast, so that they can be turned into text.
 */
#ifndef LEAT_LOADER_DEFAULTS_H
#define LEAT_LOADER_DEFAULTS_H

#include <leat/loader.h>

#define LEAT__DEFAULT_BATCH 256
#define LEAT__DEFAULT_MEMORY 0 /* half of the memory still available to the process */
#define LEAT__DEFAULT_SIDE 224
#define LEAT__DEFAULT_FLIP 0.5
/* quasi_random: pages of the default size in 2 GiB. Larger pages: fewer, see leat__order_window. */
#define LEAT__DEFAULT_WINDOW_PAGES 4096
#define LEAT__DEFAULT_STREAMS 64

#define LEAT__DEFAULT_ORDER LEAT_ORDER_RANDOM
#define LEAT__DEFAULT_ORDER_NAME "random"
#define LEAT__ORDER_CHOICE(id, value, name, version, shuffled) "|" name
#define LEAT__ORDER_CHOICES (&(LEAT_ORDER_MAP(LEAT__ORDER_CHOICE))[1]) /* "sequential|random|…" */
#define LEAT__ORDER_ONE(id, value, name, version, shuffled) +1
enum { LEAT__ORDER_COUNT = LEAT_ORDER_MAP(LEAT__ORDER_ONE) };
/* Only the orders that shuffle: "random|…" */
#define LEAT__ORDER_IF_0(text)
#define LEAT__ORDER_IF_1(text) text
#define LEAT__ORDER_SHUFFLED(id, value, name, version, shuffled) LEAT__ORDER_IF_##shuffled("|" name)
#define LEAT__ORDER_SHUFFLED_CHOICES (&(LEAT_ORDER_MAP(LEAT__ORDER_SHUFFLED))[1])
#define LEAT__DEFAULT_CACHE LEAT_CACHE_OS
#define LEAT__DEFAULT_CACHE_NAME "os"
#define LEAT__DEFAULT_DROP LEAT_DROP_EMPTY

#define LEAT__TEXT_(x) #x
#define LEAT__TEXT(x) LEAT__TEXT_(x) /* a number of the table as text */

/* The pipeline that leat load builds from --size and --flip, without the common end of every pipeline. */
#define LEAT__DEFAULT_OPS                                                                                    \
    "RandomResizedCrop(" LEAT__TEXT(LEAT__DEFAULT_SIDE) "); "                                                \
                                                        "RandomHorizontalFlip(" LEAT__TEXT(                  \
                                                            LEAT__DEFAULT_FLIP) ")"

#endif
