/* SPDX-License-Identifier: Apache-2.0
 *
 * The page, made from page.html by embed.py at build time. "@NONCE@" is replaced by the nonce of its
 * script and style.
 */
#ifndef LEAT_VIEW_VIEW_PAGE_H
#define LEAT_VIEW_VIEW_PAGE_H

extern const char leat__view_page[];

#endif
