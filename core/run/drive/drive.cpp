// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/run/drive/drive.h"

namespace klineage::run {

namespace fs = std::filesystem;

Status ensureRun(const fs::path &runsDirectory, const Settings &settings)
{
    const fs::path directory = runsDirectory / settings.id;
    std::error_code ignored;
    if (!fs::exists(directory, ignored)) {
        const Result<Journal> created = Journal::create(runsDirectory, settings);
        return created ? Status() : tl::unexpected(created.error());
    }
    const Result<RunRecord> there = readRun(directory);
    if (!there)
        return tl::unexpected(there.error());
    Settings same = settings;
    same.created = there->settings.created;
    if (writeSettings(same) != writeSettings(there->settings))
        return fail(ErrorCode::Conflict,
                    "The run '" + settings.id + "' is there already and has other settings.",
                    "There: " + writeSettings(there->settings) + "\nAsked for: " + writeSettings(same));
    return {};
}

Result<Ending> driveRun(const fs::path &runDirectory, const Driver &driver)
{
    Result<Journal> journal = Journal::open(runDirectory);
    if (!journal)
        return tl::unexpected(journal.error());
    Result<llm::Author> author =
        llm::Author::open(runDirectory, driver.provider, driver.prices, journal->settings().capDollars);
    if (!author)
        return tl::unexpected(author.error());
    author->setNotice(driver.watcher.notice ? driver.watcher.notice : driver.watcher.begins);
    // The caller's stop and the limit of steps are one stop for the procedure.
    std::stop_source stop;
    const std::stop_callback forward(driver.stop, [&stop] { stop.request_stop(); });
    const std::size_t recorded =
        readRun(runDirectory).map([](const RunRecord &run) { return run.steps.size(); }).value_or(0);
    Watcher watcher = driver.watcher;
    watcher.stepped = [&](const StepRecord &step) {
        if (driver.watcher.stepped)
            driver.watcher.stepped(step);
        const std::size_t number = static_cast<std::size_t>(step.number);
        if (driver.mostNewSteps > 0 && number >= recorded + static_cast<std::size_t>(driver.mostNewSteps))
            stop.request_stop();
    };
    Context context{driver.workspace, *journal, *author, driver.gate, stop.get_token(), std::move(watcher)};
    return runProcedure(context);
}

} // namespace klineage::run
