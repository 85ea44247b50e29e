// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/trial/analysis/ceilingstore.h"

#include "core/files/atomicfile.h"
#include "core/files/sha256.h"

#include <algorithm>

namespace klineage::gate {

namespace {

namespace fs = std::filesystem;

constexpr std::size_t maxFileBytes = std::size_t{1} << 20;

std::optional<Ceilings> readIn(const fs::path &path)
{
    const auto text = files::readFile(path, maxFileBytes);
    if (!text)
        return {};
    auto ceilings = parseCeilings(*text, path.filename().string());
    return ceilings ? std::optional<Ceilings>(std::move(*ceilings)) : std::nullopt;
}

} // namespace

CeilingStore::CeilingStore(fs::path directory)
    : m_directory(std::move(directory))
{}

fs::path CeilingStore::fileOf(const Fingerprint &fingerprint) const
{
    std::string text;
    for (const auto &[name, value] : fingerprint)
        text += name + '=' + value + '\n';
    return m_directory / (files::sha256Hex(text).substr(0, 16) + ".json");
}

std::optional<Ceilings> CeilingStore::find(const Fingerprint &fingerprint) const
{
    if (m_directory.empty())
        return {};
    auto ceilings = readIn(fileOf(fingerprint));
    return ceilings && ceilings->fingerprint == fingerprint ? ceilings : std::nullopt;
}

Status CeilingStore::store(const Ceilings &ceilings) const
{
    if (m_directory.empty())
        return {};
    std::error_code problem;
    fs::create_directories(m_directory, problem);
    return files::writeFileAtomic(fileOf(ceilings.fingerprint), writeCeilings(ceilings));
}

std::vector<Ceilings> CeilingStore::all() const
{
    std::vector<Ceilings> found;
    std::error_code problem;
    for (const auto &entry : fs::directory_iterator(m_directory, problem)) {
        if (entry.path().extension() != ".json")
            continue;
        if (auto ceilings = readIn(entry.path()))
            found.push_back(std::move(*ceilings));
    }
    std::sort(found.begin(), found.end(),
              [](const Ceilings &a, const Ceilings &b) { return a.time > b.time; });
    return found;
}

} // namespace klineage::gate
