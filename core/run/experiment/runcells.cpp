// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/run/experiment/runcells.h"

#include "core/run/experiment/preregistration.h"

#include <algorithm>
#include <atomic>
#include <map>
#include <mutex>
#include <thread>

namespace klineage::run {

namespace fs = std::filesystem;

namespace {

bool isOver(const fs::path &directory)
{
    const Result<RunRecord> run = readRun(directory);
    return run && run->state == "finished";
}

/// The experiment's figures are put beside each other, so its trials go to one kind of device a platform: that of the trials that are
/// recorded already, or else of the first.
GateFunction together(const Experiment &experiment, const std::vector<Cell> &cells, const GateFunction &gate)
{
    std::map<std::string, std::string> devices; // by platform
    for (const Cell &cell : cells) {
        const Result<RunRecord> run = readRun(experiment.directory / "runs" / cell.runId);
        for (const gate::Trial &trial : run ? run->trials : std::vector<gate::Trial>()) {
            if (!trial.environment.device.empty())
                devices.emplace(trial.environment.platform, trial.environment.device);
        }
    }
    return [gate, devices, name = experiment.directory.filename().string()](
               gate::GateRequest request, std::stop_token stop, const gate::ProgressCallback &progress) {
        request.place.together = name;
        const auto known = devices.find(request.place.platform);
        if (request.place.device.empty() && known != devices.end())
            request.place.device = known->second;
        return gate(request, std::move(stop), progress);
    };
}

/// The cells, taken one by one by as many threads as there are jobs.
class CellRunner
{
public:
    CellRunner(const Experiment &experiment, const ExperimentDriver &driver, std::vector<Settings> settings)
        : m_driver(driver)
        , m_cells(cellsOf(experiment))
        , m_settings(std::move(settings))
        , m_runs(experiment.directory / "runs")
        , m_gate(together(experiment, m_cells, driver.gate))
    {}

    ExperimentOutcome run()
    {
        const auto jobs = std::min<std::size_t>(static_cast<std::size_t>(std::max(m_driver.jobs, 1)),
                                                std::max<std::size_t>(m_cells.size(), 1));
        std::vector<std::jthread> others;
        for (std::size_t i = 1; i < jobs; ++i)
            others.emplace_back([this] { work(); });
        work();
        others.clear();
        return std::move(m_outcome);
    }

private:
    void work()
    {
        for (std::size_t i = m_next++; i < m_cells.size(); i = m_next++) {
            if (isOver(m_runs / m_cells[i].runId)) {
                const std::scoped_lock lock(m_told);
                ++m_outcome.finished;
                continue;
            }
            if (m_driver.stop.stop_requested())
                return;
            tell(i, runCell(i));
        }
    }

    Result<Ending> runCell(std::size_t i)
    {
        const Settings &settings = m_settings[i];
        const fs::path directory = m_runs / settings.id;
        if (Status there = ensureRun(m_runs, settings); !there)
            return tl::unexpected(there.error());
        Result<std::unique_ptr<llm::Provider>> provider = m_driver.makeProvider(settings, directory);
        if (!provider)
            return tl::unexpected(provider.error());
        return driveRun(directory, {m_driver.workspace, **provider, m_driver.prices, m_gate, m_driver.stop,
                                    watcherOf(i), 0});
    }

    Watcher watcherOf(std::size_t i)
    {
        const std::scoped_lock lock(m_told);
        return m_driver.watch
                   ? m_driver.watch(m_cells[i], static_cast<int>(i) + 1, static_cast<int>(m_cells.size()))
                   : Watcher();
    }

    void tell(std::size_t i, const Result<Ending> &ending)
    {
        const std::scoped_lock lock(m_told);
        if (m_driver.ended)
            m_driver.ended(m_cells[i], ending);
        if (!ending)
            m_outcome.problems.push_back(ending.error());
        else if (ending->code == "stopped")
            ++m_outcome.stopped;
        else
            ++m_outcome.finished;
    }

    const ExperimentDriver &m_driver;
    const std::vector<Cell> m_cells;
    const std::vector<Settings> m_settings;
    const fs::path m_runs;
    const GateFunction m_gate;
    std::atomic<std::size_t> m_next = 0;
    std::mutex m_told; ///< of the outcome too
    ExperimentOutcome m_outcome;
};

} // namespace

Result<ExperimentOutcome> runExperiment(const Experiment &experiment, const ExperimentDriver &driver)
{
    Result<std::map<std::string, policy::Options>> defaults = defaultsOf(experiment);
    if (!defaults)
        return tl::unexpected(defaults.error());
    std::vector<Settings> settings; // all of them are looked at before the first one costs anything
    for (const Cell &cell : cellsOf(experiment)) {
        Result<Settings> one = settingsOf(experiment, cell, driver.workspace);
        if (!one)
            return tl::unexpected(one.error());
        const policy::Options &absent = (*defaults)[one->policy];
        one->options.insert(absent.begin(), absent.end());
        settings.push_back(std::move(*one));
    }
    if (Status planned = preregister(experiment); !planned)
        return tl::unexpected(planned.error());
    return CellRunner(experiment, driver, std::move(settings)).run();
}

} // namespace klineage::run
