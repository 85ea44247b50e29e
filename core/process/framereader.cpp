// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/process/framereader.h"

#include <cstdint>

namespace klineage::process {

namespace {
constexpr std::size_t headerBytes = 4;
}

Result<std::string> encodeFrame(const nlohmann::json &message)
{
    // Replace, because logs of compilers and drivers are not always UTF-8.
    const std::string text = message.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
    if (text.size() > maxFrameBytes)
        return fail(ErrorCode::Protocol, "Cannot send a message of " + std::to_string(text.size())
                                             + " bytes: the limit is " + std::to_string(maxFrameBytes) + ".");
    std::string frame;
    frame.reserve(text.size() + headerBytes);
    for (std::size_t i = 0; i < headerBytes; ++i)
        frame.push_back(static_cast<char>((text.size() >> (8 * i)) & 0xff));
    return frame + text;
}

void FrameReader::feed(std::span<const char> bytes)
{
    if (m_error)
        return;
    if (m_consumed == m_buffer.size() || m_consumed > maxFrameBytes / 16) {
        m_buffer.erase(0, m_consumed);
        m_consumed = 0;
    }
    m_buffer.append(bytes.data(), bytes.size());
}

Result<std::optional<nlohmann::json>> FrameReader::next()
{
    if (m_error)
        return tl::unexpected(*m_error);
    const std::size_t available = m_buffer.size() - m_consumed;
    if (available < headerBytes)
        return std::optional<nlohmann::json>();
    std::size_t length = 0;
    for (std::size_t i = 0; i < headerBytes; ++i)
        length |= static_cast<std::size_t>(static_cast<std::uint8_t>(m_buffer[m_consumed + i])) << (8 * i);
    if (length > m_limitBytes || length < 2) {
        m_error = Error{ErrorCode::Protocol,
                        "The peer announced a message of " + std::to_string(length)
                            + " bytes; allowed are 2 to " + std::to_string(m_limitBytes) + ".",
                        {}};
        return tl::unexpected(*m_error);
    }
    if (available - headerBytes < length)
        return std::optional<nlohmann::json>();
    const char *begin = m_buffer.data() + m_consumed + headerBytes;
    auto message = nlohmann::json::parse(begin, begin + length, nullptr, false);
    m_consumed += headerBytes + length;
    if (message.is_discarded() || !message.is_object()) {
        m_error = Error{ErrorCode::Protocol, "The peer sent a message that is not a JSON object.", {}};
        return tl::unexpected(*m_error);
    }
    return std::optional<nlohmann::json>(std::move(message));
}

} // namespace klineage::process
