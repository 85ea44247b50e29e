// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/llm/network/baseurl.h"

#include "core/llm/network/curllibrary.h"

#include <arpa/inet.h>

#include <algorithm>
#include <memory>

namespace klineage::llm {

namespace {

struct UrlDeleter {
    void operator()(CURLU *url) const { curl().url_cleanup(url); }
};
using UrlHandle = std::unique_ptr<CURLU, UrlDeleter>;

/// Empty when the URL has no such part.
std::string partOf(CURLU *url, CURLUPart part)
{
    char *text = nullptr;
    if (curl().url_get(url, part, &text, 0) != CURLUE_OK || !text)
        return {};
    std::string result(text);
    curl().free(text);
    return result;
}

bool isThisMachine(const std::string &host)
{
    in_addr address{};
    if (::inet_pton(AF_INET, host.c_str(), &address) == 1)
        return (ntohl(address.s_addr) >> 24) == 127;
    return host == "localhost" || host == "[::1]";
}

std::string lowered(std::string text)
{
    for (char &c : text)
        c = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
    return text;
}

} // namespace

Result<BaseUrl> parseBaseUrl(const std::string &url, const std::vector<std::string> &ownHosts)
{
    if (const Status loaded = loadCurl(); !loaded)
        return tl::unexpected(loaded.error());
    const UrlHandle handle(curl().url());
    if (!handle || url.size() > 2000
        || curl().url_set(handle.get(), CURLUPART_URL, url.c_str(), CURLU_NON_SUPPORT_SCHEME) != CURLUE_OK)
        return fail(ErrorCode::InvalidInput,
                    "The server's address is no URL; expected one such as http://127.0.0.1:8000/v1.");
    for (const CURLUPart part : {CURLUPART_USER, CURLUPART_PASSWORD, CURLUPART_QUERY, CURLUPART_FRAGMENT}) {
        if (!partOf(handle.get(), part).empty())
            return fail(
                ErrorCode::InvalidInput,
                "The server's address has a user, a password, a query or a fragment; keys are given in the "
                "environment.");
    }
    BaseUrl result;
    result.host = partOf(handle.get(), CURLUPART_HOST);
    result.onThisMachine = isThisMachine(result.host);
    result.isOwn = result.onThisMachine
                   || std::find(ownHosts.begin(), ownHosts.end(), lowered(result.host)) != ownHosts.end();
    const std::string scheme = partOf(handle.get(), CURLUPART_SCHEME);
    if (scheme != "https" && !(scheme == "http" && result.isOwn))
        return fail(ErrorCode::InvalidInput,
                    "The server " + result.host + " is not asked over '" + scheme
                        + "': prompts and keys travel over https, or over http to this machine and to the "
                          "own_hosts of ~/.config/klineage/models.toml.");
    result.text = partOf(handle.get(), CURLUPART_URL);
    while (result.text.ends_with('/'))
        result.text.pop_back();
    return result;
}

} // namespace klineage::llm
