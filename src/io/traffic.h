/* SPDX-License-Identifier: Apache-2.0
 *
 * What reading from a bucket costs by its owner's list prices. The prices are those of US regions
 * as they were published at LEAT__TRAFFIC_DATE; contracts, tiers and other regions differ.
 */
#ifndef LEAT_IO_TRAFFIC_H
#define LEAT_IO_TRAFFIC_H

#include <stdbool.h>
#include <stdint.h>

#define LEAT__TRAFFIC_DATE "2025-01"

/* US dollars, requests included, by where the machine is. */
typedef struct leat__traffic_price {
    double same_region, other_region, internet;
} leat__traffic_price;

/* False for paths whose prices are not known: web servers, local files. Other servers behind s3://
 * (an endpoint that is set) have prices of their own: false too. */
bool leat__traffic_price_of(const char *path, uint64_t bytes, uint64_t requests, leat__traffic_price *price);

#endif
