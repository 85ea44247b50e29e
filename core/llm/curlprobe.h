// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <string>
#include <vector>

namespace klineage::llm {

/// What the installed libcurl can do; read at run time, no network is touched.
struct CurlFacts {
    bool isThere = false; ///< false: built without libcurl, or it is not installed; everything else is empty
    std::string version;  ///< "7.88.1"
    std::string tls;      ///< "OpenSSL/3.0.17"; empty: no https
    bool https = false;
    bool asynchronousDns = false; ///< a name lookup can be cut off by a deadline
};

[[nodiscard]] CurlFacts probeCurl();

} // namespace klineage::llm
