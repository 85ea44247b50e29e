// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/base/result.h"

#include <curl/curl.h>

namespace klineage::llm {

#define KLINEAGE_CURL_SYMBOLS(X) \
    X(easy_cleanup) \
    X(easy_getinfo) \
    X(easy_header) \
    X(easy_init) \
    X(easy_setopt) \
    X(easy_strerror) \
    X(free) \
    X(global_init) \
    X(multi_add_handle) \
    X(multi_cleanup) \
    X(multi_info_read) \
    X(multi_init) \
    X(multi_perform) \
    X(multi_poll) \
    X(multi_remove_handle) \
    X(multi_wakeup) \
    X(slist_append) \
    X(slist_free_all) \
    X(url) \
    X(url_cleanup) \
    X(url_get) \
    X(url_set) \
    X(version_info)

/// The functions of libcurl that are called, by their names without "curl_".
struct Curl {
#define KLINEAGE_CURL_MEMBER(name) decltype(&::curl_##name) name = nullptr;
    KLINEAGE_CURL_SYMBOLS(KLINEAGE_CURL_MEMBER)
#undef KLINEAGE_CURL_MEMBER
};

/// Loaded and made ready by the first call, and kept. Unavailable: it is not installed, or is no such library.
Status loadCurl();
/// After loadCurl() succeeded.
const Curl &curl();

} // namespace klineage::llm
