// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/style/status.h"

#include "ui/style/theme.h"

#include <QCoreApplication>

namespace klineage::ui {

namespace {

QString tr(const char *word)
{
    return QCoreApplication::translate("klineage::ui::Status", word);
}

} // namespace

QColor toneColor(Tone tone)
{
    const Theme &theme = Theme::current();
    switch (tone) {
    case Tone::Accent:
        return theme.accent;
    case Tone::Good:
        return theme.good;
    case Tone::Warn:
        return theme.warn;
    case Tone::Bad:
        return theme.bad;
    case Tone::Neutral:
        break;
    }
    return theme.dim;
}

StatusStyle statusStyle(gate::VerdictStatus status)
{
    using gate::VerdictStatus;
    switch (status) {
    case VerdictStatus::Correct:
        return {tr("correct"), QStringLiteral("✓"), Tone::Good};
    case VerdictStatus::CompileError:
        return {tr("compile error"), QStringLiteral("✗"), Tone::Bad};
    case VerdictStatus::Wrong:
        return {tr("wrong"), QStringLiteral("≠"), Tone::Bad};
    case VerdictStatus::Unsafe:
        return {tr("unsafe"), QStringLiteral("!"), Tone::Bad};
    case VerdictStatus::Suspect:
        return {tr("suspect"), QStringLiteral("?"), Tone::Warn};
    case VerdictStatus::Timeout:
        return {tr("timeout"), QStringLiteral("∞"), Tone::Bad};
    case VerdictStatus::Crash:
        return {tr("crash"), QStringLiteral("†"), Tone::Bad};
    case VerdictStatus::Unavailable:
        break;
    }
    return {tr("no device"), QStringLiteral("○"), Tone::Neutral};
}

StatusStyle statusStyle(gate::Change change)
{
    using gate::Change;
    switch (change) {
    case Change::Gain:
        return {tr("gain"), QStringLiteral("▲"), Tone::Good};
    case Change::NoGain:
        return {tr("no gain"), QStringLiteral("="), Tone::Neutral};
    case Change::Loss:
        return {tr("loss"), QStringLiteral("▼"), Tone::Bad};
    case Change::Undecided:
        break;
    }
    return {tr("undecided"), QStringLiteral("~"), Tone::Warn};
}

StatusStyle statusStyle(skills::Life life)
{
    using skills::Life;
    switch (life) {
    case Life::Admitted:
        return {tr("admitted"), QStringLiteral("✓"), Tone::Good};
    case Life::Retired:
        return {tr("retired"), QStringLiteral("–"), Tone::Neutral};
    case Life::Hypothesis:
        break;
    }
    return {tr("hypothesis"), QStringLiteral("?"), Tone::Warn};
}

StatusStyle statusStyle(skills::ReviewVerdict verdict)
{
    using skills::ReviewVerdict;
    switch (verdict) {
    case ReviewVerdict::Approve:
        return {tr("approved"), QStringLiteral("✓"), Tone::Good};
    case ReviewVerdict::Reject:
        return {tr("rejected"), QStringLiteral("✗"), Tone::Bad};
    case ReviewVerdict::NeedsEvidence:
        return {tr("needs evidence"), QStringLiteral("?"), Tone::Warn};
    case ReviewVerdict::Edit:
        return {tr("edited"), QStringLiteral("✎"), Tone::Neutral};
    case ReviewVerdict::Comment:
        return {tr("commented"), QStringLiteral("”"), Tone::Neutral};
    case ReviewVerdict::Revert:
        break;
    }
    return {tr("taken back"), QStringLiteral("↶"), Tone::Neutral};
}

StageOutcomes stageOutcomes(const gate::Verdict &verdict)
{
    StageOutcomes outcomes;
    if (verdict.status == gate::VerdictStatus::Unavailable)
        return outcomes;
    const StageOutcome last =
        verdict.status == gate::VerdictStatus::Correct ? StageOutcome::Passed : StageOutcome::Failed;
    switch (verdict.stage) {
    case gate::Stage::Compile:
        outcomes.compile = last;
        break;
    case gate::Stage::Correctness:
        outcomes.compile = StageOutcome::Passed;
        outcomes.correctness = last;
        break;
    case gate::Stage::Profile:
        outcomes.compile = outcomes.correctness = StageOutcome::Passed;
        outcomes.profile = last;
        break;
    }
    return outcomes;
}

} // namespace klineage::ui
