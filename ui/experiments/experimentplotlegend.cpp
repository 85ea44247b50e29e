// SPDX-License-Identifier: GPL-3.0-or-later
// The legend of ExperimentPlot.
#include "ui/experiments/experimentplot.h"
#include "ui/plots/plotstyle.h"
#include "ui/plots/runglyph.h"
#include "ui/style/fonts.h"
#include "ui/style/theme.h"

#include <algorithm>
#include <array>

#include <qcustomplot.h>

namespace klineage::ui {

/// A sample and its name.
struct ExperimentPlot::LegendEntry {
    QString name;
    QPen pen;
    QBrush brush;
    QCPScatterStyle glyph;
};

namespace {

constexpr int legendIcon = 26;
constexpr int legendSpacing = 14;

/// What QCustomPlot will take for rows that share their columns.
template <typename Entry>
int legendWidth(const std::vector<std::vector<Entry>> &rows)
{
    const QFontMetrics metrics(captionFont());
    std::vector<int> columns;
    for (const std::vector<Entry> &row : rows) {
        columns.resize(std::max(columns.size(), row.size()));
        for (std::size_t i = 0; i < row.size(); ++i)
            columns[i] = std::max(columns[i], metrics.horizontalAdvance(row[i].name));
    }
    int width = 2 * legendSpacing;
    for (const int column : columns)
        width += column + legendIcon + 2 * legendSpacing;
    return width;
}

/// Guides behind the policies.
template <typename Entry>
std::vector<std::vector<Entry>> joined(std::vector<std::vector<Entry>> rows)
{
    rows[0].insert(rows[0].end(), rows[1].begin(), rows[1].end());
    rows.erase(rows.begin() + 1);
    return rows;
}

/// A row of more entries than `most` goes on in the next.
template <typename Entry>
std::vector<std::vector<Entry>> wrapped(const std::vector<std::vector<Entry>> &rows, std::size_t most)
{
    std::vector<std::vector<Entry>> result;
    for (const std::vector<Entry> &row : rows) {
        for (std::size_t i = 0; i < row.size(); ++i) {
            if (i % most == 0)
                result.emplace_back();
            result.back().push_back(row[i]);
        }
    }
    return result;
}

} // namespace

/// How many entries a row has at most; 0: all that belongs together, side by side.
std::size_t ExperimentPlot::legendColumns() const
{
    if (m_shown.empty() || legendWidth(joined(legendRows())) <= m_plot->width())
        return 0;
    const std::vector<LegendRow> rows = legendRows();
    std::size_t most = 1;
    for (const LegendRow &row : rows)
        most = std::max(most, row.size());
    while (most > 1 && legendWidth(wrapped(rows, most)) > m_plot->width())
        --most;
    return most;
}

/// Lines and guides in one row and glyphs below them; where that is too narrow each in its own, or in several.
void ExperimentPlot::buildLegend()
{
    const Theme &theme = Theme::current();
    auto *legend = new QCPLegend;
    m_plot->plotLayout()->addElement(1, 0, legend);
    m_plot->plotLayout()->setRowStretchFactor(1, 0.001);
    m_plot->plotLayout()->setRowSpacing(0);
    legend->setLayer(QStringLiteral("legend"));
    legend->setMargins(QMargins(8, 0, 0, 0));
    legend->setColumnSpacing(legendSpacing);
    legend->setIconSize(legendIcon, 14);
    legend->setBorderPen(Qt::NoPen);
    legend->setBrush(Qt::NoBrush);
    legend->setTextColor(theme.text);
    legend->setFont(captionFont());
    if (m_rects.empty())
        return;
    m_legendColumns = legendColumns();
    std::vector<LegendRow> rows = m_legendColumns == 0 ? joined(legendRows()) : legendRows();
    if (m_isLow)
        rows.resize(1);
    else if (m_legendColumns > 0)
        rows = wrapped(rows, m_legendColumns);
    for (std::size_t row = 0; row < rows.size(); ++row) {
        for (std::size_t column = 0; column < rows[row].size(); ++column) {
            const LegendEntry &entry = rows[row][column];
            QCPGraph *sample = addGlyphs(m_rects.front(), false);
            if (entry.glyph.shape() == QCPScatterStyle::ssNone)
                sample->setLineStyle(QCPGraph::lsLine);
            sample->setScatterStyle(entry.glyph);
            sample->setPen(entry.pen);
            sample->setBrush(entry.brush);
            sample->setName(entry.name);
            legend->addElement(static_cast<int>(row), static_cast<int>(column),
                               new QCPPlottableLegendItem(legend, sample));
        }
    }
}

/// Policies, guides, glyphs.
std::vector<ExperimentPlot::LegendRow> ExperimentPlot::legendRows() const
{
    const Theme &theme = Theme::current();
    const RootCurves &first = m_curves.roots[m_shown.front()];
    std::vector<LegendRow> rows(3);
    for (const PolicyCurve &policy : first.policies)
        rows[0].push_back(
            {policy.policy, QPen(seriesColor(policy.series), 2, seriesDash(policy.series)), {}, {}});
    double load = 0;
    for (const std::size_t shown : m_shown)
        load = std::max(load, m_curves.roots[shown].loadDollars);
    if (m_curves.costs && load > 0)
        rows[1].push_back({tr("reading cards, $%1").arg(load, 0, 'f', 2),
                           Qt::NoPen,
                           blend(theme.text, theme.panel, 0.12),
                           {}});
    if (m_curves.costs && first.capDollars > 0)
        rows[1].push_back(
            {tr("budget $%1").arg(first.capDollars, 0, 'g', 6), QPen(theme.bad, 1, Qt::DashLine), {}, {}});
    const std::array<std::pair<RunTracePoint::Kind, QString>, 4> kinds = {
        std::pair{RunTracePoint::Kind::Valid, tr("valid")},
        std::pair{RunTracePoint::Kind::Audited, tr("audited")},
        std::pair{RunTracePoint::Kind::Wrapper, tr("wrapper")},
        std::pair{RunTracePoint::Kind::Failed, tr("failed")}};
    for (const auto &[kind, name] : kinds)
        rows[2].push_back({name, Qt::NoPen, {}, runGlyph(kind, theme.text)});
    return rows;
}

} // namespace klineage::ui
