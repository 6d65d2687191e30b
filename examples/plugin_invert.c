/* SPDX-License-Identifier: Apache-2.0
 *
 * A plugin: turns one in two pictures into its negative.
 *
 *     cc -O3 -shared -fPIC -Iinclude examples/plugin_invert.c -o invert.so
 *     loader = leat.Loader(pack, image="Resize((64, 64))", sample_fn=leat.load_plugin("invert.so"))
 */
#include <stddef.h>

#include <leat/loader.h>

#ifndef SIDE
#define SIDE 64 /* of the pictures that this plugin is made for */
#endif
enum { BYTES = 3 * SIDE * SIDE };

static int invert(void *cookie, void *const *rows, uint32_t fields, uint64_t sample, uint64_t epoch,
                  uint64_t random)
{
    uint8_t *pixels = rows[0];

    (void)cookie;
    (void)sample;
    (void)epoch;
    if (fields == 0) return 1;
    if (random & 1) {
        for (size_t i = 0; i < BYTES; i++) pixels[i] = (uint8_t)(255 - pixels[i]);
    }
    return 0;
}

LEAT_VISIBLE const leat_op_plugin leat_op = {
    .abi = LEAT_OP_PLUGIN_ABI,
    .name = "invert",
    .help = "one in two pictures becomes its negative",
    .sample = invert,
};
