// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <string>
#include <vector>

namespace klineage::llm {

/// What the linked libcurl can do; read once at run time, no network is touched.
struct CurlFacts {
    bool linked = false; ///< false: built without libcurl, everything else is empty
    std::string version; ///< "7.88.1"
    std::string tls;     ///< "OpenSSL/3.0.17"; empty: no https
    bool https = false;
    bool asynchronousDns = false; ///< a name lookup can be cut off by a deadline
};

[[nodiscard]] CurlFacts probeCurl();

} // namespace klineage::llm
