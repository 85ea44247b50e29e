// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "ui/diff/view/geometry.h"
#include "ui/diff/view/viewstate.h"

#include <QWidget>

class QScrollBar;

namespace klineage::ui {

/// All changes of the document at a glance, beside the text, in place of a scroll bar: a click or drag goes there.
class OverviewStrip : public QWidget
{
    Q_OBJECT

public:
    OverviewStrip(const ViewState &state, const ViewGeometry &geometry, QScrollBar *scrollBar,
                  QWidget *parent);

    void setPalette(const CodePalette &palette);
    void documentChanged(); ///< also when rows were folded or opened
    [[nodiscard]] QSize sizeHint() const override { return {stripWidth, 100}; }

    static constexpr int stripWidth = 16;

protected:
    void paintEvent(QPaintEvent *event) override;
    void mousePressEvent(QMouseEvent *event) override;
    void mouseMoveEvent(QMouseEvent *event) override;

private:
    struct Mark {
        int firstRow = 0; ///< of the view
        int rowCount = 0;
        bool left = false;
        bool right = false;
        bool moved = false;
    };

    [[nodiscard]] double yOf(int row) const;
    void scrollTo(int y);

    const ViewState &m_state;
    const ViewGeometry &m_geometry;
    QScrollBar *m_scrollBar;
    CodePalette m_palette;
    std::vector<Mark> m_marks;
};

} // namespace klineage::ui
