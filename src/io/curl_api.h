/* SPDX-License-Identifier: Apache-2.0
 *
 * libcurl, loaded when the first remote path is opened. So a program that only reads local files does not
 * load it and the thirty libraries it needs, and leat works on a machine without it. Building needs only its
 * headers. LEAT_CURL names a library other than libcurl.so.4.
 */
#ifndef LEAT_IO_CURL_API_H
#define LEAT_IO_CURL_API_H

#include "base/error.h"

#ifdef LEAT_HAVE_CURL

#define CURL_DISABLE_TYPECHECK
#define CURL_DISABLE_DEPRECATION /* deprecated options work with every libcurl version */
#include <curl/curl.h>

typedef struct leat__curl {
    CURLcode (*global_init)(long flags);
    CURL *(*easy_init)(void);
    void (*easy_cleanup)(CURL *easy);
    void (*easy_reset)(CURL *easy);
    CURLcode (*easy_setopt)(CURL *easy, CURLoption option, ...);
    CURLcode (*easy_getinfo)(CURL *easy, CURLINFO info, ...);
    const char *(*easy_strerror)(CURLcode code);
    struct curl_slist *(*slist_append)(struct curl_slist *list, const char *text);
    void (*slist_free_all)(struct curl_slist *list);
    CURLM *(*multi_init)(void);
    CURLMcode (*multi_cleanup)(CURLM *multi);
    CURLMcode (*multi_setopt)(CURLM *multi, CURLMoption option, ...);
    CURLMcode (*multi_add_handle)(CURLM *multi, CURL *easy);
    CURLMcode (*multi_remove_handle)(CURLM *multi, CURL *easy);
    CURLMcode (*multi_socket_action)(CURLM *multi, curl_socket_t socket, int events, int *running);
    CURLMsg *(*multi_info_read)(CURLM *multi, int *left);
} leat__curl;

/* Returns the functions of libcurl. LEAT_ENOTSUP: it is missing; err says what to install. Any thread. */
int leat__curl_load(const leat__curl **curl, leat_error *err) LEAT_MUST_CHECK;

#endif
#endif
