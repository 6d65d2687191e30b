/* SPDX-License-Identifier: Apache-2.0
 *
 * Exports a flow's statistics as meters of the probe module.
 */
#ifndef LEAT_ENGINE_FLOW_METER_H
#define LEAT_ENGINE_FLOW_METER_H

#include "engine/sched.h"

int leat__flow_meters_open(leat_flow *f, leat_error *err) LEAT_MUST_CHECK;
void leat__flow_meters_close(leat_flow *f);

/* Adds the tasks of stage s since the last call to its meters. Locked. */
void leat__flow_meters_settled(leat_flow *f, const leat__stage *s);

#endif
