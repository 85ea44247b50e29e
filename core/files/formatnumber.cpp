// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/files/formatnumber.h"

#include <algorithm>
#include <charconv>

namespace klineage::files {

namespace {

thread_local PassedOver *innermost = nullptr;

std::optional<std::int64_t> wholeNumber(std::string_view text)
{
    constexpr std::size_t mostDigits = 9;
    std::int64_t value = 0;
    const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), value);
    const bool isWhole = problem == std::errc() && end == text.data() + text.size() && text.front() != '-'
                         && (text.size() == 1 || text.front() != '0');
    return isWhole && text.size() <= mostDigits ? std::optional(value) : std::nullopt;
}

/// "state[0].colour"
std::string nameOfKey(const std::vector<std::string> &path)
{
    std::string name;
    for (const std::string &part : path) {
        const bool isIndex = !name.empty() && part.find_first_not_of("0123456789") == std::string::npos;
        name += isIndex ? '[' + part + ']' : (name.empty() ? "" : ".") + part;
    }
    return name;
}

} // namespace

std::optional<FormatNumber> parseFormatNumber(std::string_view text)
{
    const std::size_t dot = text.find('.');
    const std::optional<std::int64_t> major = wholeNumber(text.substr(0, dot));
    const std::optional<std::int64_t> minor =
        dot == std::string_view::npos ? std::optional<std::int64_t>(0) : wholeNumber(text.substr(dot + 1));
    if (!major || !minor)
        return std::nullopt;
    return FormatNumber{*major, *minor};
}

std::string formatProblem(const std::optional<FormatNumber> &format, const std::string &written,
                          std::int64_t newestMajor)
{
    std::string known = "1";
    for (std::int64_t major = 2; major <= newestMajor; ++major)
        known += (major == newestMajor ? " and " : ", ") + std::to_string(major);
    if (!format || format->major < 1)
        return '\'' + written + "' is no number of a format; this program reads " + known + '.';
    if (format->major > newestMajor)
        return "the format is " + written + "; this program reads " + known + ", a newer one is needed.";
    return {};
}

std::string withFormat(const std::string &toml)
{
    return "format = 1\n" + toml;
}

PassedOver::PassedOver()
    : m_outer(innermost)
{
    innermost = this;
}

PassedOver::~PassedOver()
{
    innermost = m_outer;
}

bool PassedOver::isListening()
{
    return innermost != nullptr;
}

bool PassedOver::add(Key key)
{
    if (!innermost)
        return false;
    constexpr std::size_t most = 10'000; // bounds what a hostile file can make of it
    if (innermost->m_keys.size() < most)
        innermost->m_keys.push_back(std::move(key));
    return true;
}

std::string PassedOver::sentence(const std::string &who) const
{
    if (m_keys.empty())
        return {};
    constexpr std::size_t mostShown = 5;
    std::vector<std::string> names;
    for (const Key &key : m_keys) {
        const std::string name = nameOfKey(key.path).substr(0, 80);
        if (std::find(names.begin(), names.end(), name) == names.end())
            names.push_back(name);
    }
    const std::size_t more = names.size() > mostShown ? names.size() - mostShown : 0;
    names.resize(names.size() - more);
    std::string listed;
    for (std::size_t i = 0; i < names.size(); ++i)
        listed += (i == 0 ? "'" : i + 1 < names.size() || more > 0 ? ", '" : " and '") + names[i] + '\'';
    if (more > 0)
        listed += " and " + std::to_string(more) + " more";
    const bool one = names.size() == 1;
    return who + " is of format " + m_keys.front().format + ", which is newer than this program: "
           + (one ? "its key " : "its keys ") + listed + (one ? " is" : " are") + " kept and not understood.";
}

} // namespace klineage::files
