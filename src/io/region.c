/* SPDX-License-Identifier: Apache-2.0
 *
 * Regions of bucket and machine: see region.h.
 */
#include "io/region.h"

#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "base/thread.h"
#include "io/traffic.h"

#define LEARNED 16

static struct {
    leat__mutex lock;
    bool noted;
    unsigned told; /* places that have shown the warning, as bits */
    char text[LEAT__REGION_TEXT];
    struct {
        char key[256], region[64];
    } learned[LEARNED];
    uint32_t next; /* next entry of `learned` to overwrite, cyclic */
} process = {.lock = {PTHREAD_MUTEX_INITIALIZER}};

static void write_text(const char *bucket, const char *theirs, const char *ours, const char *known_from)
{
    char path[96], price[160] = "reading across regions is slow and often costs money";
    leat__traffic_rates rates;
    snprintf(path, sizeof path, "s3://%.80s", bucket);
    if (leat__traffic_rates_of(path, &rates))
        snprintf(price, sizeof price, "every GB costs $%.2f by list prices of %s ($%.2f over the internet)",
                 rates.other_region, LEAT__TRAFFIC_DATE, rates.internet);
    snprintf(process.text, sizeof process.text,
             "%s is in region %.40s, this machine is in %.40s (%s): %s; a loader with --cache disk:DIR "
             "reads each page once",
             path, theirs, ours, known_from, price);
}

void leat__region_note(const char *bucket, const char *bucket_region, const char *machine_region,
                       const char *known_from)
{
    if (bucket_region[0] == '\0' || machine_region[0] == '\0' || strcmp(bucket_region, machine_region) == 0)
        return;
    leat__fork_renew(&process.lock);
    leat__mutex_lock(&process.lock);
    if (!process.noted) {
        write_text(bucket, bucket_region, machine_region, known_from);
        process.noted = true;
    }
    leat__mutex_unlock(&process.lock);
}

bool leat__region_warning(unsigned tellers, char text[LEAT__REGION_TEXT])
{
    leat__mutex_lock(&process.lock);
    bool now = process.noted && (process.told & tellers) == 0;
    if (now) {
        memcpy(text, process.text, sizeof process.text);
        process.told |= tellers;
    }
    leat__mutex_unlock(&process.lock);
    return now;
}

/* Builds the key of a bucket; false when it is too long to remember. */
static bool make_key(const char *endpoint, const char *bucket, char key[256])
{
    return snprintf(key, 256, "%s %s", endpoint, bucket) < 256;
}

static int find_locked(const char *key)
{
    for (int i = 0; i < LEARNED; i++)
        if (strcmp(process.learned[i].key, key) == 0) return i;
    return -1;
}

void leat__region_learn(const char *endpoint, const char *bucket, const char *region)
{
    char key[256];
    if (!make_key(endpoint, bucket, key) || strlen(region) >= sizeof process.learned[0].region) return;
    leat__mutex_lock(&process.lock);
    int i = find_locked(key);
    if (i < 0) i = (int)(process.next++ % LEARNED);
    snprintf(process.learned[i].key, sizeof process.learned[i].key, "%s", key);
    snprintf(process.learned[i].region, sizeof process.learned[i].region, "%s", region);
    leat__mutex_unlock(&process.lock);
}

bool leat__region_learned(const char *endpoint, const char *bucket, char region[64])
{
    char key[256];
    if (!make_key(endpoint, bucket, key)) return false;
    leat__mutex_lock(&process.lock);
    int i = find_locked(key);
    if (i >= 0) snprintf(region, 64, "%s", process.learned[i].region);
    leat__mutex_unlock(&process.lock);
    return i >= 0;
}
