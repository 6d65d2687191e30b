/* SPDX-License-Identifier: Apache-2.0
 *
 * The io_uring backend passes what every backend must (skipped where the kernel has none).
 */
#include "aiotest.h"

int main(void)
{
    return at_run(LEAT__AIO_URING);
}
