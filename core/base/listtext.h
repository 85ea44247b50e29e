// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace klineage {

/// "a, b, c".
[[nodiscard]] inline std::string joined(const std::vector<std::string> &items,
                                        std::string_view between = ", ")
{
    std::string text;
    for (const std::string &item : items)
        text.append(text.empty() ? "" : between).append(item);
    return text;
}

/// "a, b and c", as in a sentence.
[[nodiscard]] inline std::string listed(const std::vector<std::string> &items)
{
    std::string text;
    for (std::size_t i = 0; i < items.size(); ++i)
        text += (i == 0 ? "" : i + 1 == items.size() ? " and " : ", ") + items[i];
    return text;
}

} // namespace klineage
