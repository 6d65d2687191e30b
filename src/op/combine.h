/* SPDX-License-Identifier: Apache-2.0
 *
 * Combinators: ops that apply some of the ops inside them, or all in random order. The ops inside follow
 * their combinator in the array of specs. Pure functions.
 */
#ifndef LEAT_OP_COMBINE_H
#define LEAT_OP_COMBINE_H

#include "op/op.h"

/* Draws which ops inside `op` are applied. Fills `pick`, which has room for op->inside, with their distances
 * from `op` in the order to apply them. Returns how many. */
uint32_t leat__combine_pick(const leat__op_spec *op, leat__rng *rng, uint32_t *pick);

/* Returns the size after `count` specs; 0 where it depends on the image or on a draw. */
leat__op_size leat__ops_size(const leat__op_spec *ops, uint32_t count, leat__op_size in);

/* Replaces the range of possible input sizes by that of the output sizes of `count` specs, over all draws. */
void leat__ops_reach(const leat__op_spec *ops, uint32_t count, leat__op_reach *r);
/* Returns the op whose output sizes have no known bound, or NULL. */
const leat__op_def *leat__ops_without_reach(const leat__op_spec *ops, uint32_t count);

/* True for a combinator with an op inside that changes the size: for messages. */
bool leat__combine_changes_size(const leat__op_spec *op);

/* True when the op moves pixels: geometry, a policy, or a combinator that contains one. */
bool leat__op_moves(const leat__op_spec *op);

/* True when both draw the same geometry, or neither draws any (src/op/moves.c). */
bool leat__ops_same_moves(const leat__op_spec *a, uint32_t a_count, const leat__op_spec *b, uint32_t b_count);

#endif
