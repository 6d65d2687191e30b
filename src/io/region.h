/* SPDX-License-Identifier: Apache-2.0
 *
 * Remembers that a bucket is in another region than this machine, so that the user is warned once per
 * process: traffic between regions is slow and costs money. Any thread may call.
 */
#ifndef LEAT_IO_REGION_H
#define LEAT_IO_REGION_H

#include <stdbool.h>
#include <stddef.h>

#define LEAT__REGION_TEXT 320

/* Records that a bucket is in another region than the machine; only the first record of a process is kept.
 * Does nothing when the regions are equal. `known_from`: where the machine's region was found; static text.
 */
void leat__region_note(const char *bucket, const char *bucket_region, const char *machine_region,
                       const char *known_from);
/* The two places that can show the warning: a loader (as advice) and the command. Each may show it once,
 * because doctor and plan open loaders whose advice is not shown. */
enum { LEAT__REGION_LOADER = 1, LEAT__REGION_COMMAND = 2 };
/* Returns the warning, if there is one and none of these places has shown it. */
bool leat__region_warning(unsigned tellers, char text[LEAT__REGION_TEXT]);

/* Remember the region of a bucket as a server has named it, so that stores opened later do not send a request
 * to the wrong region. `endpoint`: the server's, "" = Amazon's. Only a few buckets are remembered. */
void leat__region_learn(const char *endpoint, const char *bucket, const char *region);
bool leat__region_learned(const char *endpoint, const char *bucket, char region[64]);

#endif
