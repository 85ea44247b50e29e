// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QStyledItemDelegate>

namespace klineage::ui {

class LineageModel;
class LineageView;

/// Paints a cell of the lineage: graph, id and title in the first column, stage glyphs, and right-aligned numbers.
class LineageDelegate : public QStyledItemDelegate
{
    Q_OBJECT

public:
    LineageDelegate(const LineageModel *model, LineageView *view);

    void paint(QPainter *painter, const QStyleOptionViewItem &option,
               const QModelIndex &index) const override;

    /// Where the title starts, so that the header's word stands above it.
    [[nodiscard]] int titleLeft() const;

private:
    void paintStep(QPainter *painter, const QStyleOptionViewItem &option, const QModelIndex &index) const;
    void paintNumber(QPainter *painter, const QStyleOptionViewItem &option, const QModelIndex &index) const;

    const LineageModel *m_model;
    LineageView *m_view;
};

} // namespace klineage::ui
