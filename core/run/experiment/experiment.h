// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/run/journal.h"

#include <filesystem>
#include <map>
#include <string>
#include <utility>
#include <vector>

namespace klineage::run {

/// experiments/<name>/experiment.toml: roots × policies × seeds, the same author and budget for all. Its runs lie beside it, in runs/.
struct Experiment {
    std::string name; ///< the folder's
    std::string title;
    std::vector<std::string>
        roots; ///< states of lineages, "softmax/pocl/K00", or files: "softmax/sm90/root.cu"
    std::vector<std::string>
        policies; ///< a name, or a name and an arm of it: "klineage:shuffled" (materialize/arm.h)
    std::vector<std::uint64_t> seeds;
    std::map<std::string, double>
        goals;                 ///< of a root: the gain over it, paired, that a run has to show in its audit
    std::string rule;          ///< what will be compared and what counts, in words, said before the first run
    double budgetDollars = 10; ///< a run
    int maxSteps = 0;
    std::string provider;
    std::string model;
    std::map<std::string, std::string> author;  ///< as in run.toml
    std::map<std::string, std::string> options; ///< the same
    std::filesystem::path directory;            ///< not part of the file
};

[[nodiscard]] Result<Experiment> parseExperiment(std::string_view text, const std::string &fileName);
[[nodiscard]] std::string writeExperiment(const Experiment &experiment);
[[nodiscard]] Result<Experiment> readExperiment(const std::filesystem::path &directory);

/// One run of an experiment.
struct Cell {
    std::string root;
    std::string policy;
    std::uint64_t seed = 0;
    std::string runId;
};

/// "klineage" and "shuffled" of "klineage:shuffled"; the arm is empty where none is named.
[[nodiscard]] std::pair<std::string, std::string> policyAndArm(const std::string &entry);

/// Seed by seed, root by root, policies next to each other: an experiment that is stopped early is still a fair one.
[[nodiscard]] std::vector<Cell> cellsOf(const Experiment &experiment);
/// The settings of a cell's run; the surface is that of the root's lineage in the workspace.
[[nodiscard]] Result<Settings> settingsOf(const Experiment &experiment, const Cell &cell,
                                          const std::filesystem::path &workspace);

} // namespace klineage::run
