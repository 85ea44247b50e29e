// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/story/chain/chain.h"

#include "core/lineage/table.h"
#include "core/trial/analysis/analysis.h"
#include "ui/models/lineagerow.h"
#include "ui/plots/runtrace.h"
#include "ui/style/format.h"

#include <QCoreApplication>
#include <QStringList>

#include <algorithm>
#include <cmath>

namespace klineage::ui {

namespace {

QString chainText(const char *text)
{
    return QCoreApplication::translate("klineage::ui::Chain", text);
}

QString fromUtf8(const std::string &text)
{
    return QString::fromStdString(text);
}

bool isTimed(const gate::Trial *trial)
{
    return trial && trial->verdict.status == gate::VerdictStatus::Correct && trial->latencyNs.value > 0;
}

QString boundOf(const gate::Trial &trial)
{
    const gate::BoundBy bound = gate::analyse(trial).classification.bound;
    return bound == gate::BoundBy::Unknown ? QString() : QString::fromLatin1(gate::toString(bound));
}

QString withInterval(const gate::Interval &speedup)
{
    return chainText("%1 (%2 – %3)")
        .arg(formatSpeedup(speedup.value), formatSpeedup(speedup.low), formatSpeedup(speedup.high));
}

/// What came of a trial on another device than the chain's; empty: it ran on that one.
QString elsewhereText(const gate::Trial *trial, const std::string &device)
{
    const QString other = fromUtf8(lineage::elsewhere(trial, device));
    if (other.isEmpty())
        return {};
    return chainText("%1 on %2")
        .arg(isTimed(trial) ? formatLatency(trial->latencyNs.value) : statusStyle(trial->verdict.status).word,
             other);
}

/// What the trial of a point measured on the chain's device.
void fillMeasured(ChainPoint &point, const gate::Trial *trial, const std::string &device)
{
    point.isGated = trial != nullptr;
    point.elsewhere = elsewhereText(trial, device);
    if (!isTimed(trial) || !point.elsewhere.isEmpty())
        return;
    point.ns = trial->latencyNs.value;
    point.lowNs = trial->latencyNs.low;
    point.highNs = trial->latencyNs.high;
    point.bound = boundOf(*trial);
    const gate::Comparison *parent = trial->comparison("parent");
    if (!parent || parent->speedup.value <= 0)
        return;
    point.step = formatSpeedup(parent->speedup.value);
    point.speedup = parent->speedup;
    point.tone = statusStyle(parent->change).tone;
}

QString sentence(const ChainPoint &point)
{
    QStringList parts{point.id + QLatin1Char(' ') + point.title};
    parts << (point.ns > 0 ? formatLatency(point.ns) + QLatin1Char(' ')
                                 + formatHalfWidth(point.ns, point.lowNs, point.highNs)
              : !point.elsewhere.isEmpty() ? point.elsewhere
              : point.isGated              ? chainText("no latency was recorded")
                                           : chainText("not gated yet"));
    if (!point.step.isEmpty())
        parts << chainText("%1 its parent, paired").arg(withInterval(point.speedup));
    if (!point.bound.isEmpty())
        parts << chainText("bound by %1").arg(point.bound);
    if (!point.card.isEmpty())
        parts << chainText("card %1").arg(point.card);
    return parts.join(QStringLiteral(" · "));
}

QString sentence(const ChainAttempt &attempt, const QString &reason)
{
    QStringList parts{attempt.id + QLatin1Char(' ') + attempt.title, attempt.verdict};
    if (attempt.ns > 0)
        parts << formatLatency(attempt.ns);
    if (!reason.isEmpty())
        parts << reason;
    return parts.join(QStringLiteral(" · "));
}

/// How a candidate that did not become a state went: measured, failed, or not gated.
void fillVerdict(ChainAttempt &attempt, const gate::Trial *trial, const std::string &device, Glyph measured,
                 Glyph failed)
{
    if (!trial) {
        attempt.glyph = Glyph::Ungated;
        attempt.tone = Tone::Neutral;
        attempt.verdict = chainText("not gated yet");
        return;
    }
    const StatusStyle status = statusStyle(trial->verdict.status);
    attempt.elsewhere = elsewhereText(trial, device);
    if (!attempt.elsewhere.isEmpty()) {
        attempt.glyph = Glyph::Dot;
        attempt.tone = Tone::Neutral;
        attempt.verdict = attempt.elsewhere;
        return;
    }
    attempt.glyph = isTimed(trial) ? measured : failed;
    attempt.ns = isTimed(trial) ? trial->latencyNs.value : 0;
    attempt.tone = isTimed(trial) ? Tone::Warn : Tone::Bad;
    attempt.verdict = status.word;
    const gate::Comparison *parent = isTimed(trial) ? trial->comparison("parent") : nullptr;
    if (parent && parent->speedup.value > 0)
        attempt.verdict = chainText("%1, %2 its parent, paired")
                              .arg(statusStyle(parent->change).word, withInterval(parent->speedup));
}

void spread(std::vector<ChainAttempt> &tried, std::size_t parent)
{
    for (std::size_t k = 0; k < tried.size(); ++k) {
        tried[k].parent = parent;
        tried[k].place =
            static_cast<double>(parent) + static_cast<double>(k + 1) / static_cast<double>(tried.size() + 1);
    }
}

/// What stands where another does goes a part of the way to its neighbour.
void giveWay(std::vector<ChainAttempt> &branches, const std::vector<ChainAttempt> &attempts)
{
    constexpr double near = 0.02;
    for (ChainAttempt &branch : branches) {
        const bool isTaken = std::any_of(attempts.begin(), attempts.end(), [&](const ChainAttempt &attempt) {
            return std::abs(attempt.place - branch.place) < near;
        });
        if (isTaken)
            branch.place -= 0.4 / static_cast<double>(branches.size() + 1);
    }
}

void addTriedFrom(Chain &chain, const lineage::Lineage &lineage, const lineage::State &state,
                  std::size_t index)
{
    const std::string device = chain.device.toStdString();
    std::vector<ChainAttempt> tried;
    for (const lineage::Attempt &attempt : lineage.attempts) {
        if (attempt.parent != state.id)
            continue;
        ChainAttempt shown;
        shown.id = shown.row = fromUtf8(attempt.id);
        shown.title = fromUtf8(attempt.title);
        fillVerdict(shown, lineage.trialOf(attempt), device, Glyph::Rejected, Glyph::Crossed);
        shown.says = sentence(shown, fromUtf8(attempt.reason));
        tried.push_back(std::move(shown));
    }
    spread(tried, index);
    chain.attempts.insert(chain.attempts.end(), tried.begin(), tried.end());
    std::vector<ChainAttempt> branches;
    for (const lineage::Branch &branch : lineage.branches) {
        if (branch.parent != state.id)
            continue;
        ChainAttempt shown;
        shown.row = QStringLiteral("trial:") + fromUtf8(branch.trial);
        shown.id = fromUtf8(branch.trial.substr(0, 8));
        shown.title = chainText("tried, not named");
        fillVerdict(shown, lineage.findTrial(branch.trial), device, Glyph::Branch, Glyph::Crossed);
        if (shown.ns > 0)
            shown.tone = Tone::Accent;
        shown.says = sentence(shown, {});
        branches.push_back(std::move(shown));
    }
    spread(branches, index);
    giveWay(branches, tried);
    chain.branches.insert(chain.branches.end(), branches.begin(), branches.end());
}

void addReferenceTo(Chain &chain, const lineage::Lineage &lineage)
{
    for (auto state = lineage.states.rbegin(); state != lineage.states.rend(); ++state) {
        const gate::Trial *trial = lineage.trialOf(*state);
        const bool isHere = isTimed(trial) && lineage::elsewhere(trial, chain.device.toStdString()).empty();
        const gate::Comparison *reference = isHere ? trial->referenceComparison() : nullptr;
        if (!reference || reference->otherNs <= 0)
            continue;
        chain.reference = fromUtf8(reference->against);
        chain.referenceNs = reference->otherNs;
        chain.toReference = reference->speedup;
        return;
    }
}

ChainPoint pointOfStep(const run::StepRecord &step, const gate::Trial *trial)
{
    ChainPoint point;
    point.id = chainText("step %1").arg(step.number);
    point.row = QString::number(step.number);
    point.title = fromUtf8(step.title);
    point.category = fromUtf8(step.action);
    if (step.cards.size() == 1)
        point.card = fromUtf8(step.cards.front());
    else if (step.cards.size() > 1)
        point.card = chainText("%1 cards").arg(step.cards.size());
    fillMeasured(point, trial, {});
    point.says = sentence(point);
    return point;
}

ChainAttempt attemptOfStep(const run::StepRecord &step, const gate::Trial *trial)
{
    ChainAttempt attempt;
    attempt.id = attempt.row = QString::number(step.number);
    attempt.title = fromUtf8(step.title);
    fillVerdict(attempt, trial, {}, Glyph::Rejected, Glyph::Triangle);
    const RunTracePoint::Kind kind = traceKind(step.outcome);
    attempt.glyph = kind == RunTracePoint::Kind::Wrapper   ? Glyph::Cross
                    : kind == RunTracePoint::Kind::Audited ? Glyph::Diamond
                    : kind == RunTracePoint::Kind::Failed  ? Glyph::Triangle
                                                           : attempt.glyph;
    if (kind == RunTracePoint::Kind::Failed)
        attempt.tone = Tone::Bad;
    else
        attempt.tone = kind == RunTracePoint::Kind::Audited ? Tone::Accent : Tone::Warn;
    attempt.verdict = outcomeStyle(step.outcome).word;
    attempt.says = sentence(attempt, fromUtf8(step.reason));
    return attempt;
}

} // namespace

const ChainPoint *Chain::lastTimed() const
{
    const auto found =
        std::find_if(points.rbegin(), points.rend(), [](const ChainPoint &point) { return point.ns > 0; });
    return found == points.rend() ? nullptr : &*found;
}

const ChainPoint *Chain::firstTimed() const
{
    const auto found =
        std::find_if(points.begin(), points.end(), [](const ChainPoint &point) { return point.ns > 0; });
    return found == points.end() ? nullptr : &*found;
}

Chain chainOf(const lineage::Lineage &lineage)
{
    Chain chain;
    chain.key = fromUtf8(lineage.key());
    chain.name = QStringLiteral("%1 · %2").arg(fromUtf8(lineage.workload), lineageLabel(lineage));
    chain.device = fromUtf8(lineage::deviceOf(lineage));
    for (std::size_t i = 0; i < lineage.states.size(); ++i) {
        const lineage::State &state = lineage.states[i];
        const gate::Trial *trial = lineage.trialOf(state);
        const lineage::Transition *step = lineage.transitionTo(state.id);
        ChainPoint point;
        point.id = point.row = fromUtf8(state.id);
        point.title = stepTitle(lineage, state);
        point.category = step ? fromUtf8(step->category) : QString();
        point.card = step ? fromUtf8(step->card) : QString();
        fillMeasured(point, trial, chain.device.toStdString());
        point.says = sentence(point);
        chain.points.push_back(std::move(point));
        addTriedFrom(chain, lineage, state, i);
    }
    addReferenceTo(chain, lineage);
    return chain;
}

Chain chainOf(const RunEntry &run)
{
    Chain chain;
    chain.key = QStringLiteral("run:") + run.id();
    chain.name = QStringLiteral("%1 · %2").arg(policyOf(run.record.settings), run.id());
    double best = 0;
    std::vector<ChainAttempt> tried;
    for (const run::StepRecord &step : run.record.steps) {
        const gate::Trial *trial = run.trialOf(step);
        if (trial && !trial->environment.device.empty())
            chain.device = fromUtf8(trial->environment.device);
        const RunTracePoint::Kind kind = traceKind(step.outcome);
        const bool isBest = kind == RunTracePoint::Kind::Valid && isTimed(trial)
                            && (chain.points.empty() || step.speedup > best);
        if (isBest) {
            if (!chain.points.empty()) {
                spread(tried, chain.points.size() - 1);
                chain.attempts.insert(chain.attempts.end(), tried.begin(), tried.end());
                tried.clear();
            }
            best = step.speedup;
            chain.points.push_back(pointOfStep(step, trial));
        } else if (!step.candidate.empty() && kind != RunTracePoint::Kind::Other) {
            tried.push_back(attemptOfStep(step, trial));
        }
    }
    if (!chain.points.empty()) {
        spread(tried, chain.points.size() - 1);
        chain.attempts.insert(chain.attempts.end(), tried.begin(), tried.end());
    }
    chain.reference = fromUtf8(run.summary.reference.name);
    chain.referenceNs = run.summary.reference.nanoseconds;
    return chain;
}

} // namespace klineage::ui
