// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "ui/models/lineagerow.h"

#include <QWidget>

class QAction;
class QLabel;
class QMenu;
class QStackedWidget;
class QToolButton;

namespace klineage::ui {

class LineageModel;
class LineageView;
class SegmentedSwitch;
class Selection;
class WorkspaceModel;

/// The selected lineage, row by row. Its actions have object names ("lineage.nextStep"), under which the window lists and remaps
/// their keys. The widget named "titleBarCorner" may be moved into the title bar of whatever holds the panel.
class LineagePanel : public QWidget
{
    Q_OBJECT

public:
    LineagePanel(WorkspaceModel *workspace, Selection *selection, QWidget *parent = nullptr);

    [[nodiscard]] LineageModel *model() const { return m_model; }
    [[nodiscard]] LineageView *view() const { return m_view; }
    [[nodiscard]] QMenu *contextMenu() const { return m_menu; } ///< of a row; others may add to it
    [[nodiscard]] Direction direction() const { return m_direction; }
    void setDirection(Direction direction);

    /// Selects the next (+1) or previous (-1) state in reading order; nothing happens at the ends.
    void step(int by);
    /// Pins the current state as the baseline of all panels; on the pinned one it takes the pin away.
    void toggleBaseline();

signals:
    void directionChanged(klineage::ui::Direction direction);
    void openInEditorRequested(const QString &lineageKey, const QString &row);

private:
    void buildCorner();
    void buildActions();
    QAction *addPanelAction(const QString &name, const QString &text, const QKeySequence &key,
                            bool windowWide, void (LineagePanel::*slot)());
    void refresh();
    void showRow();
    void showBaseline();
    void nextStep() { step(1); }
    void previousStep() { step(-1); }
    void openInEditor();
    void copyId();
    void revealFile();
    [[nodiscard]] const LineageRow *currentRow() const;

    WorkspaceModel *m_workspace;
    Selection *m_selection;
    LineageModel *m_model;
    LineageView *m_view;
    QStackedWidget *m_stack;
    QLabel *m_empty;
    SegmentedSwitch *m_directionSwitch;
    QToolButton *m_baselineChip;
    QMenu *m_menu;
    Direction m_direction = Direction::Backward;
    bool m_following = false; ///< the view follows the selection, and must not change it
};

} // namespace klineage::ui
