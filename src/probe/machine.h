/* SPDX-License-Identifier: Apache-2.0
 *
 * Facts of the host alone, and machine facts as JSON, for the command and the tests. The facts:
 * include/leat/machine.h.
 */
#ifndef LEAT_PROBE_MACHINE_H
#define LEAT_PROBE_MACHINE_H

#include <leat/machine.h>

#include "base/buf.h"
#include "base/json.h"

/* As leat_machine_read, without GPUs: loads no library of NVIDIA's. For those who need CPUs or memory. */
void leat__machine_host(leat_machine *m);

/* Writes keys named like the fields into an object that the caller opened and may extend; unlimited or
 * unknown values are null. */
void leat__machine_json_fields(const leat_machine *m, leat__json *j);

/* Whether this is a virtual machine that gives free memory back to its host (free page reporting): blocks of
 * 2 MiB and more, which huge pages then get from the host again, 4 KiB at a time. */
bool leat__machine_reports_free(void);

/* Peak resident memory of this process (VmHWM); 0 when unknown. Not from getrusage: its maximum
 * survives exec, so it may belong to the parent process. */
uint64_t leat__process_peak_rss(void);

/* Resident memory of this process that files back, which is code and libraries; 0 when unknown. */
uint64_t leat__process_code_rss(void);

#endif
