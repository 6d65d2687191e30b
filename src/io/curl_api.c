/* SPDX-License-Identifier: Apache-2.0
 *
 * Loads libcurl: see curl_api.h. libcurl.so.4 has had the same ABI since 2006; the newest function used here
 * is from 7.68 (2020).
 */
#include "io/curl_api.h"

#ifdef LEAT_HAVE_CURL

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

#include "base/num.h"
#include "base/thread.h"

static struct {
    leat__once once;
    leat__curl api;
    int rc;
    leat_error err;
} loaded = {.once = LEAT__ONCE_INIT};

static void *open_library(void)
{
    static const char *const names[] = {"libcurl.so.4", "libcurl-gnutls.so.4"};
    const char *given = getenv("LEAT_CURL");
    if (given != NULL && *given != '\0') return dlopen(given, RTLD_NOW | RTLD_LOCAL);
    void *lib = NULL;
    for (size_t i = 0; i < LEAT_COUNT(names) && lib == NULL; i++)
        lib = dlopen(names[i], RTLD_NOW | RTLD_LOCAL);
    return lib;
}

static void load(void)
{
    leat__curl *c = &loaded.api;
    const struct {
        const char *name;
        void *slot;
    } symbols[] = {
        {"curl_global_init", &c->global_init},
        {"curl_easy_init", &c->easy_init},
        {"curl_easy_cleanup", &c->easy_cleanup},
        {"curl_easy_reset", &c->easy_reset},
        {"curl_easy_setopt", &c->easy_setopt},
        {"curl_easy_getinfo", &c->easy_getinfo},
        {"curl_easy_strerror", &c->easy_strerror},
        {"curl_slist_append", &c->slist_append},
        {"curl_slist_free_all", &c->slist_free_all},
        {"curl_multi_init", &c->multi_init},
        {"curl_multi_cleanup", &c->multi_cleanup},
        {"curl_multi_setopt", &c->multi_setopt},
        {"curl_multi_add_handle", &c->multi_add_handle},
        {"curl_multi_remove_handle", &c->multi_remove_handle},
        {"curl_multi_socket_action", &c->multi_socket_action},
        {"curl_multi_info_read", &c->multi_info_read},
    };
    void *lib = open_library(); /* never closed: libcurl keeps state for the whole process */
    if (lib == NULL) {
        loaded.rc = leat__fail(&loaded.err, LEAT_ENOTSUP,
                               "remote paths need libcurl.so.4, which is not installed (on Debian: "
                               "apt install libcurl4)");
        return;
    }
    for (size_t i = 0; i < LEAT_COUNT(symbols); i++) {
        void *address = dlsym(lib, symbols[i].name);
        if (address == NULL) {
            loaded.rc = leat__fail(&loaded.err, LEAT_ENOTSUP, "libcurl lacks %s: 7.68 or newer is needed",
                                   symbols[i].name);
            return;
        }
        memcpy(symbols[i].slot, &address, sizeof address);
    }
    if (c->global_init(CURL_GLOBAL_ALL) != CURLE_OK)
        loaded.rc = leat__fail(&loaded.err, LEAT_ENOTSUP, "libcurl cannot be started");
}

int leat__curl_load(const leat__curl **curl, leat_error *err)
{
    leat__once_run(&loaded.once, load);
    *curl = &loaded.api;
    if (loaded.rc != 0 && err != NULL) *err = loaded.err;
    return loaded.rc;
}

#endif
