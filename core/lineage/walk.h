// SPDX-License-Identifier: GPL-3.0-or-later
//
// Somebody else's expert, taken apart outside of the repository: what it was, where it came from and under which licence, the named steps and the
// verdicts of their states. Its code is not there; each state's sha-256 says which file its trial measured.
// workloads/<workload>/walks/<name>/walk.toml and trials.jsonl: core/lineage/README.md.
#pragma once

#include "core/lineage/lineage.h"

namespace klineage::lineage {

struct WalkState {
    std::string id;
    std::string title;
    std::string sha256; ///< of its file
    std::string trial;  ///< id in trials; empty: not gated
};

struct Walk {
    std::string name; ///< of its folder
    std::string workload;
    std::string platform;
    std::string title;
    std::string origin; ///< address
    std::string commit;
    std::string file;
    std::string licence; ///< SPDX
    std::string author;
    std::vector<WalkState> states;       ///< the expert's last
    std::vector<Transition> transitions; ///< upwards, chained
    std::vector<gate::Trial> trials;
    std::vector<std::string> notices; ///< what does not fit together

    [[nodiscard]] const gate::Trial *trialOf(const WalkState &state) const;
    /// Paired with the state below; nothing where that was not gated against it.
    [[nodiscard]] std::optional<gate::Interval> gainOf(std::size_t state) const;
};

/// fileName: for messages.
[[nodiscard]] Result<Walk> parseWalk(std::string_view text, const std::string &fileName);
[[nodiscard]] Result<Walk> readWalk(const std::filesystem::path &directory);
/// All of a workload, by name; what cannot be read is an error of its own.
[[nodiscard]] std::vector<Result<Walk>> readWalks(const std::filesystem::path &workloadDirectory);

} // namespace klineage::lineage
