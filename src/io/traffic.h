/* SPDX-License-Identifier: Apache-2.0
 *
 * The cost of reading from a bucket, by the list prices of the cloud for US regions, as published at
 * LEAT__TRAFFIC_DATE. Contracts, tiers and other regions differ.
 */
#ifndef LEAT_IO_TRAFFIC_H
#define LEAT_IO_TRAFFIC_H

#include <stdbool.h>
#include <stdint.h>

#define LEAT__TRAFFIC_DATE "2025-01"

/* US dollars, including requests, by the location of the machine. */
typedef struct leat__traffic_price {
    double same_region, other_region, internet;
} leat__traffic_price;

/* Per 1000 GET requests, and per GB (1e9 bytes) that leaves the region or the cloud. */
typedef struct leat__traffic_rates {
    double per_1000, other_region, internet;
} leat__traffic_rates;
bool leat__traffic_rates_of(const char *path, leat__traffic_rates *rates);

/* Computes the price; false when prices are unknown: web servers, local files, and S3-compatible servers (an
 * endpoint is set). */
bool leat__traffic_price_of(const char *path, uint64_t bytes, uint64_t requests, leat__traffic_price *price);

#endif
