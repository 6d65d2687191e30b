/* SPDX-License-Identifier: Apache-2.0
 *
 * Parts of leat_decontaminate_text shared by the command and the Python package.
 */
#ifndef LEAT_CURATE_DECONTAMINATE_H
#define LEAT_CURATE_DECONTAMINATE_H

#include <leat/text.h>

#include "base/buf.h"

void leat__decontaminate_json(const leat_decontaminate_stats *stats, leat__buf *out);

#endif
