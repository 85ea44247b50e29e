// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/story/chain/overlay.h"

#include "core/lineage/table.h"
#include "ui/models/lineagerow.h"
#include "ui/plots/plotstyle.h"
#include "ui/style/format.h"

#include <QCoreApplication>

#include <algorithm>
#include <cmath>
#include <tuple>

namespace klineage::ui {

namespace {

using Role = Ink::Role;

QString overlayText(const char *text)
{
    return QCoreApplication::translate("klineage::ui::Overlay", text);
}

constexpr Glyph overlayGlyphs[] = {Glyph::Disc,     Glyph::Square, Glyph::Diamond,
                                   Glyph::Triangle, Glyph::Cross,  Glyph::Branch};

struct OverlayPoint {
    double x = 0; ///< part of the way
    double speedup = 0;
    const lineage::State *state = nullptr;
    const gate::Trial *trial = nullptr;
};

bool isTimedTrial(const gate::Trial *trial)
{
    return trial && trial->verdict.status == gate::VerdictStatus::Correct && trial->latencyNs.value > 0;
}

/// The state's trial, where it was timed on the device that the lineage's figures are of.
const gate::Trial *timedTrial(const lineage::Lineage &lineage, const lineage::State &state,
                              const std::string &device)
{
    const gate::Trial *trial = lineage.trialOf(state);
    return isTimedTrial(trial) && lineage::elsewhere(trial, device).empty() ? trial : nullptr;
}

/// The headline of the last state that was timed beside one.
std::string overlayReference(const lineage::Lineage &lineage)
{
    const std::string device = lineage::deviceOf(lineage);
    for (auto state = lineage.states.rbegin(); state != lineage.states.rend(); ++state) {
        const gate::Trial *trial = timedTrial(lineage, *state, device);
        if (const gate::Comparison *reference = trial ? trial->referenceComparison() : nullptr)
            return reference->against;
    }
    return {};
}

std::vector<OverlayPoint> overlayPoints(const lineage::Lineage &lineage, OverlayScale scale,
                                        const std::string &reference)
{
    std::vector<OverlayPoint> points;
    double first = 0;
    const std::string device = lineage::deviceOf(lineage);
    for (std::size_t i = 0; i < lineage.states.size(); ++i) {
        const gate::Trial *trial = timedTrial(lineage, lineage.states[i], device);
        if (!trial)
            continue;
        if (first == 0)
            first = trial->latencyNs.value;
        const gate::Comparison *beside = reference.empty() ? nullptr : trial->comparison(reference);
        const double speedup = scale == OverlayScale::First ? first / trial->latencyNs.value
                               : beside                     ? beside->speedup.value
                                                            : 0;
        if (speedup > 0)
            points.push_back({static_cast<double>(i)
                                  / static_cast<double>(std::max<std::size_t>(lineage.states.size() - 1, 1)),
                              speedup, &lineage.states[i], trial});
    }
    return points;
}

QString legendOf(const lineage::Lineage &lineage, const std::string &reference)
{
    const std::string device = lineage::deviceOf(lineage);
    QString name =
        QStringLiteral("%1 · %2").arg(QString::fromStdString(lineage.workload), lineageLabel(lineage));
    if (!device.empty())
        name = overlayText("%1 on %2").arg(name, QString::fromStdString(device));
    const QString origin = lineage.run.empty() ? overlayText("written") : overlayText("walked");
    if (reference.empty())
        return overlayText("%1 (%2), no reference recorded").arg(name, origin);
    for (auto state = lineage.states.rbegin(); state != lineage.states.rend(); ++state) {
        const gate::Trial *trial = timedTrial(lineage, *state, device);
        const gate::Comparison *beside = trial ? trial->comparison(reference) : nullptr;
        if (beside)
            return overlayText("%1 (%2), %3 at %4 of %5")
                .arg(name, origin, QString::fromStdString(state->id), formatSpeedup(beside->speedup.value),
                     QString::fromStdString(reference));
    }
    return name;
}

void addLineage(Picture &picture, const lineage::Lineage &lineage, std::size_t series, OverlayScale scale)
{
    const std::string reference = overlayReference(lineage);
    const std::vector<OverlayPoint> points = overlayPoints(lineage, scale, reference);
    const Glyph glyph = overlayGlyphs[series % std::size(overlayGlyphs)];
    picture.legend.push_back(
        {legendOf(lineage, reference)
             + (points.empty() ? overlayText(": nothing to show on this axis") : QString()),
         Ink::ofSeries(series), points.empty() ? LegendEntry::Sign::Line : LegendEntry::Sign::Mark,
         seriesDash(series), glyph});
    if (points.empty())
        return;
    const QString key = QString::fromStdString(lineage.key());
    const QString over =
        scale == OverlayScale::First
            ? overlayText("%1, not paired").arg(QString::fromStdString(points.front().state->id))
            : overlayText("%1, paired").arg(QString::fromStdString(reference));
    PictureLine line;
    line.ink = Ink::ofSeries(series);
    line.dash = seriesDash(series);
    line.width = 1.6;
    for (const OverlayPoint &point : points) {
        const QPointF at(100 * point.x, std::log10(point.speedup));
        line.points.push_back(at);
        const QString id = QString::fromStdString(point.state->id);
        const QString title = stepTitle(lineage, *point.state);
        const double ns = point.trial->latencyNs.value;
        picture.items.push_back(
            {key, id,
             overlayText("%1/%2 %3 · %4 over %5 · %6 on %7")
                 .arg(key, id, title, formatSpeedup(point.speedup), over, formatLatency(ns),
                      QString::fromStdString(point.trial->environment.device))});
        const int item = static_cast<int>(picture.items.size()) - 1;
        picture.marks.push_back({at, glyph, Ink::ofSeries(series), item});
        picture.walk.push_back(item);
        picture.table.rows.push_back({{{key},
                                       {id},
                                       {title},
                                       {formatSpeedup(point.speedup), point.speedup},
                                       {over},
                                       {formatLatency(ns), ns},
                                       {QString::fromStdString(point.trial->environment.device)}},
                                      item});
    }
    PictureText name;
    name.at = line.points.back();
    name.sides = {Qt::AlignTop | Qt::AlignLeft, Qt::AlignBottom | Qt::AlignLeft, Qt::AlignTop, Qt::AlignLeft};
    name.priority = 50 - static_cast<int>(series);
    name.runs = {{key, Ink::ofSeries(series), TextRun::Weight::Small, 1, 0}};
    picture.texts.push_back(name);
    picture.lines.push_back(std::move(line));
}

} // namespace

Picture overlay(const std::vector<const lineage::Lineage *> &lineages, OverlayScale scale)
{
    Picture picture;
    picture.name = overlayText("Lineages over each other");
    picture.title =
        scale == OverlayScale::First
            ? overlayText("How far each lineage came: speedup over its own first state, medians, not paired")
            : overlayText("Each lineage beside its own reference: T_ref / T, paired");
    picture.y.kind = PictureAxis::Kind::Ratio;
    picture.y.title = overlayText("Speedup, logarithmic");
    picture.x.kind = PictureAxis::Kind::Linear;
    picture.x.unit = QStringLiteral(" %");
    picture.x.title = overlayText("of the way from K0 to K*");
    picture.table.headers = {overlayText("Lineage"), overlayText("State"), overlayText("Step"),
                             overlayText("Speedup"), overlayText("Over"),  overlayText("Latency"),
                             overlayText("Device")};
    picture.table.names = {"lineage", "state", "step", "speedup", "over", "latency_ns", "device"};
    for (std::size_t i = 0; i < lineages.size(); ++i)
        addLineage(picture, *lineages[i], i, scale);
    if (picture.marks.empty()) {
        picture.message =
            lineages.empty()
                ? overlayText("Choose lineages to lay over each other.")
                : overlayText(
                    "None of these lineages has a state that was timed beside a reference. Measure them from K0 instead.");
        return picture;
    }
    double low = 0;
    double high = 0;
    for (const PictureMark &mark : picture.marks) {
        low = std::min(low, mark.at.y());
        high = std::max(high, mark.at.y());
    }
    const double decades = std::max(high - low, 0.3);
    picture.world = QRectF(QPointF(-3, low - 0.08 * decades), QPointF(103, high + 0.14 * decades));
    picture.guides.push_back(
        {Qt::Horizontal,
         0,
         scale == OverlayScale::First ? overlayText("first state") : overlayText("reference"),
         {Role::Dim}});
    return picture;
}

std::vector<const lineage::Lineage *> overlayBeside(const std::vector<lineage::Lineage> &all,
                                                    const lineage::Lineage &one, std::size_t most)
{
    const auto timed = [](const lineage::Lineage &lineage) {
        return std::count_if(lineage.states.begin(), lineage.states.end(), [&](const lineage::State &state) {
            return isTimedTrial(lineage.trialOf(state));
        });
    };
    std::vector<const lineage::Lineage *> chosen{&one};
    std::vector<const lineage::Lineage *> left;
    for (const lineage::Lineage &lineage : all) {
        if (lineage.key() != one.key() && timed(lineage) > 1)
            left.push_back(&lineage);
    }
    // Walked or written, and where: of what is there already one more says less.
    const auto isNewKind = [&chosen](const lineage::Lineage &lineage) {
        return std::none_of(chosen.begin(), chosen.end(), [&](const lineage::Lineage *other) {
            return other->platform == lineage.platform && other->run.empty() == lineage.run.empty();
        });
    };
    while (chosen.size() < most && !left.empty()) {
        const auto worth = [&](const lineage::Lineage &lineage) {
            return std::tuple(lineage.workload == one.workload, isNewKind(lineage), timed(lineage));
        };
        const auto best = std::max_element(
            left.begin(), left.end(),
            [&](const lineage::Lineage *a, const lineage::Lineage *b) { return worth(*a) < worth(*b); });
        chosen.push_back(*best);
        left.erase(best);
    }
    return chosen;
}

} // namespace klineage::ui
