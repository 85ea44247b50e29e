// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/run/lift/namednumbers.h"

#include <cctype>
#include <charconv>

namespace klineage::run {

namespace {

bool isOfName(char c)
{
    return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_';
}

std::size_t afterAll(std::string_view text, std::size_t at, bool (*skipped)(char))
{
    while (at < text.size() && skipped(text[at]))
        ++at;
    return at;
}

bool isBlankOfLine(char c)
{
    return c == ' ' || c == '\t';
}

} // namespace

NamedNumbers namedNumbers(const gate::Trial &trial, std::string_view source)
{
    NamedNumbers numbers;
    for (std::size_t at = 0; at < source.size();) {
        if (!isOfName(source[at])) {
            ++at;
            continue;
        }
        const std::size_t end = afterAll(source, at, isOfName);
        const std::string name(source.substr(at, end - at));
        at = end;
        std::size_t value = afterAll(source, end, isBlankOfLine);
        if (value < source.size() && source[value] == '=')
            value = afterAll(source, value + 1, isBlankOfLine);
        std::int64_t number = 0;
        const char *begin = source.data() + value;
        const auto [stop, error] = std::from_chars(begin, source.data() + source.size(), number);
        const bool isWhole = stop == source.data() + source.size() || (!isOfName(*stop) && *stop != '.');
        if (value > end && error == std::errc() && isWhole)
            numbers[name].insert(static_cast<double>(number));
    }
    for (const auto &[name, value] : trial.tunables)
        numbers[name] = {static_cast<double>(value)};
    return numbers;
}

} // namespace klineage::run
