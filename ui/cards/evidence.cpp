// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/cards/evidence.h"

#include "core/workspace/citations.h"
#include "ui/style/format.h"
#include "ui/style/status.h"

#include <QCoreApplication>
#include <QRegularExpression>

#include <algorithm>

namespace klineage::ui {

namespace {

constexpr double roundingSlack = 0.02; // claims are rounded to two or three digits

QString evidenceText(const char *text)
{
    return QCoreApplication::translate("Evidence", text);
}

void fill(RecordedEvidence &evidence, const gate::Trial *trial)
{
    if (!trial)
        return;
    evidence.verdict = statusStyle(trial->verdict.status).word;
    evidence.isCorrect = trial->verdict.status == gate::VerdictStatus::Correct;
    evidence.device = QString::fromStdString(trial->environment.device);
    if (trial->trust != gate::Trust::Unsaid)
        evidence.device += QStringLiteral(" · ") + QString::fromLatin1(gate::toString(trial->trust));
    if (trial->latencyNs.value > 0)
        evidence.latency = formatLatency(trial->latencyNs.value);
    if (const gate::Comparison *parent = trial->comparison("parent"); parent && parent->speedup.value > 0)
        evidence.speedup = parent->speedup;
    if (const gate::Comparison *reference = trial->referenceComparison();
        reference && reference->speedup.value > 0)
        evidence.reference =
            evidenceText("%1 %2 (%3–%4)")
                .arg(formatSpeedup(reference->speedup.value), QString::fromStdString(reference->against),
                     formatSpeedup(reference->speedup.low), formatSpeedup(reference->speedup.high));
}

RecordedEvidence ofTrial(const Workspace &workspace, const std::string &id)
{
    RecordedEvidence evidence;
    for (const lineage::Lineage &lineage : workspace.lineages) {
        const gate::Trial *trial = lineage.findTrial(id);
        if (!trial)
            continue;
        evidence.exists = true;
        evidence.what = evidenceText("trial of %1 in %2")
                            .arg(QString::fromStdString(trial->file), QString::fromStdString(lineage.key()));
        fill(evidence, trial);
        break;
    }
    return evidence;
}

} // namespace

RecordedEvidence recordedEvidence(const Workspace &workspace, const skills::Citation &citation)
{
    constexpr std::string_view trialPrefix = "trial:";
    if (citation.starts_with(trialPrefix))
        return ofTrial(workspace, citation.substr(trialPrefix.size()));
    RecordedEvidence evidence;
    evidence.exists = citationExists(workspace, citation);
    const std::size_t slash = citation.rfind('/');
    const lineage::Lineage *lineage =
        slash == std::string::npos ? nullptr : workspace.findLineage(citation.substr(0, slash));
    if (!evidence.exists || !lineage)
        return evidence;
    const std::string id = citation.substr(slash + 1);
    const QString key = QString::fromStdString(lineage->key());
    if (const lineage::Transition *step = lineage->transitionTo(id)) {
        evidence.what = evidenceText("%1 → %2 of %3")
                            .arg(QString::fromStdString(step->from), QString::fromStdString(step->to), key);
        const lineage::State *state = lineage->findState(id);
        fill(evidence, state ? lineage->trialOf(*state) : nullptr);
        return evidence;
    }
    for (const lineage::Attempt &attempt : lineage->attempts) {
        if (attempt.id != id)
            continue;
        evidence.what =
            evidenceText("attempt %1 from %2 of %3")
                .arg(QString::fromStdString(attempt.id), QString::fromStdString(attempt.parent), key);
        evidence.note = QString::fromStdString(attempt.reason);
        fill(evidence, lineage->trialOf(attempt));
    }
    return evidence;
}

std::vector<ClaimedGain> claimedGains(const QString &text)
{
    static const QRegularExpression factor(
        QStringLiteral("(?<![\\d.])(\\d+(?:\\.\\d+)?)(?:[–-](\\d+(?:\\.\\d+)?))?[×x](?![\\w×])"
                       "(?: \\((\\d+(?:\\.\\d+)?)[–-](\\d+(?:\\.\\d+)?)\\))?"));
    std::vector<ClaimedGain> gains;
    for (auto matches = factor.globalMatch(text); matches.hasNext();) {
        const auto match = matches.next();
        ClaimedGain gain;
        gain.text = match.captured(0);
        gain.low = match.capturedView(1).toDouble();
        gain.high = match.capturedLength(2) > 0 ? match.capturedView(2).toDouble() : gain.low;
        if (match.capturedLength(4) > 0) {
            gain.low = std::min(gain.low, match.capturedView(3).toDouble());
            gain.high = std::max(gain.high, match.capturedView(4).toDouble());
        }
        if (gain.low > 0 && gain.high >= gain.low)
            gains.push_back(std::move(gain));
    }
    return gains;
}

bool bearsOut(const gate::Interval &recorded, const ClaimedGain &claimed)
{
    return recorded.low <= claimed.high * (1 + roundingSlack)
           && recorded.high >= claimed.low * (1 - roundingSlack);
}

} // namespace klineage::ui
