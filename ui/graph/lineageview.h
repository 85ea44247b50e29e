// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QTableView>

namespace klineage::ui {

class CurrentRowKeeper;
class LineageDelegate;
class LineageModel;
class Viewed;

/// The lineage's graph and table in one: node and row are one line. Columns give way to the title when it is narrow: first the
/// stage glyphs, then the speedup to the baseline.
class LineageView : public QTableView
{
    Q_OBJECT

public:
    explicit LineageView(LineageModel *model, QWidget *parent = nullptr);

    /// The row under the mouse, or the one that another panel points at; -1: none.
    [[nodiscard]] int litRow() const { return m_litRow; }
    void setLitRow(int row);
    [[nodiscard]] bool baselineIsPinned() const { return m_baselineIsPinned; }
    void setBaselinePinned(bool pinned);

    /// Marks what was viewed. Not owned; outlives the view.
    void setViewed(const Viewed *viewed);
    /// Letters are commands here, not a search.
    void keyboardSearch(const QString &) override {}
    void scrollTo(const QModelIndex &index, ScrollHint hint = EnsureVisible) override;

signals:
    void rowHovered(int row); ///< -1: the mouse has left

protected:
    void resizeEvent(QResizeEvent *event) override;
    void mouseMoveEvent(QMouseEvent *event) override;
    void leaveEvent(QEvent *event) override;
    void changeEvent(QEvent *event) override;

private:
    void arrange();
    void spanFailures();
    [[nodiscard]] int contentWidth(int column) const;
    [[nodiscard]] int referenceWidth() const;

    LineageModel *m_model;
    LineageDelegate *m_delegate;
    CurrentRowKeeper *m_keeper;
    int m_litRow = -1;
    bool m_baselineIsPinned = false;
};

} // namespace klineage::ui
