// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/base/result.h"

#include <functional>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

namespace klineage::llm {

struct HttpLimits {
    double connectSeconds = 20;
    double idleSeconds = 300; ///< without a byte in either direction
    double totalSeconds = 3600;
    std::size_t maxBodyBytes = std::size_t{64} << 20;
};

struct HttpRequest {
    std::string url;
    std::vector<std::string> headers;
    std::string body;
    bool throughProxy =
        true; ///< false: the proxies of the environment are left alone (servers on this machine)
};

struct HttpResult {
    int status = 0;               ///< 0: no answer began (an interim one, 1xx, is none)
    std::optional<Error> problem; ///< the transfer did not come to its end
    bool isCutShort = false; ///< the problem is that nothing more came; what came is sound as far as it goes
    bool bodySent = false;   ///< all of the request's body left this machine
    bool canBeRepeated = false;   ///< the problem is one of the connection, which may be gone next time
    double retryAfterSeconds = 0; ///< what the server asks to wait; 0: nothing that can be read
    std::string requestId;        ///< "request-id" or "x-request-id" as sent
    std::string errorBody;        ///< of any status but 2xx; at most 64 KiB
};

[[nodiscard]] bool isSuccess(int status); ///< 2xx

/// Receives the body of a 2xx; true: nothing more is wanted. An Error ends the transfer and becomes the result's problem.
using BodyReceiver = std::function<Result<bool>(std::string_view)>;

/// One POST over libcurl, on a connection of its own (a kept one could make libcurl send the request twice). TLS is verified, redirects
/// are not followed. Blocks; a stop request ends it at once (Cancelled). Thread-safe.
[[nodiscard]] HttpResult httpPost(const HttpRequest &request, const HttpLimits &limits, std::stop_token stop,
                                  const BodyReceiver &receive);

} // namespace klineage::llm
