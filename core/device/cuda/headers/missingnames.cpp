// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/device/cuda/headers/standardheaders.h"

#include <algorithm>

namespace klineage::gate::cuda {

namespace {

constexpr std::size_t mostLogRead = std::size_t{64} << 10;

bool hasWord(std::string_view words, std::string_view word)
{
    for (std::size_t at = words.find(word); at != std::string_view::npos; at = words.find(word, at + 1)) {
        const std::size_t end = at + word.size();
        if ((at == 0 || words[at - 1] == ' ') && (end == words.size() || words[end] == ' '))
            return true;
    }
    return false;
}

/// What stands between two texts of a line; empty: they do not stand there in this order.
std::string_view between(std::string_view line, std::string_view before, std::string_view after)
{
    const std::size_t begin = line.find(before);
    if (begin == std::string_view::npos)
        return {};
    const std::size_t end = line.find(after, begin + before.size());
    if (end == std::string_view::npos)
        return {};
    return line.substr(begin + before.size(), end - begin - before.size());
}

/// The name that a message of the compiler misses, "std::" before one of that namespace.
std::string missingName(std::string_view line)
{
    const std::string_view global = between(line, "error: identifier \"", "\" is undefined");
    if (!global.empty())
        return std::string(global);
    const std::string_view member = between(line, "error: namespace \"std\" has no member \"", "\"");
    return member.empty() ? std::string() : "std::" + std::string(member);
}

} // namespace

MissingNames missingNames(std::string_view log)
{
    MissingNames missing;
    log = log.substr(0, mostLogRead);
    for (std::size_t begin = 0; begin < log.size();) {
        const std::size_t end = std::min(log.find('\n', begin), log.size());
        const std::string_view line = log.substr(begin, end - begin);
        begin = end + 1;
        missing.wantsDeviceDefault |=
            line.find("error: A function without execution space annotations") != std::string_view::npos;
        std::string name = missingName(line);
        if (name.empty() || name.find(' ') != std::string::npos)
            continue;
        for (const StandardHeader &header : standardHeaders()) {
            if (hasWord(header.offers, name)) {
                missing.names.insert(std::move(name));
                break;
            }
        }
    }
    for (const StandardHeader &header : standardHeaders()) {
        for (const std::string &name : missing.names) {
            if (hasWord(header.offers, name)) {
                missing.headers.emplace_back(header.name);
                break;
            }
        }
    }
    return missing;
}

} // namespace klineage::gate::cuda
