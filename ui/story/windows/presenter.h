// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "ui/story/chain/chain.h"

#include <QWidget>

class QLabel;

namespace klineage::ui {

class PictureCanvas;
class Selection;
class WorkspaceModel;

/// A lineage on the whole screen, in large type: a page for each state, on which the waterfall goes as far as that, and one for all of it.
/// The selection of the window goes along. A window of its own; who owns it gives it the keys.
class Presenter : public QWidget
{
    Q_OBJECT

public:
    Presenter(WorkspaceModel *workspace, Selection *selection);

    /// From the state that is selected, on the screen where the window is.
    void begin();
    void turn(int by);                                ///< pages; stops at the ends
    [[nodiscard]] int page() const { return m_page; } ///< 0 is the first state; the last page is all of it
    [[nodiscard]] int pageCount() const { return static_cast<int>(m_chain.points.size()) + 1; }
    [[nodiscard]] QString heading() const;
    [[nodiscard]] PictureCanvas *canvas() const { return m_canvas; }

protected:
    void paintEvent(QPaintEvent *event) override;
    void resizeEvent(QResizeEvent *event) override;
    void changeEvent(QEvent *event) override;
    void mousePressEvent(QMouseEvent *event) override;

private:
    void read();
    void showPage();
    void showState(const ChainPoint &point);
    void showAll();
    void scaleText();

    WorkspaceModel *m_workspace;
    Selection *m_selection;
    Chain m_chain;
    QString m_title; ///< of the workload
    int m_page = 0;
    QLabel *m_subject;
    QLabel *m_heading;
    QLabel *m_gain;
    QLabel *m_words;
    QLabel *m_foot;
    PictureCanvas *m_canvas;
};

} // namespace klineage::ui
