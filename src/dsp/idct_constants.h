/* SPDX-License-Identifier: Apache-2.0
 *
 * Constants of the slow integer DCT with 13 fraction bits: round(c * 2^13). Macros, so that the ISA files
 * share only numbers with the portable one.
 */
#ifndef LEAT_DSP_IDCT_CONSTANTS_H
#define LEAT_DSP_IDCT_CONSTANTS_H

#define IDCT_ONE 8192
#define IDCT_0_298 2446  /* 0.298631336 */
#define IDCT_0_390 3196  /* 0.390180644 */
#define IDCT_0_541 4433  /* 0.541196100 */
#define IDCT_0_765 6270  /* 0.765366865 */
#define IDCT_0_899 7373  /* 0.899976223 */
#define IDCT_1_175 9633  /* 1.175875602 */
#define IDCT_1_501 12299 /* 1.501321110 */
#define IDCT_1_847 15137 /* 1.847759065 */
#define IDCT_1_961 16069 /* 1.961570560 */
#define IDCT_2_053 16819 /* 2.053119869 */
#define IDCT_2_562 20995 /* 2.562915447 */
#define IDCT_3_072 25172 /* 3.072711026 */

#define IDCT_SHIFT1 11 /* pass 1 keeps two fraction bits */
#define IDCT_SHIFT2 18

#endif
