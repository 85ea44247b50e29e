// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/base/result.h"

#include <nlohmann/json.hpp>

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace klineage::files {

/// Where a value is: keys and decimal array indices from the root.
using JsonPath = std::vector<std::string>;

/// Thrown by JsonReader, caught where the document is parsed: it never leaves the parsing function.
struct JsonFormatError {
    JsonPath path;
    std::string message;
    bool atKey = false; ///< the key at the end of path is wrong, not its value
};

inline constexpr std::size_t maxJsonText = std::size_t{64} << 10;

/// Reads the keys of one JSON object strictly: a wrong type, a missing required key, a text over its limit or a number that is not
/// finite throws JsonFormatError; finish() throws for every key that was not asked for, with a suggestion.
/// The JSON value must outlive the reader.
class JsonReader
{
public:
    JsonReader(const nlohmann::json &object, JsonPath path);

    /// nullptr when the key is missing (or an error when it is required). Remembers the key as known.
    const nlohmann::json *find(const std::string &key);
    const nlohmann::json &require(const std::string &key);

    std::string text(const std::string &key, std::size_t limit = maxJsonText);
    std::string optionalText(const std::string &key, std::size_t limit = maxJsonText);
    double number(const std::string &key);
    double optionalNumber(const std::string &key, double missing);
    std::int64_t integer(const std::string &key);
    bool boolean(const std::string &key);
    /// nullptr when missing; an array of at most limit elements otherwise.
    const nlohmann::json *optionalArray(const std::string &key, std::size_t limit);
    const nlohmann::json *optionalObject(const std::string &key, std::size_t limit);

    void finish() const;

    [[nodiscard]] JsonPath pathOf(const std::string &key) const;
    [[noreturn]] void refuse(const std::string &key, std::string message) const;

private:
    const nlohmann::json &m_object;
    JsonPath m_path;
    std::vector<std::string> m_known;
};

/// Values without a key of their own (elements of arrays and maps).
[[nodiscard]] std::string readText(const nlohmann::json &value, const JsonPath &path,
                                   std::size_t limit = maxJsonText);
[[nodiscard]] double readNumber(const nlohmann::json &value, const JsonPath &path);
[[nodiscard]] std::int64_t readInteger(const nlohmann::json &value, const JsonPath &path);
[[nodiscard]] JsonPath childPath(JsonPath path, std::string key);

/// 1-based column (in bytes) of the value or key at path in one line of valid JSON; 1 when it is not there.
[[nodiscard]] int jsonColumn(std::string_view line, const JsonPath &path, bool atKey);

/// Parses one line and hands the value to read(json), which may throw JsonFormatError. Every problem becomes InvalidInput with
/// "where:column: what". where is "file:line".
template <typename Read>
[[nodiscard]] auto parseJsonLine(std::string_view line, const std::string &where, Read &&read)
    -> Result<decltype(read(nlohmann::json()))>;

/// "where:column: message" of a syntax error.
[[nodiscard]] Error jsonSyntaxError(const nlohmann::json::exception &problem, const std::string &where);
[[nodiscard]] Error jsonFormatError(const JsonFormatError &problem, std::string_view line,
                                    const std::string &where);

template <typename Read>
auto parseJsonLine(std::string_view line, const std::string &where, Read &&read)
    -> Result<decltype(read(nlohmann::json()))>
{
    try {
        const nlohmann::json parsed = nlohmann::json::parse(line);
        return read(parsed);
    } catch (const JsonFormatError &problem) {
        return tl::unexpected<Error>(jsonFormatError(problem, line, where));
    } catch (const nlohmann::json::exception &problem) {
        return tl::unexpected<Error>(jsonSyntaxError(problem, where));
    }
}

} // namespace klineage::files
