/* SPDX-License-Identifier: Apache-2.0
 *
 * Prices of requests and traffic: see traffic.h.
 */
#include "io/traffic.h"

#include <stdlib.h>

#include "io/url.h"

static const struct {
    leat__scheme scheme;
    const char *endpoint; /* variable that, if set, names a server other than the cloud's */
    leat__traffic_rates rates;
} prices[] = {
    {LEAT__SCHEME_S3, "AWS_ENDPOINT_URL", {0.0004, 0.02, 0.09}},
    {LEAT__SCHEME_GS, "GS_ENDPOINT_URL", {0.0004, 0.02, 0.12}},
    {LEAT__SCHEME_AZ, "AZURE_STORAGE_ENDPOINT", {0.0005, 0.02, 0.087}},
};

bool leat__traffic_rates_of(const char *path, leat__traffic_rates *rates)
{
    leat__scheme scheme = leat__path_scheme(path);
    for (size_t i = 0; i < sizeof prices / sizeof prices[0]; i++) {
        const char *endpoint = getenv(prices[i].endpoint);
        if (prices[i].scheme != scheme) continue;
        if (endpoint != NULL && *endpoint != '\0') return false;
        *rates = prices[i].rates;
        return true;
    }
    return false;
}

bool leat__traffic_price_of(const char *path, uint64_t bytes, uint64_t requests, leat__traffic_price *price)
{
    leat__traffic_rates r;
    if (!leat__traffic_rates_of(path, &r)) return false;
    double asked = (double)requests / 1000 * r.per_1000, gb = (double)bytes / 1e9;
    *price = (leat__traffic_price){asked, asked + gb * r.other_region, asked + gb * r.internet};
    return true;
}
