/* SPDX-License-Identifier: Apache-2.0
 *
 * The state a controller keeps between flows, and its decisions: see leat_tuner in leat/flow.h.
 */
#ifndef LEAT_ENGINE_TUNER_H
#define LEAT_ENGINE_TUNER_H

#include "engine/sched.h"

/* Before a flow starts: restores the settings that are not pinned, and the observations, of the previous
 * flow. */
void leat__tuner_recall(leat_flow *f);

/* Saves settings and observations when a flow ends. Locked. */
void leat__tuner_remember(leat_flow *f, uint64_t now);

/* Adds a decision; takes the tuner's own lock, which is the innermost. */
void leat__tuner_decided(leat_tuner *t, const leat_decision *d);

#endif
