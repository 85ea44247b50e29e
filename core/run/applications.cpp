// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/run/applications.h"

#include "core/run/runfiles.h"

#include <algorithm>
#include <cmath>

#include <sys/stat.h>

namespace klineage::run {

namespace {

namespace fs = std::filesystem;

constexpr std::size_t leastForOrder = 6; // below it no two of the factors hold the median with 95 %

/// Actions that ask for cards to be applied; all others only show them.
bool appliesCards(const StepRecord &step)
{
    return step.action == "complete" || step.action == "repair" || step.action == "roundtrip";
}

bool showsCards(const StepRecord &step)
{
    return !step.exchanges.empty() && step.action != "lift"; // which stores one
}

CardOutcome outcomeOf(const gate::Comparison *paired)
{
    if (!paired)
        return CardOutcome::Undecided;
    switch (paired->change) {
    case gate::Change::Gain:
        return CardOutcome::Gained;
    case gate::Change::NoGain:
        return CardOutcome::NoGain;
    case gate::Change::Loss:
        return CardOutcome::Lost;
    case gate::Change::Undecided:
        break;
    }
    return CardOutcome::Undecided;
}

void judge(const gate::Trial &trial, Application &application)
{
    application.trial = trial.id;
    application.status = gate::toString(trial.verdict.status);
    if (trial.verdict.status != gate::VerdictStatus::Correct) {
        application.outcome = CardOutcome::Wrong;
        return;
    }
    const gate::Comparison *paired = trial.comparison("parent");
    application.outcome = outcomeOf(paired);
    if (paired && paired->speedup.value > 0)
        application.factor = paired->speedup;
}

/// Of a line of verification.jsonl, which has the factor but not the gate's word for it.
Application fromLog(const skills::Verification &line)
{
    Application application;
    application.run = line.run;
    application.trial = line.trial;
    application.action = "roundtrip";
    application.status = line.status;
    const std::size_t slash = line.target.find('/');
    application.workload = line.target.substr(0, slash);
    if (slash != std::string::npos)
        application.platform = line.target.substr(slash + 1, line.target.find('/', slash + 1) - slash - 1);
    if (line.factor > 0)
        application.factor = gate::Interval{line.factor, line.low, line.high};
    if (line.status != gate::toString(gate::VerdictStatus::Correct))
        application.outcome = CardOutcome::Wrong;
    else if (line.expectedEffectObserved || (line.factor > 0 && line.low > 1))
        application.outcome = CardOutcome::Gained;
    else if (line.factor > 0 && line.high < 1)
        application.outcome = CardOutcome::Lost;
    else
        application.outcome = line.factor > 0 ? CardOutcome::NoGain : CardOutcome::Undecided;
    return application;
}

/// Counts, and keeps the factors for the medians.
class Counter
{
public:
    void shown(const std::string &card, const std::string &platform) { ++m_shown[card][platform]; }
    void applied(const std::string &card, Application application)
    {
        if (m_seen[card].insert(application.trial).second)
            m_applied[card].push_back(std::move(application));
    }

    std::map<std::string, CardApplications> result() &&
    {
        std::map<std::string, CardApplications> cards;
        for (const auto &[card, platforms] : m_shown) {
            for (const auto &[platform, count] : platforms)
                m_records[card][platform].shown = count;
        }
        for (auto &[card, applications] : m_applied) {
            for (const Application &application : applications)
                count(m_records[card][application.platform], application);
            cards[card].applications = std::move(applications);
        }
        for (auto &[card, platforms] : m_records) {
            for (auto &[platform, record] : platforms) {
                record.platform = platform;
                record.factor = medianFactor(factorsOf(cards[card].applications, platform));
                cards[card].platforms.push_back(std::move(record));
            }
        }
        return cards;
    }

private:
    static void count(PlatformRecord &record, const Application &application)
    {
        ++record.applied;
        record.together += application.cards > 1;
        record.gained += application.outcome == CardOutcome::Gained;
        record.noGain += application.outcome == CardOutcome::NoGain;
        record.lost += application.outcome == CardOutcome::Lost;
        record.undecided += application.outcome == CardOutcome::Undecided;
        record.wrong += application.outcome == CardOutcome::Wrong;
    }

    static std::vector<gate::Interval> factorsOf(const std::vector<Application> &applications,
                                                 const std::string &platform)
    {
        std::vector<gate::Interval> factors;
        for (const Application &application : applications) {
            if (application.platform == platform && application.cards == 1 && application.factor
                && application.outcome != CardOutcome::Wrong)
                factors.push_back(*application.factor);
        }
        return factors;
    }

