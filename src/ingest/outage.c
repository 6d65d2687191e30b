/* SPDX-License-Identifier: Apache-2.0 */
#include "ingest/outage.h"

#include <string.h>

#include "base/mem.h"
#include "base/num.h"
#include "io/remote.h"
#include "io/store.h"

void leat__outage_reset(leat__outage *o)
{
    for (uint32_t i = 0; i < o->hosts; i++) leat__free(o->delivered[i]);
    *o = (leat__outage){0};
}

/* Returns the length of scheme, host and port, or bucket: "s3://bucket/". */
static size_t host_length(const char *path)
{
    const char *host = strstr(path, "://");
    const char *end = host ? strchr(host + 3, '/') : NULL;
    return end ? (size_t)(end + 1 - path) : strlen(path);
}

/* Finds the entry of the path's host; o->hosts when there is none. */
static uint32_t find_host(const leat__outage *o, const char *path)
{
    const size_t len = host_length(path);
    uint32_t i = 0;
    while (i < o->hosts && (host_length(o->delivered[i]) != len || memcmp(o->delivered[i], path, len) != 0))
        i++;
    return i;
}

int leat__outage_delivered(leat__outage *o, const char *path, leat_error *err)
{
    if (!path) return 0;
    const uint32_t i = find_host(o, path);
    if (i == LEAT__OUTAGE_HOSTS) return 0;
    char *copy = leat__strdup(LEAT__MEM_INGEST, path);
    if (!copy) return leat__fail_nomem(err, strlen(path), "a path");
    if (i < o->hosts) leat__free(o->delivered[i]);
    o->hosts = LEAT_MAX(o->hosts, i + 1);
    o->delivered[i] = copy;
    return 0;
}

static int open_again(const char *path)
{
    leat__remote *f = NULL;
    const int rc = leat__remote_open(&f, path, NULL);
    leat__remote_close(&f);
    return rc;
}

const char *leat__outage_failed(leat__outage *o, const char *path, const leat_error *why,
                                leat__outage_read again, void *cookie)
{
    if (!path || !why) return NULL;
    if (why->code == LEAT_ECHANGED) return "the source changed during the run";
    const bool gone = leat__store_gone(why);
    if (!gone && !leat__remote_failed(why->code)) return NULL;
    const uint32_t i = find_host(o, path);
    if (i == o->hosts && i > 0) return NULL;
    if (gone && i < o->hosts) return "the storage fails: the bucket does not exist any more";
    const int rc = gone ? why->code : again ? again(cookie) : open_again(path);
    if (rc == LEAT_ECHANGED) return "the source changed during the run";
    if (rc == 0) return "the storage failed for a while: this sample can be read now";
    if (!gone && !leat__remote_failed(rc)) return NULL;
    if (i == o->hosts) {
        o->failures++;
        return o->failures < LEAT__OUTAGE_FAILURES
                   ? NULL
                   : "the storage fails: several consecutive samples cannot be read";
    }
    if (!leat__remote_failed(open_again(o->delivered[i]))) return NULL;
    return "the storage fails: neither this sample nor the one read before it can be read now";
}
