// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QStyledItemDelegate>

namespace klineage::ui {

class LineageModel;
class LineageView;
class Viewed;

/// Paints a cell of the lineage: graph, id and title in the first column, stage glyphs, and right-aligned numbers.
class LineageDelegate : public QStyledItemDelegate
{
    Q_OBJECT

public:
    LineageDelegate(const LineageModel *model, LineageView *view);

    void paint(QPainter *painter, const QStyleOptionViewItem &option,
               const QModelIndex &index) const override;

    /// Where the titles start: one place for all rows, and for the header's word above them.
    [[nodiscard]] int titleLeft() const { return m_titleLeft; }
    /// What the mark of a disturbed time takes beside the number; 0 where no row has it.
    [[nodiscard]] int markWidth() const;
    /// To be called when labels or fonts have changed.
    void setViewed(const Viewed *viewed) { m_viewed = viewed; }
    void measure();

private:
    void paintStep(QPainter *painter, const QStyleOptionViewItem &option, const QModelIndex &index) const;
    void paintNumber(QPainter *painter, const QStyleOptionViewItem &option, const QModelIndex &index) const;

    const LineageModel *m_model;
    LineageView *m_view;
    const Viewed *m_viewed = nullptr;
    int m_titleLeft = 0;
};

} // namespace klineage::ui
