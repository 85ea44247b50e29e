// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/runs/verdicttext.h"

#include "ui/style/format.h"
#include "ui/style/status.h"

#include <QCoreApplication>
#include <QStringList>

namespace klineage::ui {

namespace {

QString verdictWord(const char *text)
{
    return QCoreApplication::translate("klineage::ui::Verdict", text);
}

/// The gate's own words for it, and the pool's, before a stage has begun; their stage is the first one.
bool isWaiting(const gate::GateProgress &progress)
{
    return progress.stage == gate::Stage::Compile && progress.text.starts_with("waiting for ");
}

/// Of a gate that is not there yet.
bool isStarting(const gate::GateProgress &progress)
{
    return progress.stage == gate::Stage::Compile && progress.text.starts_with("starting ");
}

} // namespace

QString progressWord(const std::optional<gate::GateProgress> &progress)
{
    if (!progress || isStarting(*progress))
        return verdictWord("starting");
    if (isWaiting(*progress))
        return verdictWord("waiting");
    switch (progress->stage) {
    case gate::Stage::Compile:
        return verdictWord("compiling");
    case gate::Stage::Correctness:
        return verdictWord("checking");
    case gate::Stage::Profile:
        break;
    }
    return verdictWord("timing");
}

QString progressSentence(const gate::GateProgress &progress)
{
    const QString text = QString::fromStdString(progress.text);
    return isWaiting(progress) || isStarting(progress)
               ? text
               : QStringLiteral("%1: %2").arg(progressWord(progress), text);
}

QStringList verdictDetails(const gate::Verdict &verdict)
{
    QStringList lines;
    for (const gate::Evidence &evidence : verdict.evidence)
        lines << QStringLiteral("  %1: %2")
                     .arg(QString::fromStdString(evidence.name), QString::fromStdString(evidence.value));
    for (const gate::Comparison &comparison : verdict.comparisons) {
        lines << verdictWord("  against %1: %2 (%3 to %4), %5")
                     .arg(QString::fromStdString(comparison.against), formatSpeedup(comparison.speedup.value),
                          formatSpeedup(comparison.speedup.low), formatSpeedup(comparison.speedup.high),
                          QString::fromLatin1(gate::toString(comparison.change))
                              .replace(QLatin1Char('_'), QLatin1Char(' ')));
    }
    if (!verdict.hint.empty())
        lines << verdictWord("What to try: %1").arg(QString::fromStdString(verdict.hint));
    if (!verdict.log.empty())
        lines << QString() << QString::fromStdString(verdict.log);
    return lines;
}

QString verdictText(const gate::Trial &trial)
{
    const StatusStyle style = statusStyle(trial.verdict.status);
    QStringList lines;
    lines << QStringLiteral("%1 %2").arg(style.glyph, style.word)
          << QString::fromStdString(trial.verdict.message);
    if (trial.latencyNs.value > 0)
        lines << verdictWord("  latency: %1 (%2 to %3)")
                     .arg(formatLatency(trial.latencyNs.value), formatLatency(trial.latencyNs.low),
                          formatLatency(trial.latencyNs.high));
    lines << verdictDetails(trial.verdict);
    return lines.join(QLatin1Char('\n'));
}

} // namespace klineage::ui
