// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/llm/network/curllibrary.h"

#include <dlfcn.h>

namespace klineage::llm {

namespace {

Result<Curl> openLibrary()
{
    // Never closed: it keeps what was made ready for the whole process.
    void *library = ::dlopen(KLINEAGE_CURL_NAME, RTLD_NOW | RTLD_LOCAL);
    if (!library)
        return fail(ErrorCode::Unavailable, "Cannot load " KLINEAGE_CURL_NAME ": it is not installed.");
    Curl api;
#define KLINEAGE_CURL_RESOLVE(name) \
    api.name = reinterpret_cast<decltype(api.name)>(::dlsym(library, "curl_" #name)); \
    if (!api.name) \
        return fail(ErrorCode::Unavailable, "Cannot use " KLINEAGE_CURL_NAME ": it lacks curl_" #name ".");
    KLINEAGE_CURL_SYMBOLS(KLINEAGE_CURL_RESOLVE)
#undef KLINEAGE_CURL_RESOLVE
    if (api.global_init(CURL_GLOBAL_DEFAULT) != CURLE_OK)
        return fail(ErrorCode::Unavailable, "Cannot use " KLINEAGE_CURL_NAME ": it could not be started.");
    return api;
}

const Result<Curl> &library()
{
    static const Result<Curl> opened = openLibrary();
    return opened;
}

} // namespace

Status loadCurl()
{
    if (!library())
        return tl::unexpected(library().error());
    return {};
}

const Curl &curl()
{
    return *library();
}

} // namespace klineage::llm
