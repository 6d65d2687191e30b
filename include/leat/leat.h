/* SPDX-License-Identifier: Apache-2.0
 *
 * All public headers. A program may also include only those that it uses.
 */
#ifndef LEAT_LEAT_H
#define LEAT_LEAT_H

#include <leat/doctor.h>
#include <leat/error.h>
#include <leat/flow.h>
#include <leat/images.h>
#include <leat/ingest.h>
#include <leat/loader.h>
#include <leat/log.h>
#include <leat/machine.h>
#include <leat/op.h>
#include <leat/pack.h>
#include <leat/plan.h>
#include <leat/select.h>
#include <leat/text.h>
#include <leat/version.h>

#endif
