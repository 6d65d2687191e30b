/* SPDX-License-Identifier: Apache-2.0
 *
 * Attributes of public functions: exported symbols, results that must be checked, printf formats.
 */
#ifndef LEAT_EXPORT_H
#define LEAT_EXPORT_H

#if defined(__GNUC__)
#define LEAT_VISIBLE __attribute__((visibility("default")))
#define LEAT_MUST_CHECK __attribute__((warn_unused_result))
#define LEAT_PRINTF(fmt, args) __attribute__((format(printf, fmt, args)))
#else
#define LEAT_VISIBLE
#define LEAT_MUST_CHECK
#define LEAT_PRINTF(fmt, args)
#endif

#define LEAT_API LEAT_VISIBLE

#endif
