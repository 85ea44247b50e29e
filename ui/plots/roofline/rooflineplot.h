// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/trial/analysis/explain/rooflinepath.h"

#include <QRectF>
#include <QString>
#include <QWidget>

#include <optional>
#include <vector>

class QCPCurve;
class QCPGraph;
class QCPItemLine;
class QCPItemText;
class QCustomPlot;

namespace klineage::ui {

class FigureStack;

/// What is drawn of a chain of states under the device's ceilings.
struct RooflineView {
    gate::RooflinePath path;
    std::size_t length = 0; ///< points on the path; those after it are the lineage's other states
    QString selected;       ///< id of a point; empty: none
};

/// Operations a byte against operations a second, both logarithmic: the ceilings, each with its source, and the states as a path. Hovering
/// and clicking a point name it. F fits the plot, T shows the same as a table.
class RooflinePlot : public QWidget
{
    Q_OBJECT

public:
    explicit RooflinePlot(QWidget *parent = nullptr);

    void setView(const RooflineView &view);
    void setHovered(const QString &id); ///< ringed, and told in the caption
    [[nodiscard]] QCustomPlot *plot() const { return m_plot; }
    /// Id of the point nearest to a position of the plot; empty when none is within 12 px.
    [[nodiscard]] QString pointAt(const QPoint &position) const;
    /// Where the names of the points stand at present, in pixels of the plot; empty ones have no room.
    [[nodiscard]] const std::vector<std::optional<QRectF>> &namePlaces() const { return m_places; }
    [[nodiscard]] QString caption() const;

signals:
    void hovered(const QString &id); ///< empty: none
    void chosen(const QString &id);

protected:
    void changeEvent(QEvent *event) override;
    void leaveEvent(QEvent *event) override;

private:
    struct Ceiling {
        QCPGraph *line = nullptr;
        QCPItemText *name = nullptr;
        QString whole; ///< with its source; `brief` where there is no room for it
        QString brief;
        double bandwidth = 0; ///< 0: a level
    };
    struct Name {
        QCPItemText *text = nullptr;
        QCPItemLine *leader = nullptr;
    };

    void draw();
    void fit();
    void drawCeilings();
    void addCeiling(const gate::RooflineCeiling &ceiling, double fromX, double toX, std::size_t series);
    void drawPoints();
    void placeTexts();
    void placeCeilingNames(std::vector<QRectF> &taken);
    void markPoints();
    [[nodiscard]] const gate::RooflinePoint *find(const QString &id) const;
    [[nodiscard]] QString inWords(const gate::RooflinePoint &point) const;
    [[nodiscard]] QString inWords() const;

    RooflineView m_view;
    QString m_hovered;
    FigureStack *m_stack = nullptr;
    QCustomPlot *m_plot;
    QCPCurve *m_path = nullptr;
    QCPGraph *m_current = nullptr;
    QCPGraph *m_pointed = nullptr;
    QCPItemText *m_caption = nullptr;
    QCPItemText *m_notice = nullptr;
    std::vector<Ceiling> m_ceilings;
    std::vector<Name> m_names;
    std::vector<std::optional<QRectF>> m_places;
};

} // namespace klineage::ui
