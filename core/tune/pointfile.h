// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/tune/sweep.h"

#include <map>

namespace klineage::gate::tune {

/// The out file of a sweep, which is also where an interrupted one goes on. An id is "point BM=64 BN=128", "confirm …" or "compare …".
class PointFile
{
public:
    /// An empty path: nothing is kept. InvalidInput when the file holds lines of something else, or trials of another candidate or
    /// workload. Lines with errors are tried again.
    [[nodiscard]] static Result<PointFile> open(const std::filesystem::path &path,
                                                const std::string &candidateSha, const std::string &workload);

    [[nodiscard]] const Trial *find(const std::string &id) const;
    [[nodiscard]] Status add(const std::string &id, const Result<Trial> &result);

private:
    std::filesystem::path m_path;
    std::map<std::string, Trial> m_trials;
};

} // namespace klineage::gate::tune
