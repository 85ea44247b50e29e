// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/run/drive/drive.h"
#include "core/run/experiment/experiment.h"

namespace klineage::run {

/// What an experiment is run with. Nothing is owned. With several jobs the functions are called on several threads, the last two by one of
/// them at a time, and the gate by as many as have a trial: a pool queues them.
struct ExperimentDriver {
    std::filesystem::path workspace;
    const llm::PriceTable &prices;
    GateFunction gate;
    /// A provider for each run; makeRunProvider() in programs.
    std::function<Result<std::unique_ptr<llm::Provider>>(const Settings &,
                                                         const std::filesystem::path &runDirectory)>
        makeProvider;
    std::stop_token stop;
    std::function<Watcher(const Cell &, int number, int count)> watch; ///< may be empty
    /// After each run: how it ended, or what went wrong. May be empty.
    std::function<void(const Cell &, const Result<Ending> &)> ended;
    int jobs = 1; ///< runs at a time: while one waits for its author, another has a gate
};

struct ExperimentOutcome {
    int finished = 0; ///< runs that are over, those of earlier calls included
    int stopped = 0;  ///< begun and not over
    std::vector<Error> problems;
};

/// Preregisters the plan (preregistration.h), then runs every cell that is not over, in their order; those that are over are left alone. A
/// run that fails is told and the next is begun; a stop request ends it. Called again, it goes on.
[[nodiscard]] Result<ExperimentOutcome> runExperiment(const Experiment &experiment,
                                                      const ExperimentDriver &driver);

} // namespace klineage::run
