// SPDX-License-Identifier: GPL-3.0-or-later
//
// A file is one line of JSON (digest of the key, digest of the binary, log, metrics, compiler), a newline, and the binary.
#include "core/gate/session/compilecache.h"

#include "core/device/worker/codec.h"
#include "core/files/atomicfile.h"
#include "core/files/sha256.h"

#include <algorithm>

namespace klineage::gate {

namespace {

constexpr std::size_t maxEntryBytes = std::size_t{128} << 20;
constexpr std::size_t maxEntries = 2000;
constexpr std::size_t maxWaiting = 4;

std::string_view textOf(const std::vector<std::byte> &binary)
{
    return {reinterpret_cast<const char *>(binary.data()), binary.size()};
}

} // namespace

std::string CompileKey::digest() const
{
    // As JSON, so that no two different keys have the same text.
    nlohmann::json key = {source, tunables, compiler, target};
    if (!launches.empty())
        key.push_back(launches);
    return files::sha256Hex(key.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace)
                            + files::sha256Hex(source));
}

CompileCache::CompileCache(std::filesystem::path directory)
    : m_directory(std::move(directory))
{
    std::error_code error;
    if (!m_directory.empty() && !std::filesystem::is_directory(m_directory, error)) {
        std::filesystem::create_directories(m_directory, error);
        if (error)
            m_directory.clear();
    }
}

CompileCache CompileCache::ahead() const
{
    CompileCache cache = *this;
    cache.m_isAhead = true;
    return cache;
}

std::optional<CompileOutput> CompileCache::takeWaiting(const std::string &digest) const
{
    const std::lock_guard lock(m_waiting->mutex);
    auto &outputs = m_waiting->outputs;
    const auto found = std::find_if(outputs.begin(), outputs.end(),
                                    [&digest](const auto &entry) { return entry.first == digest; });
    if (found == outputs.end())
        return std::nullopt;
    CompileOutput output = std::move(found->second);
    outputs.erase(found);
    return output;
}

std::optional<CompileOutput> CompileCache::find(const CompileKey &key) const
{
    const std::string digest = key.digest();
    // A compiler that works ahead must leave what waits to the one whose turn it is.
    if (auto waiting = m_isAhead ? std::nullopt : takeWaiting(digest))
        return waiting;
    if (m_directory.empty())
        return std::nullopt;
    const auto bytes = files::readFile(m_directory / digest, maxEntryBytes);
    if (!bytes)
        return std::nullopt;
    const std::size_t newline = bytes->find('\n');
    if (newline == std::string::npos)
        return std::nullopt;
    try {
        const auto header =
            nlohmann::json::parse(bytes->begin(), bytes->begin() + static_cast<std::ptrdiff_t>(newline));
        const std::string_view binary = std::string_view(*bytes).substr(newline + 1);
        if (header.at("key") != digest || header.at("sha256") != files::sha256Hex(binary))
            return std::nullopt;
        CompileOutput output = protocol::decode<CompileOutput>(header.at("compile"));
        const auto *begin = reinterpret_cast<const std::byte *>(binary.data());
        output.binary.assign(begin, begin + binary.size());
        return output;
    } catch (const std::exception &) {
        return std::nullopt;
    }
}

void CompileCache::store(const CompileKey &key, const CompileOutput &output) const
{
    const std::string digest = key.digest();
    if (m_isAhead) {
        const std::lock_guard lock(m_waiting->mutex);
        m_waiting->outputs.emplace_back(digest, output);
        if (m_waiting->outputs.size() > maxWaiting)
            m_waiting->outputs.pop_front();
    }
    if (m_directory.empty())
        return;
    const nlohmann::json header = {{"key", digest},
                                   {"sha256", files::sha256Hex(textOf(output.binary))},
                                   {"compile", protocol::write(output)}};
    std::string bytes = header.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
    bytes += '\n';
    bytes += textOf(output.binary);
    if (files::writeFileAtomic(m_directory / digest, bytes))
        dropOld();
}

void CompileCache::dropOld() const
{
    std::error_code ignored;
    std::vector<std::pair<std::filesystem::file_time_type, std::filesystem::path>> entries;
    for (const auto &entry : std::filesystem::directory_iterator(m_directory, ignored))
        entries.emplace_back(entry.last_write_time(ignored), entry.path());
    if (entries.size() <= maxEntries)
        return;
    std::sort(entries.begin(), entries.end());
    for (std::size_t i = 0; i < maxEntries / 10; ++i)
        std::filesystem::remove(entries[i].second, ignored);
}

} // namespace klineage::gate
