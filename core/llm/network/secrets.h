// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/base/result.h"

#include <cstddef>
#include <functional>
#include <string>
#include <string_view>

namespace klineage::llm {

/// Gives the key of a provider ("anthropic", "openai"), or an empty text: the desktop keychain in the window. Called on the thread of
/// ask(), once a request.
using KeyCallback = std::function<std::string(std::string_view provider)>;

/// The variable that a provider's key is read from: ANTHROPIC_API_KEY, OPENAI_API_KEY; for a server on this machine, which other people
/// of the machine could stand in for, KLINEAGE_LOCAL_API_KEY.
[[nodiscard]] const char *keyVariable(std::string_view provider, bool onThisMachine);
/// From the callback, else from the environment; empty when there is none. InvalidInput (without the key) when it cannot be one.
[[nodiscard]] Result<std::string> findKey(std::string_view provider, bool onThisMachine,
                                          const KeyCallback &callback);

/// The text with the key replaced by "[key]"; in errors also everything that looks like a key. Keys shorter than eight bytes are no
/// secrets.
[[nodiscard]] std::string scrubbed(std::string_view text, std::string_view key);
[[nodiscard]] Error scrubbed(const Error &error, std::string_view key);

/// The same of a text that comes in pieces, which may part the key: what could become one is held back.
class PiecewiseScrubber
{
public:
    explicit PiecewiseScrubber(std::string key);
    [[nodiscard]] std::string take(std::string_view piece); ///< what can be shown by now; may be empty
    [[nodiscard]] std::string rest();                       ///< what was held back, after the last piece

private:
    std::string m_key;
    std::string m_held;
};

} // namespace klineage::llm
