// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace klineage::files {

/// A TOML string: "…" with escapes, or a multi-line """ string when the value has line breaks.
[[nodiscard]] std::string tomlString(std::string_view value);
/// A bare key when that is possible, otherwise a quoted one.
[[nodiscard]] std::string tomlKey(std::string_view key);
/// The shortest text that reads back as the same double; always with a '.' or an exponent, "inf" and "nan" as
/// TOML has them.
[[nodiscard]] std::string tomlNumber(double value);

/// `{ a = 1, b = "x" }`: names with values that are already written as TOML (by the functions above, or by
/// this one).
[[nodiscard]] std::string tomlInlineTable(const std::vector<std::pair<std::string, std::string>> &fields);

/// Writes TOML in the order it is called: the same calls give the same bytes. Reading the result back gives
/// the same values.
class TomlWriter
{
public:
    /// `[name]` or `[[name]]`, with a blank line before it. name is written as it is (dots separate levels).
    void beginTable(std::string_view name);
    void beginArrayTable(std::string_view name);
    /// A table of its own for the map; nothing when it is empty.
    void stringTable(std::string_view name, const std::map<std::string, std::string> &values);

    void string(std::string_view key, std::string_view value);
    void integer(std::string_view key, std::int64_t value);
    void number(std::string_view key, double value);
    void boolean(std::string_view key, bool value);
    /// An integer when the text is one that TOML can hold, otherwise a string: how expressions are written.
    void expression(std::string_view key, std::string_view text);
    void strings(std::string_view key, const std::vector<std::string> &values);
    void integers(std::string_view key, const std::vector<std::int64_t> &values);
    void expressions(std::string_view key, const std::vector<std::string> &texts);
    /// An inline table, `{ a = "x", b = "y" }`.
    void stringMap(std::string_view key, const std::map<std::string, std::string> &values);
    void integerMap(std::string_view key, const std::map<std::string, std::int64_t> &values);

    /// A value that is already written as TOML.
    void written(std::string_view key, std::string_view value);

    /// The same, left out when it is empty.
    void optionalString(std::string_view key, std::string_view value);
    void optionalStrings(std::string_view key, const std::vector<std::string> &values);

    [[nodiscard]] const std::string &text() const { return m_text; }

private:
    void list(std::string_view key, const std::vector<std::string> &items);

    std::string m_text;
};

} // namespace klineage::files
