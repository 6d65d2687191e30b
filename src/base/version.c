/* SPDX-License-Identifier: Apache-2.0 */
#include <leat/version.h>

const char *leat_version(void)
{
    return LEAT_VERSION;
}

int leat_version_number(void)
{
    return LEAT_VERSION_NUMBER;
}
