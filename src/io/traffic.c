/* SPDX-License-Identifier: Apache-2.0
 *
 * Prices of requests and traffic: see traffic.h.
 */
#include "io/traffic.h"

#include <stdlib.h>

#include "io/url.h"

/* Per GB (10^9 bytes) that leaves the region or the cloud, and per 1000 GET requests. */
static const struct {
    leat__scheme scheme;
    const char *endpoint; /* set: not the owner's server */
    double per_1000, other_region, internet;
} prices[] = {
    {LEAT__SCHEME_S3, "AWS_ENDPOINT_URL", 0.0004, 0.02, 0.09},
    {LEAT__SCHEME_GS, "GS_ENDPOINT_URL", 0.0004, 0.02, 0.12},
    {LEAT__SCHEME_AZ, "AZURE_STORAGE_ENDPOINT", 0.0005, 0.02, 0.087},
};

bool leat__traffic_price_of(const char *path, uint64_t bytes, uint64_t requests, leat__traffic_price *price)
{
    leat__scheme scheme = leat__path_scheme(path);
    for (size_t i = 0; i < sizeof prices / sizeof prices[0]; i++) {
        const char *endpoint = getenv(prices[i].endpoint);
        if (prices[i].scheme != scheme) continue;
        if (endpoint != NULL && *endpoint != '\0') return false;
        double asked = (double)requests / 1000 * prices[i].per_1000, gb = (double)bytes / 1e9;
        *price = (leat__traffic_price){asked, asked + gb * prices[i].other_region,
                                       asked + gb * prices[i].internet};
        return true;
    }
    return false;
}
