/* SPDX-License-Identifier: Apache-2.0
 *
 * Defaults of a loader's options: the one table that C, the command, --config files and Python read.
 * Numbers are macros without a cast, so that tables of text can be made of them.
 */
#ifndef LEAT_LOADER_DEFAULTS_H
#define LEAT_LOADER_DEFAULTS_H

#include <leat/loader.h>

#define LEAT__DEFAULT_BATCH 256
#define LEAT__DEFAULT_MEMORY 0 /* half of what the process may still take */
#define LEAT__DEFAULT_SIDE 224
#define LEAT__DEFAULT_FLIP 0.5
#define LEAT__DEFAULT_WINDOW_PAGES 4096
#define LEAT__DEFAULT_STREAMS 64

#define LEAT__DEFAULT_ORDER LEAT_ORDER_RANDOM
#define LEAT__DEFAULT_ORDER_NAME "random"
#define LEAT__DEFAULT_CACHE LEAT_CACHE_OS
#define LEAT__DEFAULT_CACHE_NAME "os"
#define LEAT__DEFAULT_DROP LEAT_DROP_EMPTY

#define LEAT__TEXT_(x) #x
#define LEAT__TEXT(x) LEAT__TEXT_(x) /* a number of the table as text */

/* As leat load writes it from --size and --flip, less what every pipeline ends with. */
#define LEAT__DEFAULT_OPS                                                                        \
    "RandomResizedCrop(" LEAT__TEXT(LEAT__DEFAULT_SIDE) "); "                                    \
    "RandomHorizontalFlip(" LEAT__TEXT(LEAT__DEFAULT_FLIP) ")"

#endif
