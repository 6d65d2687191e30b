/* SPDX-License-Identifier: Apache-2.0
 *
 * Pictures in a terminal: RGB pixels as half blocks, sixels, or kitty's protocol; and the detection of what a
 * terminal supports, from its environment.
 */
#ifndef LEAT_TOOLS_SHOW_DRAW_H
#define LEAT_TOOLS_SHOW_DRAW_H

#include <stdbool.h>
#include <stdint.h>

#include <leat/error.h>

#include "base/buf.h"

typedef enum show_how { SHOW_AUTO, SHOW_BLOCKS, SHOW_SIXEL, SHOW_KITTY } show_how;

typedef struct show_picture {
    uint8_t *rgb; /* height x width x 3 */
    uint32_t width, height;
} show_picture;

/* Detects it from TERM, TERM_PROGRAM and KITTY_WINDOW_ID; each may be NULL. */
show_how show_detect(const char *term, const char *program, const char *kitty);

/* `rich`: 24-bit colours, else a palette of 216. */
void show_blocks(const show_picture *p, bool rich, leat__buf *out);
void show_sixel(const show_picture *p, leat__buf *out);
/* Calls `progress` (may be NULL) after each row with the number of rows done; non-zero stops. */
int show_png(const show_picture *p, int (*progress)(void *cookie, uint32_t rows), void *cookie,
             leat__buf *out, leat_error *err) LEAT_MUST_CHECK;
int show_kitty(const show_picture *p, leat__buf *out, leat_error *err) LEAT_MUST_CHECK;

#endif
