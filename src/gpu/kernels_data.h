/* SPDX-License-Identifier: Apache-2.0
 *
 * The compiled kernels and their source as one text, written by embed.py when leat is built.
 */
#ifndef LEAT_GPU_KERNELS_DATA_H
#define LEAT_GPU_KERNELS_DATA_H

#include <stddef.h>

extern const unsigned char leat__kernels_image[]; /* for cuModuleLoadData */
extern const size_t leat__kernels_image_size;     /* 0: built without nvcc */
extern const char leat__kernels_source[];         /* for NVRTC */

#endif
