// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/trial/analysis/ceilings.h"

#include <filesystem>

namespace klineage::gate {

/// Measured ceilings by fingerprint, one file each, in a folder of the cache. A file that is damaged or of another fingerprint is as
/// good as none. An empty directory keeps nothing.
class CeilingStore
{
public:
    explicit CeilingStore(std::filesystem::path directory);

    [[nodiscard]] std::optional<Ceilings> find(const Fingerprint &fingerprint) const;
    /// Replaces what is kept for this fingerprint.
    [[nodiscard]] Status store(const Ceilings &ceilings) const;
    /// All of them, the latest first.
    [[nodiscard]] std::vector<Ceilings> all() const;
    [[nodiscard]] const std::filesystem::path &directory() const { return m_directory; }

private:
    [[nodiscard]] std::filesystem::path fileOf(const Fingerprint &fingerprint) const;
    std::filesystem::path m_directory;
};

} // namespace klineage::gate
