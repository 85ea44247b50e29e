// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/interop/archives/archivetext.h"

#include "core/files/jsonreader.h"
#include "core/files/utf8text.h"
#include "core/kernel/candidate.h"

#include <algorithm>
#include <array>
#include <cmath>

namespace klineage::interop {

using nlohmann::json;

namespace {

constexpr std::int64_t largestCount = 1'000'000'000;
constexpr std::size_t maxMetrics = 32;
constexpr std::size_t namedOfATally = 5;

/// Outside of strings these words can only be Python's numbers.
std::string withoutPythonNumbers(std::string_view text)
{
    constexpr std::array<std::string_view, 3> words = {"-Infinity", "Infinity", "NaN"};
    std::string out;
    out.reserve(text.size());
    bool inString = false;
    for (std::size_t i = 0; i < text.size();) {
        if (inString && text[i] == '\\' && i + 1 < text.size()) {
            out.append(text, i, 2);
            i += 2;
            continue;
        }
        if (text[i] == '"')
            inString = !inString;
        std::string_view found;
        for (const std::string_view word : words) {
            if (!inString && found.empty() && text.substr(i).starts_with(word))
                found = word;
        }
        if (!found.empty())
            out += "null";
        else
            out += text[i];
        i += std::max<std::size_t>(found.size(), 1);
    }
    return out;
}

} // namespace

Result<json> readPythonJson(std::string_view text, const std::string &where)
{
    const bool plain =
        text.find("NaN") == std::string_view::npos && text.find("Infinity") == std::string_view::npos;
    try {
        return plain ? json::parse(text) : json::parse(withoutPythonNumbers(text));
    } catch (const json::exception &problem) {
        return tl::unexpected<Error>(files::jsonSyntaxError(problem, where));
    }
}

const json *memberOf(const json &object, const char *key)
{
    if (!object.is_object())
        return nullptr;
    const auto found = object.find(key);
    return found == object.end() || found->is_null() ? nullptr : &*found;
}

std::string textMember(const json &object, const char *key)
{
    const json *value = memberOf(object, key);
    return value && value->is_string() ? value->get<std::string>() : std::string();
}

std::string idMember(const json &object, const char *key)
{
    const json *value = memberOf(object, key);
    return value && value->is_number_integer() ? value->dump() : textMember(object, key);
}

std::optional<double> numberMember(const json &object, const char *key)
{
    const json *value = memberOf(object, key);
    if (!value || !value->is_number() || !std::isfinite(value->get<double>()))
        return std::nullopt;
    return value->get<double>();
}

std::optional<std::int64_t> countMember(const json &object, const char *key)
{
    const std::optional<double> value = numberMember(object, key);
    if (!value || *value < 0 || *value > static_cast<double>(largestCount) || *value != std::floor(*value))
        return std::nullopt;
    return static_cast<std::int64_t>(*value);
}

std::optional<bool> flagMember(const json &object, const char *key)
{
    const json *value = memberOf(object, key);
    return value && value->is_boolean() ? std::optional(value->get<bool>()) : std::nullopt;
}

std::vector<std::pair<std::string, double>> numbersOf(const json &object, const std::string &besides)
{
    std::vector<std::pair<std::string, double>> numbers;
    if (!object.is_object())
        return numbers;
    for (const auto &[key, value] : object.items()) {
        const std::optional<double> number = numberMember(object, key.c_str());
        if (number && key != besides && numbers.size() < maxMetrics)
            numbers.emplace_back(key, *number);
    }
    return numbers;
}

std::string firstLine(std::string_view text, std::size_t most)
{
    std::string line;
    for (const char c : text) {
        if ((c == '\n' || c == '\r') && !line.empty())
            break;
        const bool isBlank = static_cast<unsigned char>(c) <= ' ' || c == '\x7f';
        if (!isBlank)
            line += c;
        else if (!line.empty() && line.back() != ' ')
            line += ' ';
        if (line.size() > most)
            break;
    }
    if (line.size() > most) {
        std::size_t end = most;
        while (end > 0 && (static_cast<unsigned char>(line[end]) & 0xc0) == 0x80)
            --end;
        line = line.substr(0, end) + "…";
    }
    if (line.ends_with(' '))
        line.pop_back();
    return files::isUtf8Text(line) ? line : std::string();
}

std::string counted(std::size_t count, const std::string &what)
{
    return std::to_string(count) + ' ' + what + (count == 1 ? "" : "s");
}

void Tally::add(const std::string &who)
{
    ++m_count;
    if (m_count <= namedOfATally)
        m_first += (m_first.empty() ? "" : ", ") + who;
    else if (m_count == namedOfATally + 1)
        m_first += ", …";
}

std::string Tally::text() const
{
    return std::to_string(m_count) + " (" + m_first + ')';
}

void judgeText(ArchivedProgram &program)
{
    const bool isBlank = program.code.find_first_not_of(" \t\r\n") == std::string::npos;
    if (isBlank)
        program.leftOut = "has no code";
    else if (program.code.size() > kernel::maxCandidateBytes)
        program.leftOut = "is longer than 4 MiB";
    else if (!files::isUtf8Text(program.code))
        program.leftOut = "is no UTF-8 text without zero bytes";
    if (!program.leftOut.empty())
        program.code.clear();
}

std::string idProblem(const ArchivedProgram &program)
{
    for (const std::string *id : {&program.id, &program.parent}) {
        const char *whose = id == &program.id ? "Its id" : "The id of its parent";
        if (id->size() > maxProgramIdBytes)
            return std::string(whose) + " is longer than " + std::to_string(maxProgramIdBytes) + " bytes.";
        if (!files::isUtf8Text(*id))
            return std::string(whose) + " is no UTF-8 text without zero bytes.";
    }
    return program.id.empty() ? "It has no id." : std::string();
}

} // namespace klineage::interop
