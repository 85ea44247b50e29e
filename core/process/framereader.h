// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/base/result.h"

#include <cstddef>
#include <nlohmann/json.hpp>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace klineage::process {

/// A frame is its length (4 bytes, little-endian, at most maxFrameBytes) and that many bytes of UTF-8 JSON, an object.
inline constexpr std::size_t maxFrameBytes = std::size_t{64} << 20;

[[nodiscard]] Result<std::string> encodeFrame(const nlohmann::json &message);

/// Decodes frames from bytes that arrive in any pieces. Pure. The first error is final: every later next() repeats it.
class FrameReader
{
public:
    explicit FrameReader(std::size_t limitBytes = maxFrameBytes)
        : m_limitBytes(limitBytes)
    {}

    void feed(std::span<const char> bytes);
    /// A complete message, nothing yet, or ErrorCode::Protocol (too long, not JSON, not an object).
    [[nodiscard]] Result<std::optional<nlohmann::json>> next();
    /// True when the stream could end here without cutting a frame.
    [[nodiscard]] bool atBoundary() const { return m_buffer.size() == m_consumed; }

private:
    std::size_t m_limitBytes;
    std::string m_buffer;
    std::size_t m_consumed = 0;
    std::optional<Error> m_error;
};

} // namespace klineage::process
