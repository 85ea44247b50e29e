// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/run/experiment/runcells.h"

namespace klineage::run {

namespace fs = std::filesystem;

namespace {

bool isOver(const fs::path &directory)
{
    const Result<RunRecord> run = readRun(directory);
    return run && run->state == "finished";
}

Result<Ending> runCell(const Settings &settings, const fs::path &runs, const ExperimentDriver &driver,
                       Watcher watcher)
{
    const fs::path directory = runs / settings.id;
    if (Status there = ensureRun(runs, settings); !there)
        return tl::unexpected(there.error());
    Result<std::unique_ptr<llm::Provider>> provider = driver.makeProvider(settings, directory);
    if (!provider)
        return tl::unexpected(provider.error());
    return driveRun(directory, {driver.workspace, **provider, driver.prices, driver.gate, driver.stop,
                                std::move(watcher), 0});
}

} // namespace

Result<ExperimentOutcome> runExperiment(const Experiment &experiment, const ExperimentDriver &driver)
{
    const std::vector<Cell> cells = cellsOf(experiment);
    std::vector<Settings> settings; // all of them are looked at before the first one costs anything
    for (const Cell &cell : cells) {
        Result<Settings> one = settingsOf(experiment, cell, driver.workspace);
        if (!one)
            return tl::unexpected(one.error());
        settings.push_back(std::move(*one));
    }
    const fs::path runs = experiment.directory / "runs";
    ExperimentOutcome outcome;
    for (std::size_t i = 0; i < cells.size(); ++i) {
        if (isOver(runs / cells[i].runId)) {
            ++outcome.finished;
            continue;
        }
        if (driver.stop.stop_requested())
            break;
        Watcher watcher =
            driver.watch ? driver.watch(cells[i], static_cast<int>(i) + 1, static_cast<int>(cells.size()))
                         : Watcher();
        const Result<Ending> ending = runCell(settings[i], runs, driver, std::move(watcher));
        if (driver.ended)
            driver.ended(cells[i], ending);
        if (!ending)
            outcome.problems.push_back(ending.error());
        else if (ending->code == "stopped")
            ++outcome.stopped;
        else
            ++outcome.finished;
    }
    return outcome;
}

} // namespace klineage::run
