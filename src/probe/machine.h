/* SPDX-License-Identifier: Apache-2.0
 *
 * Machine facts without GPUs, and as JSON, for the command and the tests. include/leat/machine.h describes
 * the facts.
 */
#ifndef LEAT_PROBE_MACHINE_H
#define LEAT_PROBE_MACHINE_H

#include <leat/machine.h>

#include "base/buf.h"
#include "base/json.h"

/* Reads the facts without GPUs, and so loads no NVIDIA library. For callers that need only CPUs or memory. */
void leat__machine_host(leat_machine *m);

/* Writes keys named like the fields into an object that the caller opened and may extend; unlimited or
 * unknown values are null. */
void leat__machine_json_fields(const leat_machine *m, leat__json *j);

/* True in a virtual machine that returns free memory to its host (free page reporting). It returns blocks of
 * 2 MiB and more; huge pages then fetch them again from the host, 4 KiB at a time. */
bool leat__machine_reports_free(void);

/* Returns the peak resident memory of this process (VmHWM); 0 when unknown. getrusage is not used: its
 * maximum survives exec, so it may belong to the parent process. */
uint64_t leat__process_peak_rss(void);

/* Returns the file-backed resident memory of this process, which is code and libraries; 0 when unknown.
 * Libraries of the GPU driver, which only a look at the machine loads, do not count. */
uint64_t leat__process_code_rss(void);

/* Returns the resident memory of this process that no file backs: its heap and stacks; 0 when unknown. */
uint64_t leat__process_data_rss(void);

#endif
