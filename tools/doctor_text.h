/* SPDX-License-Identifier: Apache-2.0
 *
 * leat doctor on the output of leat filter, leat dedup or leat decontaminate.
 */
#ifndef LEAT_TOOLS_DOCTOR_TEXT_H
#define LEAT_TOOLS_DOCTOR_TEXT_H

#include "cli.h"

/* True when the path is the output folder of such a run, or its report.json; its report is then `report`
 * (4096 bytes). */
bool doctor_text_finds(const char *path, char *report);
/* Prints the verdict; an exit code. */
int doctor_text(cli *c, const char *report);

#endif
