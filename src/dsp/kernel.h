/* SPDX-License-Identifier: Apache-2.0
 *
 * Reports which variant of each kernel family runs: for `leat machine`, logs and bug reports.
 */
#ifndef LEAT_DSP_KERNEL_H
#define LEAT_DSP_KERNEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Returns the i-th family and the ISA of the table that it fills for these flags (leat__cpu_flags()), as
 * static strings. False past the last. */
bool leat__kernel_report(size_t i, uint32_t cpu_flags, const char **family, const char **isa);

#endif
