// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/files/tomlreader.h"

namespace klineage::files {

/// The `[[key]]` of a table, at most so many of them; that there are more is reported.
[[nodiscard]] inline std::vector<TomlTable> tomlEntries(const TomlTable &table, const char *key,
                                                        std::size_t most)
{
    std::vector<TomlTable> entries = table.tables(key);
    if (entries.size() > most) {
        table.fail(entries[most].position(),
                   "there are more than " + std::to_string(most) + " [[" + std::string(key) + "]] entries.");
        entries.erase(entries.begin() + static_cast<std::ptrdiff_t>(most), entries.end());
    }
    return entries;
}

} // namespace klineage::files
