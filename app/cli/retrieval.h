// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "app/cli/session.h"

#include "core/skills/retrieval.h"
#include "core/skills/retrieval/chain.h"

#include <nlohmann/json_fwd.hpp>

#include <cstddef>

namespace klineage::cli {

/// Cards of a chain, at most.
inline constexpr std::size_t mostOfChain = 100;

/// `card retrieve`
void addRetrieveCommand(CLI::App &group, Session &session);

/// An index over the cards, lineages and workloads of a workspace.
[[nodiscard]] skills::RetrievalIndex retrievalIndex(const Workspace &workspace);

/// What was asked for, as words: of a command line or of a client.
struct RetrievalQuestion {
    std::string workload;
    std::string language; ///< empty: that of the platform
    std::string platform;
    std::string state; ///< "sgemm/pocl/K02": its target, to which the others are added
    std::string code;  ///< of a candidate file, or of any kernel: in place of the state's
    std::vector<std::string> priorActions;
    std::vector<skills::Feature> features;
};
/// InvalidInput or NotFound, with a suggestion, when it names what is not there.
[[nodiscard]] Result<skills::Target> targetOf(const Workspace &workspace, const RetrievalQuestion &question);

[[nodiscard]] nlohmann::json targetJson(const skills::Target &target);
[[nodiscard]] nlohmann::json retrievalJson(const skills::Retrieval &retrieval);
/// Of a chain: cards in the order in which they can be applied, with the round and what comes before; or a line of the index each.
[[nodiscard]] nlohmann::json chainJson(const skills::Chain &chain);
[[nodiscard]] std::string chainText(const skills::Chain &chain, const Workspace &workspace);
/// Both lists with every reason, for people and models.
[[nodiscard]] std::string retrievalText(const skills::Retrieval &retrieval);

} // namespace klineage::cli
