/* SPDX-License-Identifier: Apache-2.0
 *
 * Combinators: ops that apply the ops inside them, some of them, or all in another order. The ops
 * inside follow their combinator in the array of specs. Pure functions.
 */
#ifndef LEAT_OP_COMBINE_H
#define LEAT_OP_COMBINE_H

#include "op/op.h"

/* Draws which ops inside `op` are applied. Fills `pick` with their distances behind `op`, in the
 * order to apply them; room for op->inside. Returns how many. */
uint32_t leat__combine_pick(const leat__op_spec *op, leat__rng *rng, uint32_t *pick);

/* Size after `count` specs; 0 where it depends on the image or on a draw. */
leat__op_size leat__ops_size(const leat__op_spec *ops, uint32_t count, leat__op_size in);

/* Widens the sizes that may come in to those that may come out of `count` specs, whatever is drawn. */
void leat__ops_reach(const leat__op_spec *ops, uint32_t count, leat__op_reach *r);
/* The op for which that cannot be said, or NULL. */
const leat__op_def *leat__ops_without_reach(const leat__op_spec *ops, uint32_t count);

/* A combinator with an op that changes the size: for messages. */
bool leat__combine_changes_size(const leat__op_spec *op);

/* Moves pixels: geometry, a policy, or a combinator that holds one. */
bool leat__op_moves(const leat__op_spec *op);

/* Both draw the same geometry, or neither draws any (src/op/moves.c). */
bool leat__ops_same_moves(const leat__op_spec *a, uint32_t a_count, const leat__op_spec *b, uint32_t b_count);

#endif
