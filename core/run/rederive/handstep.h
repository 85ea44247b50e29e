// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/run/rederive/handfiles.h"
#include "core/run/rederive/rederivation.h"

#include <filesystem>
#include <string>

namespace klineage::run {

/// One transition of a lineage that is derived again by hand, with the try that it has come to: the last whose prompt is there.
struct HandStep {
    const lineage::Transition &transition; ///< owned by the Lineage
    Rederivation wanted{};
    std::string prompt{}; ///< of the first try, as it would be written now
    HandTry current{};
    std::string currentPrompt{}; ///< its file's text; empty when there is none yet
    std::string reply{};         ///< its file's text; empty when there is none yet
};
/// task: workload.toml without its comments.
[[nodiscard]] Result<HandStep> findHandStep(const lineage::Lineage &lineage, const std::string &task,
                                            const std::filesystem::path &folder,
                                            const lineage::Transition &transition);
/// The text of the workload.toml that the lineage belongs to, without its comments.
[[nodiscard]] Result<std::string> readTask(const lineage::Lineage &lineage);

/// A candidate that can be gated, or why the reply cannot be used, by the rules of a run.
struct HandAnswer {
    std::string text;
    std::string problem;
};
[[nodiscard]] HandAnswer handAnswer(const HandStep &step, kernel::Surface surface);

} // namespace klineage::run
