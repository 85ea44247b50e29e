// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/models/lineagerow.h"

#include "ui/models/devicename.h"
#include "ui/models/disturbancetext.h"
#include "ui/models/viewed.h"

#include <QCoreApplication>
#include <QStringList>

#include <algorithm>

namespace klineage::ui {

namespace {

using lineage::TableRow;

QString lineageText(const char *text)
{
    return QCoreApplication::translate("klineage::ui::LineageModel", text);
}

QString speedupWithInterval(const gate::Interval &speedup)
{
    return lineageText("%1 (95 % interval %2 to %3)")
        .arg(formatSpeedup(speedup.value), formatSpeedup(speedup.low), formatSpeedup(speedup.high));
}

NodeShape nodeShape(const TableRow &row, bool isBest)
{
    if (row.trial && row.trial->verdict.status != gate::VerdictStatus::Correct
        && row.trial->verdict.status != gate::VerdictStatus::Unavailable)
        return NodeShape::Failed;
    if (!row.trial || row.trial->verdict.status == gate::VerdictStatus::Unavailable)
        return NodeShape::Ungated;
    switch (row.kind) {
    case TableRow::Kind::Attempt:
        return NodeShape::Rejected;
    case TableRow::Kind::Branch:
        return NodeShape::Branch;
    case TableRow::Kind::State:
        break;
    }
    return isBest ? NodeShape::Best : NodeShape::State;
}

Tone stepTone(const TableRow &row)
{
    const gate::Comparison *parent = row.trial ? row.trial->comparison("parent") : nullptr;
    return parent ? statusStyle(parent->change).tone : Tone::Neutral;
}

/// The verdict in sentences: what a row's tooltip and a screen reader say.
QString verdictText(const TableRow &row, const QString &baseline)
{
    QStringList lines;
    lines << QStringLiteral("%1  %2").arg(
        QString::fromStdString(row.kind == TableRow::Kind::Branch ? "branch" : row.id),
        QString::fromStdString(row.title));
    if (!row.trial) {
        lines << lineageText("Not gated yet: no recorded trial stands for it.");
        return lines.join(QLatin1Char('\n'));
    }
    const gate::Verdict &verdict = row.trial->verdict;
    const QString sentence = QString::fromStdString(verdict.message);
    lines << (sentence.isEmpty() ? statusStyle(verdict.status).word
                                 : lineageText("%1: %2").arg(statusStyle(verdict.status).word, sentence));
    if (row.latencyNs)
        lines << lineageText("Latency %1 %2")
                     .arg(formatLatency(row.latencyNs->value),
                          formatHalfWidth(row.latencyNs->value, row.latencyNs->low, row.latencyNs->high));
    for (const gate::Disturbance &disturbance : gate::disturbancesOf(*row.trial))
        lines << disturbanceInWords(disturbance);
    if (row.speedupToParent)
        lines << lineageText("Speedup to %1, paired: %2")
                     .arg(QString::fromStdString(row.parent), speedupWithInterval(*row.speedupToParent));
    if (row.speedupToBaseline && row.speedupToParent && *row.speedupToBaseline > 0)
        lines << lineageText("Speedup to %1: %2, not paired: the medians of two trials")
                     .arg(baseline, formatSpeedup(*row.speedupToBaseline));
    for (const gate::Comparison &comparison : row.trial->verdict.comparisons) {
        if (comparison.against != "parent" && comparison.speedup.value > 0)
            lines << lineageText("Speedup to %1: %2")
                         .arg(QString::fromStdString(comparison.subject.empty() ? comparison.against
                                                                                : comparison.subject),
                              speedupWithInterval(comparison.speedup));
    }
    if (row.attempt && !row.attempt->reason.empty())
        lines << lineageText("Rejected: %1").arg(QString::fromStdString(row.attempt->reason));
    if (row.step)
        lines << QString::fromStdString(row.step->summary);
    const gate::Environment &environment = row.trial->environment;
    lines << lineageText("Trial %1 on %2, %3")
                 .arg(QString::fromStdString(row.trial->id), QString::fromStdString(environment.device),
                      QString::fromStdString(row.trial->time));
    return lines.join(QLatin1Char('\n'));
}

/// The column compares with one provider; a row that was not timed beside it says which it was timed beside.
void fillReference(LineageRow &shown, const TableRow &row, const std::string &provider)
{
    if (!row.latencyNs)
        return;
    const gate::Comparison *same = row.trial->comparison(provider);
    const gate::Comparison *any = row.trial->referenceComparison();
    if (const gate::Comparison *comparison = same ? same : any; comparison && comparison->speedup.value > 0) {
        shown.referenceSpeedup = comparison->speedup.value;
        shown.toReference = formatSpeedup(comparison->speedup.value);
        if (!same)
            shown.toReference += QLatin1Char(' ') + QString::fromStdString(comparison->against);
    }
}

void fillNumbers(LineageRow &shown, const TableRow &row, const LatencyUnit &unit)
{
    if (row.latencyNs) {
        shown.latencyNs = row.latencyNs->value;
        shown.latency = formatInUnit(row.latencyNs->value, unit);
        shown.isDisturbed = !gate::disturbancesOf(*row.trial).empty();
    }
    if (row.speedupToParent && row.speedupToParent->value > 0) {
        shown.stepSpeedup = row.speedupToParent->value;
        shown.step = formatPercent(1.0 / row.speedupToParent->value - 1.0);
        shown.stepTone = stepTone(row);
    }
    if (row.speedupToBaseline) {
        shown.baselineSpeedup = *row.speedupToBaseline;
        shown.toBaseline = formatSpeedup(*row.speedupToBaseline);
    }
}

/// Why there are no numbers; empty where there are. Those of another device stand here, with what tells its name from the lineage's.
QString insteadOfNumbers(const TableRow &row, const QString &usualDevice)
{
    if (!row.trial)
        return lineageText("not gated yet");
    const StatusStyle verdict = statusStyle(row.trial->verdict.status);
    const QString device = distinctName(QString::fromStdString(row.elsewhere), usualDevice);
    if (row.trial->verdict.status != gate::VerdictStatus::Correct) {
        const QString word = verdict.glyph + QLatin1Char(' ') + verdict.word;
        return device.isEmpty() ? word : lineageText("%1 on %2").arg(word, device);
    }
    if (device.isEmpty())
        return {};
    return lineageText("%1 on %2")
        .arg(row.latencyNs ? formatLatency(row.latencyNs->value) : verdict.word, device);
}

/// The tunables of a branch that its parent has not; empty: nothing but its source says what it is.
QString branchSubject(const lineage::Lineage &lineage, const TableRow &row)
{
    const lineage::State *state = lineage.findState(row.parent);
    const gate::Trial *parent = state ? lineage.trialOf(*state) : nullptr;
    QStringList changed;
    for (const auto &[name, value] : row.trial->tunables) {
        const auto before = parent ? parent->tunables.find(name) : row.trial->tunables.end();
        if (parent && (before == parent->tunables.end() || before->second != value))
            changed << QStringLiteral("%1 %2").arg(QString::fromStdString(name)).arg(value);
    }
    return changed.join(QStringLiteral(", "));
}

/// "gain 1.05×" over its parent, paired; "wrong".
QString branchOutcome(const TableRow &row)
{
    if (row.trial->verdict.status != gate::VerdictStatus::Correct || !row.speedupToParent)
        return statusStyle(row.trial->verdict.status).word;
    const gate::Change change = row.trial->comparison("parent")->change;
    const QString word = statusStyle(change).word;
    return change == gate::Change::Gain || change == gate::Change::Loss
               ? lineageText("%1 %2").arg(word, formatSpeedup(row.speedupToParent->value))
               : word;
}

/// "STAGES 3 · gain 1.05× · 01-31 12:34", behind "tried": a branch has no name, so what it was, what came of it and when tell it from others.
QString branchTitle(const lineage::Lineage &lineage, const TableRow &row)
{
    if (!row.trial)
        return lineageText("no trial");
    QStringList parts{
        branchSubject(lineage, row), branchOutcome(row),
        QString::fromStdString(row.trial->time).mid(5, 11).replace(QLatin1Char('T'), QLatin1Char(' '))};
    parts.removeAll(QString());
    return parts.join(titleSeparator());
}

/// A run names no states: what was done tells them apart.
QString titleOf(const lineage::Lineage &lineage, const std::string &title, const lineage::Transition *step)
{
    if (lineage.run.empty() || !step)
        return QString::fromStdString(title);
    const std::string &name = step->card.empty() ? step->category : step->card;
    const QString words = QString::fromStdString(name)
                              .replace(QLatin1Char('-'), QLatin1Char(' '))
                              .replace(QLatin1Char('_'), QLatin1Char(' '));
    return step->card.empty() ? QStringLiteral("%1: %2").arg(words, QString::fromStdString(step->locus))
                              : words;
}

LineageRow makeRow(const lineage::Lineage &lineage, const TableRow &row, const LineageRows &column)
{
    LineageRow shown;
    shown.kind = row.kind;
    shown.id = QString::fromStdString(row.id);
    shown.label = row.kind == TableRow::Kind::Branch ? lineageText("tried") : shown.id;
    shown.title = row.kind == TableRow::Kind::Branch  ? branchTitle(lineage, row)
                  : row.kind == TableRow::Kind::State ? titleOf(lineage, row.title, row.step)
                                                      : QString::fromStdString(row.title);
    shown.parent = QString::fromStdString(row.parent);
    shown.file = QString::fromStdString((lineage.directory / row.file).string());
    shown.viewedKey = Viewed::stepKey(QString::fromStdString(lineage.key()), shown.id,
                                      row.trial ? QString::fromStdString(row.trial->id) : QString());
    const bool isBest =
        row.kind == TableRow::Kind::State && !lineage.states.empty() && lineage.states.back().id == row.id;
    shown.graph.node = nodeShape(row, isBest);
    shown.graph.lane = row.kind == TableRow::Kind::State ? 0 : 1;
    if (row.trial) {
        shown.stages = stageOutcomes(row.trial->verdict);
        shown.verdict = statusStyle(row.trial->verdict.status);
        shown.isCorrect = row.trial->verdict.status == gate::VerdictStatus::Correct;
    }
    shown.isElsewhere = !row.elsewhere.empty();
    shown.instead = insteadOfNumbers(row, column.device);
    if (!shown.isElsewhere) {
        fillNumbers(shown, row, column.unit);
        fillReference(shown, row, column.reference.toStdString());
    }
    shown.tooltip = verdictText(row, column.baseline);
    if (row.kind == TableRow::Kind::Branch)
        shown.tooltip.prepend(lineageText("Tried from %1: %2\n").arg(shown.parent, shown.title));
    return shown;
}

LatencyUnit columnUnit(const std::vector<TableRow> &table)
{
    double smallest = 0;
    for (const TableRow &row : table) {
        if (row.latencyNs && row.elsewhere.empty() && (smallest == 0 || row.latencyNs->value < smallest))
            smallest = row.latencyNs->value;
    }
    return latencyUnitFor(smallest > 0 ? smallest : 1e3);
}

/// The headline reference of the strongest state that has one: what the lineage is measured against in the end.
QString columnReference(const std::vector<TableRow> &table)
{
    for (const TableRow &row : table) {
        const bool counts = row.latencyNs && row.elsewhere.empty() && row.kind == TableRow::Kind::State;
        const gate::Comparison *reference = counts ? row.trial->referenceComparison() : nullptr;
        if (reference)
            return QString::fromStdString(reference->against);
    }
    return {};
}

/// What was tried from a state stands between it and its successor, and its connector bends towards the state. Beyond K* there is
/// no main line: there only the connectors of what was tried from K* itself.
void linkRows(std::vector<LineageRow> &rows, Direction direction)
{
    for (std::size_t i = 0; i < rows.size(); ++i) {
        GraphCell &cell = rows[i].graph;
        const bool isFirst = i == 0;
        const bool isLast = i + 1 == rows.size();
        cell.parentBelow = direction == Direction::Backward;
        if (cell.lane == 0) {
            cell.lineAbove = !isFirst;
            cell.lineBelow = !isLast;
        } else {
            cell.lineAbove = cell.lineBelow = cell.parentBelow ? !isFirst : !isLast;
        }
    }
}

} // namespace

bool operator==(const LineageRow &a, const LineageRow &b)
{
    return a.kind == b.kind && a.id == b.id && a.label == b.label && a.title == b.title
           && a.parent == b.parent && a.file == b.file && a.graph == b.graph && a.stages == b.stages
           && a.latency == b.latency && a.step == b.step && a.toBaseline == b.toBaseline
           && a.toReference == b.toReference && a.stepTone == b.stepTone && a.instead == b.instead
           && a.isDisturbed == b.isDisturbed && a.tooltip == b.tooltip;
}

QString lineageLabel(const lineage::Lineage &lineage)
{
    const QString platform = QString::fromStdString(lineage.platform);
    return lineage.name.empty()
               ? platform
               : QStringLiteral("%1 · %2").arg(platform, QString::fromStdString(lineage.name));
}

QString titleSeparator()
{
    return QStringLiteral(" · ");
}

QString stepTitle(const lineage::Lineage &lineage, const lineage::State &state)
{
    return titleOf(lineage, state.title, lineage.transitionTo(state.id));
}

LineageRows makeLineageRows(const lineage::Lineage &lineage, const QString &baseline, Direction direction)
{
    const std::vector<TableRow> table = lineageTable(lineage, baseline.toStdString());
    LineageRows result;
    result.unit = columnUnit(table);
    result.device = QString::fromStdString(lineage::deviceOf(lineage));
    if (lineage.findState(baseline.toStdString()))
        result.baseline = baseline;
    else if (!lineage.states.empty())
        result.baseline = QString::fromStdString(lineage.states.front().id);
    result.reference = columnReference(table);
    for (const TableRow &row : table)
        result.rows.push_back(makeRow(lineage, row, result));
    if (direction == Direction::Forward)
        std::reverse(result.rows.begin(), result.rows.end());
    linkRows(result.rows, direction);
    return result;
}

} // namespace klineage::ui
