// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/story/published/publishedpictures.h"

#include "ui/models/lineagerow.h"
#include "ui/style/format.h"

#include <QCoreApplication>

#include <algorithm>
#include <cmath>

namespace klineage::ui {

namespace {

constexpr double groupWidth = 0.84;
constexpr int barPriority = 50;

using Role = Ink::Role;
using Sign = LegendEntry::Sign;
using Weight = TextRun::Weight;

QString publishedText(const char *text)
{
    return QCoreApplication::translate("klineage::ui::PublishedPictures", text);
}

constexpr std::size_t oursSeries = 0;
constexpr std::size_t paperSeries = 4;
constexpr std::size_t adaexploreSeries = 1;
constexpr std::size_t acceloptSeries = 2;

/// A bar of a group; a speedup of 0: it failed.
struct GroupBar {
    QString who;
    double speedup = 0;
    gate::Interval interval;
    std::size_t series = 0;
    bool isPublished = false;
    bool isAudited = false;
    QString where; ///< platform, device
    QString reference;
    QString key;
    QString row;
};

struct Group {
    QString name;
    QString below;
    std::vector<GroupBar> bars;
};

/// K* beside its vendor reference; nothing where no state was timed beside one and none failed.
std::optional<GroupBar> ourBar(const lineage::Lineage &lineage)
{
    if (lineage.states.size() < 2) // a root alone is no K*
        return {};
    const lineage::State &best = lineage.states.back();
    const gate::Trial *trial = lineage.trialOf(best);
    if (!trial)
        return {};
    GroupBar bar;
    bar.who = publishedText("recorded here");
    bar.series = oursSeries;
    bar.key = QString::fromStdString(lineage.key());
    bar.row = QString::fromStdString(best.id);
    bar.where = QString::fromStdString(trial->environment.device);
    if (trial->verdict.status == gate::VerdictStatus::Correct) {
        const gate::Comparison *reference = trial->referenceComparison();
        if (!reference || reference->speedup.value <= 0)
            return {};
        bar.speedup = reference->speedup.value;
        bar.interval = reference->speedup;
        bar.reference = QString::fromStdString(reference->against);
    }
    return bar;
}

GroupBar publishedBar(const PaperLatency &row, const QString &who, double ms, std::size_t series)
{
    GroupBar bar;
    bar.who = who;
    bar.speedup = ms > 0 ? row.referenceMs / ms : 0;
    bar.series = series;
    bar.isPublished = true;
    bar.isAudited = row.audited.compare(who, Qt::CaseInsensitive) == 0;
    bar.where = publishedText("%1, %2").arg(row.platform, row.device);
    bar.reference = row.reference;
    return bar;
}

std::vector<Group> groupsOf(const Workspace &workspace, const Paper &paper)
{
    std::vector<Group> groups;
    QStringList shown;
    for (const PaperLatency &row : paper.latencies) {
        Group group{row.kernel, row.platform, {}};
        const QString key = row.ours + QLatin1Char('/') + row.platform.toLower();
        const lineage::Lineage *lineage = workspace.findLineage(key.toStdString());
        if (const auto bar = lineage ? ourBar(*lineage) : std::nullopt) {
            group.bars.push_back(*bar);
            shown << key;
        }
        group.bars.push_back(publishedBar(row, QStringLiteral("KLineage"), row.klineageMs, paperSeries));
        group.bars.push_back(
            publishedBar(row, QStringLiteral("AdaExplore"), row.adaexploreMs, adaexploreSeries));
        group.bars.push_back(publishedBar(row, QStringLiteral("AccelOpt"), row.acceloptMs, acceloptSeries));
        groups.push_back(std::move(group));
    }
    for (const lineage::Lineage &lineage : workspace.lineages) {
        const QString key = QString::fromStdString(lineage.key());
        const auto bar = shown.contains(key) ? std::nullopt : ourBar(lineage);
        if (bar)
            groups.push_back({QString::fromStdString(lineage.workload), lineageLabel(lineage), {*bar}});
    }
    return groups;
}

QString captionOf(const Group &group, const GroupBar &bar)
{
    const QString origin = bar.isPublished ? publishedText("published, not recorded here")
                                           : publishedText("recorded here, paired");
    if (bar.speedup <= 0)
        return publishedText("%1 %2 · %3: no correct kernel · %4 · %5")
            .arg(group.name, group.below, bar.who, bar.where, origin);
    const QString value = bar.isPublished
                              ? formatSpeedup(bar.speedup)
                              : publishedText("%1 (%2 – %3)")
                                    .arg(formatSpeedup(bar.speedup), formatSpeedup(bar.interval.low),
                                         formatSpeedup(bar.interval.high));
    return publishedText("%1 %2 · %3: %4 over %5 · %6 · %7")
               .arg(group.name, group.below, bar.who, value, bar.reference, bar.where, origin)
           + (bar.isAudited ? publishedText(" · † found by an audit afterwards") : QString());
}

void addBar(Picture &picture, const Group &group, const GroupBar &bar, double left, double width, double low)
{
    picture.items.push_back({bar.key, bar.row, captionOf(group, bar)});
    const int item = static_cast<int>(picture.items.size()) - 1;
    picture.walk.push_back(item);
    picture.table.rows.push_back(
        {{{group.name},
          {group.below},
          {bar.who},
          {bar.speedup > 0 ? formatSpeedup(bar.speedup) : publishedText("failed"),
           bar.speedup > 0 ? QVariant(bar.speedup) : QVariant()},
          {bar.reference},
          {bar.where},
          {bar.isPublished ? publishedText("published") : publishedText("recorded, paired")},
          {bar.isAudited ? publishedText("† audited") : QString()}},
         item});
    const double middle = left + width / 2;
    if (bar.speedup <= 0) {
        picture.marks.push_back({{middle, low}, Glyph::Cross, {Role::Bad}, item});
        return;
    }
    const double top = std::log10(bar.speedup);
    picture.bars.push_back(
        {QRectF(QPointF(left + width * 0.08, 0), QPointF(left + width * 0.92, top)).normalized(),
         Ink::ofSeries(bar.series), bar.isPublished, item});
    PictureText value;
    value.at = {middle, top};
    value.sides = {top >= 0 ? Qt::AlignTop : Qt::AlignBottom};
    value.gap = 3;
    value.priority = barPriority + (bar.isPublished ? 0 : 20);
    value.runs = {{formatSpeedup(bar.speedup) + (bar.isAudited ? QStringLiteral("†") : QString()),
                   bar.isPublished ? Ink{Role::Dim} : Ink{Role::Text},
                   bar.isPublished ? Weight::Small : Weight::Strong, 1, 0}};
    picture.texts.push_back(value);
}

void addSteps(Picture &picture, const RunTrace &trace)
{
    PictureLine best;
    best.ink = Ink::ofSeries(0);
    best.width = 1.6;
    best.stepped = true;
    for (const RunTracePoint &point : trace.points) {
        if (point.best > 0)
            best.points.push_back({static_cast<double>(point.step), point.best});
        if (point.speedup <= 0 && point.kind == RunTracePoint::Kind::Other)
            continue; // a plan or a question
        struct Look {
            Glyph glyph;
            Ink ink;
        };
        const Look look = [&]() -> Look {
            switch (point.kind) {
            case RunTracePoint::Kind::Valid:
                return {Glyph::Disc, {Role::Good}};
            case RunTracePoint::Kind::Audited:
                return {Glyph::Diamond, {Role::Good}};
            case RunTracePoint::Kind::Wrapper:
                return {Glyph::Cross, {Role::Warn}};
            case RunTracePoint::Kind::Failed:
                return {Glyph::Triangle, {Role::Bad}};
            case RunTracePoint::Kind::Other:
                break;
            }
            return {Glyph::Dot, {Role::Dim}};
        }();
        const QString value = point.speedup > 0 ? formatSpeedup(point.speedup) : QString();
        picture.items.push_back(
            {QStringLiteral("run:") + trace.run, QString::number(point.step),
             point.label + (value.isEmpty() ? QString() : QStringLiteral(" · ") + value)});
        const int item = static_cast<int>(picture.items.size()) - 1;
        picture.marks.push_back(
            {{static_cast<double>(point.step), point.speedup}, look.glyph, look.ink, item});
        picture.walk.push_back(item);
        picture.table.rows.push_back({{{QString::number(point.step), point.step},
                                       {point.label},
                                       {value, point.speedup > 0 ? QVariant(point.speedup) : QVariant()},
                                       {formatSpeedup(point.best), point.best},
                                       {formatDollars(point.dollars), point.dollars}},
                                      item});
    }
    picture.lines.push_back(std::move(best));
}

QString wordsOf(const PaperSteps &steps)
{
    QStringList parts;
    if (steps.valid > 0)
        parts << publishedText("%1 valid, %2 to %3")
                     .arg(steps.valid)
                     .arg(formatSpeedup(steps.low), formatSpeedup(steps.high));
    if (steps.audited > 0)
        parts << publishedText("%1 audited, at best %2")
                     .arg(steps.audited)
                     .arg(formatSpeedup(steps.auditedBest));
    if (steps.wrappers > 0)
        parts << publishedText("%1 wrappers").arg(steps.wrappers);
    if (steps.failed > 0)
        parts << publishedText("%1 failed").arg(steps.failed);
    return publishedText("published: %1 of %2 on %3 (%4), over %5: %6")
        .arg(steps.policy, steps.kernel, steps.platform, steps.device, steps.reference,
             parts.join(QStringLiteral(", ")));
}

} // namespace

Picture speedupBars(const Workspace &workspace, const Paper &paper)
{
    Picture picture;
    picture.name = publishedText("Speedup over the vendor's routine by workload and platform");
    picture.title = publishedText(
        "Speedup of K* over the vendor's routine: recorded here (solid), and as the paper prints it (outlines, published)");
    picture.y.kind = PictureAxis::Kind::Ratio;
    picture.y.title = publishedText("T_ref / T, logarithmic");
    picture.x.kind = PictureAxis::Kind::Names;
    picture.guides.push_back({Qt::Horizontal, 0, publishedText("reference"), {Role::Dim}});
    picture.table.headers = {publishedText("Workload"), publishedText("Platform"),  publishedText("Whose"),
                             publishedText("Speedup"),  publishedText("Reference"), publishedText("Device"),
                             publishedText("Origin"),   publishedText("Note")};
    picture.table.names = {"workload",  "platform", "whose",  "speedup",
                           "reference", "device",   "origin", "note"};
    const std::vector<Group> groups = groupsOf(workspace, paper);
    double low = 0;
    double high = 0;
    for (const Group &group : groups) {
        for (const GroupBar &bar : group.bars) {
            if (bar.speedup > 0) {
                low = std::min(low, std::log10(bar.speedup));
                high = std::max(high, std::log10(bar.speedup));
            }
        }
    }
    double x = 0;
    for (const Group &group : groups) {
        // A group of one bar needs less room than one of four.
        const double width = group.bars.size() > 1 ? 1 : 0.5;
        const double each = width * groupWidth / static_cast<double>(group.bars.size());
        for (std::size_t k = 0; k < group.bars.size(); ++k)
            addBar(picture, group, group.bars[k],
                   x + width * (1 - groupWidth) / 2 + static_cast<double>(k) * each, each,
                   low - 0.06 * (high - low));
        picture.x.names.push_back({x + width / 2, group.name, group.below});
        x += width;
    }
    picture.world =
        QRectF(QPointF(-0.1, low - 0.12 * (high - low)), QPointF(x + 0.1, high + 0.14 * (high - low)));
    picture.mostPixels = {260, 0};
    picture.legend = {
        {publishedText("recorded here, K*, paired"), Ink::ofSeries(oursSeries), Sign::Bar, Qt::SolidLine,
         Glyph::Disc},
        {publishedText("KLineage, published"), Ink::ofSeries(paperSeries), Sign::HollowBar, Qt::SolidLine,
         Glyph::Disc},
        {publishedText("AdaExplore, published"), Ink::ofSeries(adaexploreSeries), Sign::HollowBar,
         Qt::SolidLine, Glyph::Disc},
        {publishedText("AccelOpt, published"), Ink::ofSeries(acceloptSeries), Sign::HollowBar, Qt::SolidLine,
         Glyph::Disc},
        {publishedText("no correct kernel"), {Role::Bad}, Sign::Mark, Qt::SolidLine, Glyph::Cross}};
    for (std::size_t i = 0; i < paper.latencies.size(); ++i) {
        const PaperLatency &row = paper.latencies[i];
        if (i == 0 || row.platform != paper.latencies[i - 1].platform)
            picture.legend.push_back({publishedText("published %1: %2").arg(row.platform, row.device),
                                      {Role::Dim},
                                      Sign::Mark,
                                      Qt::SolidLine,
                                      Glyph::Square});
    }
    return picture;
}

Picture runSteps(const RunEntry &run, const Paper &paper)
{
    const RunTrace trace = runTrace(run);
    Picture picture;
    picture.name = publishedText("Steps of %1").arg(trace.name);
    if (trace.points.empty()) {
        picture.message = publishedText("The run has made no step yet.");
        return picture;
    }
    picture.title = publishedText("%1 · speedup over %2 by step").arg(trace.name, trace.reference);
    picture.y.kind = PictureAxis::Kind::Linear;
    picture.y.unit = QStringLiteral("×");
    picture.y.title = publishedText("Speedup over %1").arg(trace.reference);
    picture.x.kind = PictureAxis::Kind::Linear;
    picture.x.title = publishedText("Step");
    picture.table.headers = {publishedText("Step"), publishedText("What"), publishedText("Speedup"),
                             publishedText("Running best"), publishedText("Dollars")};
    picture.table.names = {"step", "what", "speedup", "best", "dollars"};
    addSteps(picture, trace);
    picture.guides.push_back({Qt::Horizontal, 1, trace.reference, {Role::Dim}});
    picture.legend = {{publishedText("running best, without wrappers"), Ink::ofSeries(0), Sign::Line,
                       Qt::SolidLine, Glyph::Disc},
                      {publishedText("valid"), {Role::Good}, Sign::Mark, Qt::SolidLine, Glyph::Disc},
                      {publishedText("audited"), {Role::Good}, Sign::Mark, Qt::SolidLine, Glyph::Diamond},
                      {publishedText("wrapper"), {Role::Warn}, Sign::Mark, Qt::SolidLine, Glyph::Cross},
                      {publishedText("failed"), {Role::Bad}, Sign::Mark, Qt::SolidLine, Glyph::Triangle}};
    double top = 1;
    for (const RunTracePoint &point : trace.points)
        top = std::max({top, point.speedup, point.best});
    const QString workload = QString::fromStdString(run.record.settings.workload);
    for (const PaperSteps &steps : paper.steps) {
        if (steps.ours != workload)
            continue;
        picture.legend.push_back({wordsOf(steps), {Role::Dim}, Sign::Mark, Qt::SolidLine, Glyph::Square});
        for (const double value : {steps.low, steps.high, steps.auditedBest}) {
            if (value > 0)
                picture.guides.push_back(
                    {Qt::Horizontal,
                     value,
                     publishedText("published\n%1 %2").arg(steps.platform, formatSpeedup(value)),
                     {Role::Faint},
                     Qt::DotLine});
        }
    }
    const double last = trace.points.back().step;
    picture.world = QRectF(QPointF(0.4, -0.06 * top), QPointF(std::max(last, 2.0) + 0.6, 1.15 * top));
    return picture;
}

void addPublishedDrops(Picture &trace, const Paper &paper)
{
    if (!trace.message.isEmpty() || paper.cards.empty())
        return;
    double x = std::floor(trace.world.right()) + 1.5;
    double low = trace.world.top();
    for (const PaperCard &card : paper.cards) {
        const double depth = std::log10(card.factor);
        trace.items.push_back(
            {{},
             {},
             publishedText("published: %1 of %2, %3× over %4, on a platform that the table does not name")
                 .arg(card.card, card.part)
                 .arg(card.factor)
                 .arg(card.over)});
        const int item = static_cast<int>(trace.items.size()) - 1;
        trace.bars.push_back({QRectF(QPointF(x - 0.12, -depth), QPointF(x + 0.12, 0)),
                              Ink::ofSeries(paperSeries), true, item});
        PictureText text;
        text.at = {x, 0};
        text.sides = {Qt::AlignTop};
        text.width = 0.96;
        text.priority = barPriority;
        text.runs = {
            {QStringLiteral("÷ %1×").arg(card.factor), Ink::ofSeries(paperSeries), Weight::Strong, 1, 0},
            {QString(card.card).replace(QLatin1Char('_'), QLatin1Char(' ')),
             {Role::Text},
             Weight::Small,
             3,
             52},
            {publishedText("published"), {Role::Dim}, Weight::Small, 1, 52}};
        trace.texts.push_back(text);
        trace.x.names.push_back({x, card.part, publishedText("published")});
        trace.walk.push_back(item);
        trace.table.rows.push_back({{{card.part},
                                     {card.card},
                                     {card.card},
                                     {QStringLiteral("%1×").arg(card.factor), card.factor},
                                     {card.over},
                                     {publishedText("published")}},
                                    item});
        low = std::min(low, -depth - 0.1);
        x += 1;
    }
    trace.world = QRectF(QPointF(trace.world.left(), low), QPointF(x - 0.4, trace.world.bottom()));
    trace.legend.push_back(
        {publishedText(
             "GDN as the paper takes it apart: factors of its cards (Table 8), published, platform not named"),
         Ink::ofSeries(paperSeries), Sign::HollowBar, Qt::SolidLine, Glyph::Disc});
}

} // namespace klineage::ui
