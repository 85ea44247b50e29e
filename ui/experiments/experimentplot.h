// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "ui/experiments/policycurves.h"

#include <QWidget>

class QCPAxisRect;
class QCPGraph;
class QCPLegend;
class QCustomPlot;
class QLabel;

namespace klineage::ui {

/// Running best against dollars, one plot a root: a thin line a seed, a bold one for the median of a policy's seeds, the budget, and
/// reading cards as a plateau at the root's speed. Failures have no speed and stand in a row of their own below, one a policy.
class ExperimentPlot : public QWidget
{
    Q_OBJECT

public:
    explicit ExperimentPlot(QWidget *parent = nullptr);

    /// root empty: all roots, side by side.
    void show(const ExperimentCurves &curves, const QString &root);
    void setLogarithmic(bool logarithmic);
    /// The run whose line and glyphs stand out; empty: none.
    void setHighlighted(const QString &run);
    void fit();

    [[nodiscard]] QCustomPlot *plot() const { return m_plot; }
    [[nodiscard]] QString caption() const;
    /// How many roots are shown.
    [[nodiscard]] std::size_t rootCount() const { return m_shown.size(); }
    /// Where a step is drawn, in pixels of the plot; nothing for a root that is not shown.
    [[nodiscard]] QPointF pixelOf(std::size_t shownRoot, const PolicyCurve &policy,
                                  const RunTracePoint &point) const;

signals:
    void runClicked(const QString &run);
    void runActivated(const QString &run); ///< double-click

protected:
    void changeEvent(QEvent *event) override;
    void resizeEvent(QResizeEvent *event) override;

private:
    void fitTitles();
    struct Hit {
        const PolicyCurve *policy = nullptr;
        const SeedCurve *seed = nullptr;
        const RunTracePoint *point = nullptr;
    };
    [[nodiscard]] int columnsFor(const QSize &size) const;
    void build();
    struct LegendEntry;
    using LegendRow = std::vector<LegendEntry>;
    void buildLegend();
    [[nodiscard]] std::size_t legendColumns() const;
    [[nodiscard]] std::vector<LegendRow> legendRows() const;
    void addRoot(const RootCurves &root, QCPAxisRect *rect, bool isLowest);
    void addGuides(const RootCurves &root, QCPAxisRect *rect);
    void addSeed(const PolicyCurve &policy, const SeedCurve &seed, QCPAxisRect *rect);
    void addMedian(const PolicyCurve &policy, QCPAxisRect *rect);
    QCPGraph *addGlyphs(QCPAxisRect *rect, bool inStrip);
    void setRanges(const RootCurves &root, QCPAxisRect *rect);
    [[nodiscard]] Hit hitAt(const QPoint &position) const;
    void showCaption(const Hit &hit);

    ExperimentCurves m_curves;
    std::vector<std::size_t> m_shown; ///< indexes of m_curves.roots
    std::vector<QCPAxisRect *> m_rects;
    QString m_highlighted;
    bool m_logarithmic = false;
    int m_columns = 0;
    bool m_isLow = false;
    std::size_t m_legendColumns = 0;
    QCustomPlot *m_plot;
    QLabel *m_caption;
};

} // namespace klineage::ui
