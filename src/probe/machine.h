/* SPDX-License-Identifier: Apache-2.0
 *
 * Machine facts as JSON, for the command and the tests. The facts: include/leat/machine.h.
 */
#ifndef LEAT_PROBE_MACHINE_H
#define LEAT_PROBE_MACHINE_H

#include <leat/machine.h>

#include "base/buf.h"
#include "base/json.h"

/* One object, keys named like the fields; what is unlimited or unknown is null. */
int leat__machine_json(const leat_machine *m, leat__buf *out);
/* The same keys into an object that the caller opened, to which it may add its own. */
void leat__machine_json_fields(const leat_machine *m, leat__json *j);

/* Highest resident memory of this process so far (VmHWM); 0 when unknown. Not getrusage: its
 * maximum survives exec, so it may be that of the process that started this one. */
uint64_t leat__process_peak_rss(void);

#endif
