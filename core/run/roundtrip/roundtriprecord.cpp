// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/run/roundtrip/roundtriprecord.h"

#include "core/trial/shareof.h"
#include "core/trial/trial.h"
#include "core/trial/trialfile.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <system_error>

namespace klineage::run {

namespace {

namespace fs = std::filesystem;

constexpr int mostSkipped = 100; ///< trials of an arm that are named though nothing is recorded of them
const char *const trialsName = "trials.jsonl";

int rankOf(const std::string &arm)
{
    const std::string known[] = {"full", "no-blocks", "none"};
    return static_cast<int>(std::find(std::begin(known), std::end(known), arm) - std::begin(known));
}

/// Of the trials that the log names, what a picture of it needs.
Status addTrials(const fs::path &file, const std::stop_token &stop,
                 const std::map<std::string, RoundtripTry *> &tries, RoundtripRecord &record)
{
    Result<gate::TrialFile> read = gate::readTrialFile(file, stop);
    if (!read)
        return tl::unexpected(read.error());
    std::move(read->notices.begin(), read->notices.end(), std::back_inserter(record.notices));
    for (const gate::Trial &trial : read->trials) {
        const auto found = tries.find(trial.id);
        if (found == tries.end())
            continue;
        RoundtripTry &made = *found->second;
        made.time = trial.time;
        made.device = trial.environment.device;
        const gate::Comparison *paired = trial.comparison("parent");
        if (paired && paired->speedup.value > 0 && made.line.share) {
            made.speedup = paired->speedup;
            record.against = paired->subject;
        }
    }
    return {};
}

RoundtripArm &armNamed(std::vector<RoundtripArm> &arms, const std::string &name)
{
    const auto found =
        std::find_if(arms.begin(), arms.end(), [&](const RoundtripArm &arm) { return arm.arm == name; });
    if (found != arms.end())
        return *found;
    arms.push_back({name, {}, {}, {}, {}});
    return arms.back();
}

void addLine(RoundtripArm &arm, RoundtripLine line)
{
    const auto at =
        std::lower_bound(arm.trials.begin(), arm.trials.end(), line.trial,
                         [](const RoundtripTrial &each, int trial) { return each.trial < trial; });
    RoundtripTrial &trial =
        at != arm.trials.end() && at->trial == line.trial ? *at : *arm.trials.insert(at, {line.trial, {}});
    const auto place =
        std::upper_bound(trial.tries.begin(), trial.tries.end(), line.number,
                         [](int number, const RoundtripTry &each) { return number < each.line.number; });
    trial.tries.insert(place, {std::move(line), {}, {}, {}});
}

/// Numbers below the greatest that the log has nothing of: asked, and without a reply.
void addSkipped(RoundtripArm &arm)
{
    const int last = std::min(arm.trials.empty() ? 0 : arm.trials.back().trial, mostSkipped);
    std::vector<RoundtripTrial> skipped;
    for (int trial = 1; trial < last; ++trial) {
        const bool isThere = std::any_of(arm.trials.begin(), arm.trials.end(),
                                         [trial](const RoundtripTrial &each) { return each.trial == trial; });
        if (!isThere)
            skipped.push_back({trial, {}});
    }
    arm.trials.insert(arm.trials.end(), skipped.begin(), skipped.end());
    std::sort(arm.trials.begin(), arm.trials.end(),
              [](const RoundtripTrial &a, const RoundtripTrial &b) { return a.trial < b.trial; });
}

} // namespace

Result<RoundtripRecord> readRoundtripRecord(const fs::path &lineageDirectory, const std::stop_token &stop)
{
    Result<std::vector<RoundtripLine>> lines = readRoundtrips(lineageDirectory);
    if (!lines)
        return tl::unexpected(lines.error());
    RoundtripRecord record;
    for (const RoundtripCount &count : countRoundtrips(*lines)) {
        RoundtripArm &arm = armNamed(record.arms, count.arm);
        arm.count = count;
        arm.recovered = gate::shareOf(count.recovered, count.trials);
        arm.first = gate::shareOf(count.first, count.trials);
    }
    for (RoundtripLine &line : *lines) {
        RoundtripArm &arm = armNamed(record.arms, line.arm);
        addLine(arm, std::move(line));
    }
    std::stable_sort(
        record.arms.begin(), record.arms.end(),
        [](const RoundtripArm &a, const RoundtripArm &b) { return rankOf(a.arm) < rankOf(b.arm); });
    std::map<std::string, RoundtripTry *> tries;
    for (RoundtripArm &arm : record.arms) {
        addSkipped(arm);
        for (RoundtripTrial &trial : arm.trials) {
            for (RoundtripTry &made : trial.tries) {
                if (!made.line.trialId.empty())
                    tries.emplace(made.line.trialId, &made);
            }
        }
    }
    if (tries.empty())
        return record;
    if (Status added = addTrials(roundtripFolder(lineageDirectory) / trialsName, stop, tries, record); !added)
        return tl::unexpected(added.error());
    return record;
}

std::string roundtripGoal(const lineage::Lineage &lineage, const RoundtripRecord &record)
{
    for (const lineage::State &state : lineage.states) {
        const gate::Trial *trial = lineage.trialOf(state);
        if (trial && !record.against.empty() && trial->candidate == record.against)
            return state.id;
    }
    return lineage.states.empty() ? "K*" : lineage.states.back().id;
}

std::string roundtripStamp(const fs::path &lineageDirectory)
{
    std::string stamp = lineageDirectory.string();
    for (const char *name : {"log.jsonl", trialsName}) {
        const fs::path file = roundtripFolder(lineageDirectory) / name;
        std::error_code absent;
        const auto size = fs::file_size(file, absent);
        const auto time = fs::last_write_time(file, absent).time_since_epoch().count();
        stamp += absent ? "|-" : '|' + std::to_string(size) + ' ' + std::to_string(time);
    }
    return stamp;
}

} // namespace klineage::run
