// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/base/result.h"

#include <string>
#include <vector>

namespace klineage::llm {

/// The address of a server, without the path of its API.
struct BaseUrl {
    std::string text; ///< normalized, without a slash at the end
    std::string host; ///< for messages
    bool onThisMachine = false;
    bool isOwn = false; ///< on this machine, or one of a person's own hosts
};

/// https anywhere, http only to this machine (localhost, 127.0.0.0/8, [::1]) and to ownHosts; no user, password, query or fragment in it. InvalidInput
/// otherwise; the message never repeats what could be a password.
[[nodiscard]] Result<BaseUrl> parseBaseUrl(const std::string &url,
                                           const std::vector<std::string> &ownHosts = {});

} // namespace klineage::llm
