// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/diff/render/heattext.h"

#include "ui/diff/chain.h"
#include "ui/style/format.h"

#include <QCoreApplication>

#include <algorithm>

namespace klineage::ui {

namespace {

constexpr std::size_t mostReasons = 3;

QString heatText(const char *text)
{
    return QCoreApplication::translate("Heat", text);
}

/// What the gate said when it was asked for samples and took none.
QString toldByTheGate(const gate::Trial &trial)
{
    for (const gate::Evidence &evidence : trial.verdict.evidence) {
        if (evidence.name == "hotspots" || evidence.name == "counters")
            return QString::fromStdString(evidence.value);
    }
    return {};
}

QString whyNone(const gate::Trial &trial)
{
    const QString told = toldByTheGate(trial);
    if (!told.isEmpty())
        return heatText("This trial kept no stall samples; %1").arg(told);
    const auto &device = trial.surface.device();
    if (!device.counters)
        return heatText("This trial kept no stall samples: %1 offers none.")
            .arg(QString::fromLatin1(device.name));
    return heatText("This trial kept no stall samples. Gate it again with --counters.");
}

QString reasonsInWords(const gate::LineSamples &samples, const gate::LineSpan &lines)
{
    const auto here = static_cast<double>(samples.in(lines));
    std::vector<gate::StallCount> stalls = samples.stalls(lines);
    stalls.resize(std::min(stalls.size(), mostReasons));
    QStringList words;
    for (const gate::StallCount &stall : stalls) {
        const QString share = formatHeat(static_cast<double>(stall.samples) / here);
        const QString reason = QString::fromStdString(gate::stallInWords(stall.reason));
        words << (words.isEmpty() ? heatText("%1 waited for %2") : heatText("%1 for %2")).arg(share, reason);
    }
    const QString issued = formatHeat(static_cast<double>(samples.issued(lines)) / here);
    return words.isEmpty()
               ? heatText("Of these %1 issued.").arg(issued)
               : heatText("Of these %1; %2 issued.").arg(words.join(QStringLiteral(", ")), issued);
}

} // namespace

HeatSide heatSideOf(const lineage::RowRef &row, const std::string &source)
{
    HeatSide side;
    side.label = rowLabel(row);
    if (!row.trial) {
        side.why = heatText("%1 has no recorded trial, so there are no stall samples.").arg(side.label);
        return side;
    }
    side.device = QString::fromStdString(row.trial->environment.device);
    side.samples = gate::LineSamples(*row.trial);
    if (side.samples.isEmpty()) {
        side.why = whyNone(*row.trial);
    } else if (!source.empty() && source != row.trial->candidate) {
        side.samples = {};
        side.why =
            heatText(
                "%1 has changed since its trial, whose stall samples fit none of its lines. Gate it again.")
                .arg(QString::fromStdString(row.file.filename().string()));
    }
    return side;
}

QString formatHeat(double share)
{
    return formatFixed(100 * share, share < 0.9995 ? 1 : 0) + QStringLiteral("\u202f%");
}

QString samplesInWords(const HeatSide &side, const Heat &heat)
{
    if (side.samples.isEmpty())
        return side.why;
    const QString count = formatCount(side.samples.total());
    return side.samples.kernelCount() == 1
               ? heatText("%1 stall samples of this trial; a full bar is %2")
                     .arg(count, formatHeat(heat.full))
               : heatText("%1 stall samples of this trial's %2 kernels; a full bar is %3")
                     .arg(count, QString::number(side.samples.kernelCount()), formatHeat(heat.full));
}

QString heatInWords(const HeatSide &side, const gate::LineSpan &lines)
{
    if (side.samples.isEmpty() || lines.count <= 0)
        return {};
    const QString where = lines.count == 1
                              ? heatText("line %1 of %2").arg(QString::number(lines.first), side.label)
                              : heatText("lines %1 to %2 of %3")
                                    .arg(QString::number(lines.first),
                                         QString::number(lines.first + lines.count - 1), side.label);
    const QString total = formatCount(side.samples.total());
    const std::int64_t here = side.samples.in(lines);
    if (here == 0)
        return heatText("None of the %1 stall samples of this trial at %2, %3.")
            .arg(total, where, side.device);
    return heatText("%1 (%2 of %3 stall samples of this trial) at %4, %5. %6")
        .arg(formatHeat(side.samples.share(lines)), formatCount(here), total, where, side.device,
             reasonsInWords(side.samples, lines));
}

QString movedInWords(const HunkHeat &hunk, const Heat &heat)
{
    const QString points =
        (hunk.moved() > 0 ? QStringLiteral("+") : QString()) + formatFixed(100 * hunk.moved(), 1);
    const bool oneEach = std::all_of(heat.sides.begin(), heat.sides.end(),
                                     [](const HeatSide &side) { return side.samples.kernelCount() == 1; });
    return heatText("%1 points of the samples (%2 → %3) at line %4 of %5; %6.")
        .arg(points, formatHeat(hunk.left), formatHeat(hunk.right), QString::number(hunk.hottest.line + 1),
             heat.side(hunk.hottest.side).label,
             oneEach ? heatText("shares of two separate trials, each of its own kernel's total")
                     : heatText("shares of two separate trials, each of the total of its own kernels"));
}

} // namespace klineage::ui
