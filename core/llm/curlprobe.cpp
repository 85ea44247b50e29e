// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/llm/curlprobe.h"

#if KLINEAGE_HAVE_CURL
#include "core/llm/network/curllibrary.h"

#include <string_view>
#endif

namespace klineage::llm {

CurlFacts probeCurl()
{
    CurlFacts facts;
#if KLINEAGE_HAVE_CURL
    if (!loadCurl())
        return facts;
    const curl_version_info_data *info = curl().version_info(CURLVERSION_NOW);
    facts.isThere = true;
    facts.version = info->version;
    if (info->ssl_version)
        facts.tls = info->ssl_version;
    facts.asynchronousDns = (info->features & CURL_VERSION_ASYNCHDNS) != 0;
    for (const char *const *protocol = info->protocols; *protocol; ++protocol)
        facts.https = facts.https || std::string_view(*protocol) == "https";
#endif
    return facts;
}

} // namespace klineage::llm
