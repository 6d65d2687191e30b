/* SPDX-License-Identifier: Apache-2.0
 *
 * The thread backend passes what every backend must.
 */
#include "aiotest.h"

int main(void)
{
    return at_run(LEAT__AIO_THREADS);
}
