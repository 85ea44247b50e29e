// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QTreeView>

namespace klineage::ui {

/// A tree whose rows have the window's own selection, hover and branch marks over their whole width.
class LibraryTree : public QTreeView
{
    Q_OBJECT

public:
    explicit LibraryTree(QWidget *parent = nullptr);

    /// Letters are commands here, not a search.
    void keyboardSearch(const QString &) override {}
    /// The cards that are shown, and nothing else.
    void selectAll() override;
    /// The current row is in the selection or is not, and the next one becomes current; the rest of the selection stays.
    void goOn(bool select);
    /// Of a layout that the view has put off. It would be made within a paint, which is then asked for once more.
    void layOutNow() { executeDelayedItemsLayout(); }

protected:
    void drawRow(QPainter *painter, const QStyleOptionViewItem &option,
                 const QModelIndex &index) const override;
    void drawBranches(QPainter *painter, const QRect &rect, const QModelIndex &index) const override;
    void mouseReleaseEvent(QMouseEvent *event) override;
};

} // namespace klineage::ui
