// SPDX-License-Identifier: GPL-3.0-or-later
//
// What came of a card wherever it was tried: in the runs and experiments of a workspace, and in its own log of roundtrips. Nothing is
// stored: it is counted from what they recorded.
#pragma once

#include "core/run/journal.h"
#include "core/skills/card.h"

#include <map>
#include <optional>
#include <set>
#include <stop_token>
#include <string>
#include <vector>

namespace klineage::run {

/// What the gate said of a candidate that applied a card. Gained, NoGain, Lost, Undecided: correct, by its paired comparison with what the card
/// was applied to; Wrong: any other verdict.
enum class CardOutcome { Gained, NoGain, Lost, Undecided, Wrong };
[[nodiscard]] const char *toString(CardOutcome outcome); ///< gained no_gain lost undecided wrong

/// One candidate that applied a card and was gated.
struct Application {
    std::string run; ///< its id; empty where only the card's log tells of it
    std::string workload;
    std::string platform; ///< "sm90"
    std::string trial;
    std::string action; ///< "complete", "repair", "roundtrip"
    int cards = 1;      ///< that were applied in it together
    CardOutcome outcome = CardOutcome::Undecided;
    std::string status;                   ///< the gate's
    std::optional<gate::Interval> factor; ///< paired, against what it was applied to
};

/// Of several paired factors.
struct MedianFactor {
    int count = 0;
    double median = 0;
    /// Of one: its own interval. Of six or more: the 95 % interval of the median by the order of the factors. Else from the least low to the
    /// greatest high end of their intervals, and isSpan.
    double low = 0;
    double high = 0;
    bool isSpan = false;
};
[[nodiscard]] MedianFactor medianFactor(std::vector<gate::Interval> factors);

/// What a card came to on one platform.
struct PlatformRecord {
    std::string platform;
    int shown = 0;    ///< questions that had it, alone or among others
    int applied = 0;  ///< candidates that were asked to apply it and were gated
    int together = 0; ///< of them: with other cards, so that no factor is the card's own
    int gained = 0;
    int noGain = 0;
    int lost = 0;
    int undecided = 0;
    int wrong = 0;
    MedianFactor factor; ///< of correct candidates that applied it alone
};

struct CardApplications {
    std::vector<PlatformRecord> platforms; ///< by name
    std::vector<Application> applications; ///< runs in the order of their folders' names, then the card's log

    [[nodiscard]] int shown() const;
    [[nodiscard]] int applied() const;
};

/// By card.
struct ApplicationRecord {
    std::map<std::string, CardApplications> cards;
    int runs = 0; ///< that were read
    std::vector<Error> problems;

    [[nodiscard]] const CardApplications *find(const std::string &card) const;
};

/// The folders of all runs of a workspace: runs/* and experiments/*/runs/*.
[[nodiscard]] std::vector<std::filesystem::path> runFolders(const std::filesystem::path &workspaceRoot);
/// Another text as soon as a run has gone on, or there is another one. Looks at names and times only.
[[nodiscard]] std::string applicationsStamp(const std::filesystem::path &workspaceRoot);

/// Reads all of them: slow, for no UI thread. Cards that no run names and whose log is empty are not in it. Stopped, it is incomplete.
[[nodiscard]] ApplicationRecord readApplications(
    const std::filesystem::path &workspaceRoot,
    const std::map<std::string, std::vector<skills::Verification>> &logs, const std::stop_token &stop = {});
[[nodiscard]] std::map<std::string, std::vector<skills::Verification>> verificationLogs(
    const std::vector<skills::CardRecord> &cards);

} // namespace klineage::run
