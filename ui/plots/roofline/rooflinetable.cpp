// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/plots/roofline/rooflinetable.h"

#include "ui/style/format.h"

#include <QCoreApplication>

namespace klineage::ui {

namespace {

QString roofText(const char *text)
{
    return QCoreApplication::translate("klineage::ui::RooflineTable", text);
}

PlotTable::Cell quantity(double value, const char *unit)
{
    return {value, formatQuantity(value, QString::fromLatin1(unit))};
}

} // namespace

PlotTable rooflineTable(const RooflineView &view)
{
    const bool isCounted = view.path.bytes == gate::RooflineBytes::Counted;
    PlotTable table{
        {{roofText("What"), QStringLiteral("name"), false},
         {roofText("Kind"), QStringLiteral("kind"), false},
         {isCounted ? roofText("FLOP/B, bytes counted") : roofText("FLOP/B, fewest bytes"),
          isCounted ? QStringLiteral("flop_per_counted_byte") : QStringLiteral("flop_per_least_byte")},
         {roofText("Rate"), QStringLiteral("per_second")},
         {roofText("Latency"), QStringLiteral("latency_ns")},
         {roofText("Of its roof"), QStringLiteral("percent_of_roof")},
         {roofText("Roof, or source"), QStringLiteral("roof_or_source"), false}},
        {}};
    for (std::size_t i = 0; i < view.path.points.size(); ++i) {
        const gate::RooflinePoint &point = view.path.points[i];
        const auto [roof, most] = gate::roofAbove(view.path, point.intensity);
        const QString id = QString::fromStdString(point.id);
        table.rows.push_back(
            {id,
             {id, i < view.length ? roofText("state on the path") : roofText("other state"),
              quantity(point.intensity, "FLOP/B"), quantity(point.perSecond, "FLOP/s"),
              PlotTable::Cell(point.latencyNs, formatLatency(point.latencyNs)),
              most > 0 ? quantity(100 * point.perSecond / most, "%") : PlotTable::Cell(),
              roof ? PlotTable::Cell(QString::fromStdString(roof->name)) : PlotTable::Cell()}});
    }
    for (const gate::RooflineCeiling &ceiling : view.path.ceilings)
        table.rows.push_back(
            {{},
             {QString::fromStdString(ceiling.name),
              ceiling.isBandwidth ? roofText("ceiling of bytes") : roofText("ceiling of operations"),
              {},
              quantity(ceiling.perSecond, ceiling.isBandwidth ? "B/s" : "FLOP/s"),
              {},
              {},
              QString::fromStdString(ceiling.source)}});
    return table;
}

} // namespace klineage::ui