    std::map<std::string, std::map<std::string, int>> m_shown; ///< by card and platform
    std::map<std::string, std::vector<Application>> m_applied; ///< by card
    std::map<std::string, std::set<std::string>> m_seen;       ///< trials by card
    std::map<std::string, std::map<std::string, PlatformRecord>> m_records;
};

Status countRun(const fs::path &folder, Counter &counter)
{
    const Result<Settings> settings = readSettings(folder);
    if (!settings)
        return tl::unexpected(settings.error());
    const Result<std::vector<StepRecord>> steps = readSteps(folder, nullptr);
    if (!steps)
        return tl::unexpected(steps.error());
    std::set<std::string> wanted;
    for (const StepRecord &step : *steps) {
        for (const std::string &card : step.cards) {
            if (showsCards(step))
                counter.shown(card, settings->platform);
        }
        if (!step.cards.empty() && appliesCards(step) && !step.trial.empty())
            wanted.insert(step.trial);
    }
    if (wanted.empty())
        return {};
    const Result<std::vector<gate::Trial>> trials = readTrials(folder, nullptr);
    if (!trials)
        return tl::unexpected(trials.error());
    for (const StepRecord &step : *steps) {
        const auto trial = std::find_if(trials->begin(), trials->end(),
                                        [&](const gate::Trial &one) { return one.id == step.trial; });
        const bool isJudged = trial != trials->end() && wanted.count(step.trial) > 0 && appliesCards(step)
                              && trial->verdict.status != gate::VerdictStatus::Unavailable;
        if (!isJudged)
            continue;
        Application application;
        application.run = settings->id;
        application.workload = settings->workload;
        application.platform = settings->platform;
        application.action = step.action;
        application.cards = static_cast<int>(step.cards.size());
        judge(*trial, application);
        for (const std::string &card : step.cards)
            counter.applied(card, application);
    }
    return {};
}

/// Of n values in order, so many at each end can be left out, and the rest holds the median with at least 95 %: the greatest k with
/// P(at most k of n lie below the median) ≤ 2.5 %. 0 when not even one can.
std::size_t ranksLeftOut(std::size_t n)
{
    constexpr std::size_t manyFactors = 500; // where the binomial is as good as normal
    if (n > manyFactors)
        return static_cast<std::size_t>(static_cast<double>(n) / 2 - std::sqrt(static_cast<double>(n))) - 1;
    double term = std::pow(0.5, static_cast<double>(n)); // binomial(n, i) / 2^n
    double sum = 0;
    std::size_t below = 0; // values of i that are in the sum
    while (below < n / 2 && sum + term <= 0.025) {
        sum += term;
        ++below;
        term *= static_cast<double>(n - below + 1) / static_cast<double>(below);
    }
    return below == 0 ? 0 : below - 1;
}

void addFolders(const fs::path &parent, std::vector<fs::path> &folders)
{
    std::error_code ended;
    for (fs::directory_iterator entry(parent, ended), end; !ended && entry != end; entry.increment(ended)) {
        std::error_code ignored;
        if (!entry->path().filename().string().starts_with('.') && entry->is_directory(ignored))
            folders.push_back(entry->path());
    }
}

} // namespace

const char *toString(CardOutcome outcome)
{
    switch (outcome) {
    case CardOutcome::Gained:
        return "gained";
    case CardOutcome::NoGain:
        return "no_gain";
    case CardOutcome::Lost:
        return "lost";
    case CardOutcome::Undecided:
        return "undecided";
    case CardOutcome::Wrong:
        return "wrong";
    }
    return "";
}

MedianFactor medianFactor(std::vector<gate::Interval> factors)
{
    MedianFactor result;
    result.count = static_cast<int>(factors.size());
    if (factors.empty())
        return result;
    std::sort(factors.begin(), factors.end(),
              [](const gate::Interval &a, const gate::Interval &b) { return a.value < b.value; });
    const std::size_t n = factors.size();
    result.median = n % 2 == 1 ? factors[n / 2].value : (factors[n / 2 - 1].value + factors[n / 2].value) / 2;
    if (n < leastForOrder) {
        result.low = factors.front().low;
        result.high = factors.front().high;
        for (const gate::Interval &factor : factors) {
            result.low = std::min(result.low, factor.low);
            result.high = std::max(result.high, factor.high);
        }
        result.isSpan = n > 1;
        return result;
    }
    const std::size_t k = ranksLeftOut(n);
    result.low = factors[k].value;
    result.high = factors[n - 1 - k].value;
    return result;
}

int CardApplications::shown() const
{
    int count = 0;
    for (const PlatformRecord &record : platforms)
        count += record.shown;
    return count;
}

int CardApplications::applied() const
{
    return static_cast<int>(applications.size());
}

const CardApplications *ApplicationRecord::find(const std::string &card) const
{
    const auto found = cards.find(card);
    return found == cards.end() ? nullptr : &found->second;
}

std::vector<fs::path> runFolders(const fs::path &workspaceRoot)
{
    std::vector<fs::path> folders;
    addFolders(workspaceRoot / "runs", folders);
    std::vector<fs::path> experiments;
    addFolders(workspaceRoot / "experiments", experiments);
    for (const fs::path &experiment : experiments)
        addFolders(experiment / "runs", folders);
    std::sort(folders.begin(), folders.end());
    return folders;
}

std::string applicationsStamp(const fs::path &workspaceRoot)
{
    std::string stamp;
    for (const fs::path &folder : runFolders(workspaceRoot)) {
        struct stat info = {};
        if (::stat((folder / stepsFile).c_str(), &info) != 0)
            continue;
        stamp += folder.string() + ' ' + std::to_string(info.st_size) + ' '
                 + std::to_string(info.st_mtim.tv_sec) + '.' + std::to_string(info.st_mtim.tv_nsec) + '\n';
    }
    return stamp;
}

ApplicationRecord readApplications(const fs::path &workspaceRoot,
                                   const std::map<std::string, std::vector<skills::Verification>> &logs,
                                   const std::stop_token &stop)
{
    ApplicationRecord record;
    Counter counter;
    for (const fs::path &folder : runFolders(workspaceRoot)) {
        if (stop.stop_requested())
            break;
        if (const Status counted = countRun(folder, counter); counted)
            ++record.runs;
        else
            record.problems.push_back(counted.error());
    }
    // What a run recorded is told by the card's log, too.
    for (const auto &[card, lines] : logs) {
        for (const skills::Verification &line : lines)
            counter.applied(card, fromLog(line));
    }
    record.cards = std::move(counter).result();
    return record;
}

std::map<std::string, std::vector<skills::Verification>> verificationLogs(
    const std::vector<skills::CardRecord> &cards)
{
    std::map<std::string, std::vector<skills::Verification>> logs;
    for (const skills::CardRecord &record : cards) {
        if (!record.verifications.empty())
            logs.emplace(record.card.name, record.verifications);
    }
    return logs;
}

} // namespace klineage::run
