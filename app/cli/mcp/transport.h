// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <functional>
#include <stop_token>
#include <string>
#include <string_view>

namespace klineage::cli {

/// The protocol's two pipes. Takes stdout for itself: whatever else writes to it afterwards, drivers included, goes to stderr.
class StdioTransport
{
public:
    StdioTransport();
    ~StdioTransport();
    StdioTransport(const StdioTransport &) = delete;
    StdioTransport &operator=(const StdioTransport &) = delete;

    /// One line out; nothing once the client has gone. One thread at a time.
    void write(const std::string &line);
    /// Hands over lines until the input ends or a stop is asked for, each with an empty tail. Of a line longer than `most` bytes the first
    /// most + 1 are handed over and, as tail, at most 4 KiB of its end, so that nobody can fill the memory.
    void read(std::size_t most, const std::stop_token &stop,
              const std::function<void(std::string_view line, std::string_view tail)> &line);

private:
    int m_out = -1;
};

} // namespace klineage::cli
