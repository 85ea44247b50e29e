// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/interop/archives/archive.h"

#include "core/base/result.h"

#include <nlohmann/json.hpp>

#include <map>
#include <string_view>

/// Internal to the readers of archives: values that somebody else wrote, of whatever type.
namespace klineage::interop {

/// JSON as Python's writer makes it: NaN, Infinity and -Infinity, which are none of JSON, become null. Errors: InvalidInput.
[[nodiscard]] Result<nlohmann::json> readPythonJson(std::string_view text, const std::string &where);

/// The value of a key of an object; nullptr when there is none, or when it is null, or when this is no object.
[[nodiscard]] const nlohmann::json *memberOf(const nlohmann::json &object, const char *key);
/// "" when it is missing or no text.
[[nodiscard]] std::string textMember(const nlohmann::json &object, const char *key);
/// A text, or a whole number as text: what programs are called. "" otherwise.
[[nodiscard]] std::string idMember(const nlohmann::json &object, const char *key);
/// Finite, and no boolean.
[[nodiscard]] std::optional<double> numberMember(const nlohmann::json &object, const char *key);
/// Whole and from 0 to a milliard.
[[nodiscard]] std::optional<std::int64_t> countMember(const nlohmann::json &object, const char *key);
[[nodiscard]] std::optional<bool> flagMember(const nlohmann::json &object, const char *key);

/// The numbers of an object of metrics, at most 32, but for one.
[[nodiscard]] std::vector<std::pair<std::string, double>> numbersOf(const nlohmann::json &object,
                                                                    const std::string &besides);

/// The first line with words, blanks for control characters, at most so many bytes and an ellipsis.
[[nodiscard]] std::string firstLine(std::string_view text, std::size_t most = 200);

/// "1 program", "12 programs".
[[nodiscard]] std::string counted(std::size_t count, const std::string &what);

/// Things of one kind that are said once: how many there were, and the first few of them.
class Tally
{
public:
    void add(const std::string &who);
    [[nodiscard]] std::size_t count() const { return m_count; }
    /// "3 (a, b, c)", "200 (a, b, c, …)".
    [[nodiscard]] std::string text() const;

private:
    std::size_t m_count = 0;
    std::string m_first;
};

/// Sets leftOut where the program's text cannot be a file of a lineage: empty, too long, no UTF-8, a zero byte.
void judgeText(ArchivedProgram &program);
/// Why it cannot stand in an archive at all, because of its id; empty: it can.
[[nodiscard]] std::string idProblem(const ArchivedProgram &program);

} // namespace klineage::interop
