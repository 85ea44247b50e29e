// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "ui/models/lineagerow.h"

#include <QWidget>

#include <vector>

namespace klineage::ui {

class Selection;
class WorkspaceModel;

/// K* › … › K0 with the selected step in the middle of what fits; a click goes to a state.
class Breadcrumb : public QWidget
{
    Q_OBJECT

public:
    Breadcrumb(WorkspaceModel *workspace, Selection *selection, QWidget *parent = nullptr);

    void setDirection(Direction direction);

    /// What is drawn, from left to right.
    struct Item {
        QString id;     ///< empty: "…"
        QString label;  ///< "K*", "K03"
        QString detail; ///< behind the current one: its title, or the attempt that is looked at
        bool isCurrent = false;
        QRect rect;
    };
    [[nodiscard]] const std::vector<Item> &items() const { return m_items; }
    QSize sizeHint() const override;
    QSize minimumSizeHint() const override;

protected:
    void paintEvent(QPaintEvent *event) override;
    void resizeEvent(QResizeEvent *event) override;
    void mousePressEvent(QMouseEvent *event) override;
    void mouseMoveEvent(QMouseEvent *event) override;
    void leaveEvent(QEvent *event) override;
    void changeEvent(QEvent *event) override;

private:
    void refresh();
    void arrange();
    [[nodiscard]] int widthOf(const Item &item) const;

    WorkspaceModel *m_workspace;
    Selection *m_selection;
    Direction m_direction = Direction::Backward;
    std::vector<Item> m_all;
    std::vector<Item> m_items; ///< of m_all what fits
    QString m_hovered;
};

} // namespace klineage::ui
