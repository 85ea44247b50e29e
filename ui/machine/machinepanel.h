// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "ui/machine/codeloader.h"

#include <QWidget>

class QAction;
class QLabel;
class QTableView;
class QTimer;
class QToolButton;

namespace klineage::ui {

class CodeSide;
class MixModel;
class SegmentedSwitch;
class Selection;
class WorkspaceModel;

/// The machine code of both states that the diff shows, older left and newer right: SASS with the samples of its trial, or PTX. Follows
/// Selection while it is seen, and says where somebody goes to; of two sides that have no room beside each other it shows one.
class MachinePanel : public QWidget
{
    Q_OBJECT

public:
    MachinePanel(WorkspaceModel *workspace, Selection *selection, QWidget *parent = nullptr);
    ~MachinePanel() override;

    /// See CodeLoader::setCompiler().
    void setCompiler(std::vector<std::string> command);

    void setForm(CodeForm form);
    [[nodiscard]] CodeForm form() const;
    /// 0: the older state, 1: the newer one.
    [[nodiscard]] CodeSide *side(int side) const { return m_sides[side > 0 ? 1 : 0]; }
    [[nodiscard]] MixModel *mix() const { return m_mix; }
    [[nodiscard]] QString summary() const;

    /// Shown, and no tab behind another.
    [[nodiscard]] bool isSeen() const;
    /// What is wanted has arrived; nothing is wanted while the panel is not seen.
    [[nodiscard]] bool isUpToDate() const;
    [[nodiscard]] bool isCompiling() const;
    /// Ends what is being compiled; the page says so, and offers to go on.
    void stop();

    QSize minimumSizeHint() const override;

public slots:
    /// Marks every instruction of a line of the source, from 1, and brings the first into view. sourceLineChosen() is silent.
    void chooseLine(int side, int line);

signals:
    /// Somebody went to an instruction that comes from this line.
    void sourceLineChosen(int side, int line);
    /// A sentence for the status bar.
    void message(const QString &text);
    void compilingChanged(bool compiling);

protected:
    void paintEvent(QPaintEvent *event) override;
    void resizeEvent(QResizeEvent *event) override;

private:
    void makeCommands();
    QAction *command(const QString &name, const QString &text, const QKeySequence &key,
                     const std::function<void()> &act);
    void layOut();
    void makeRoom();
    void refresh();
    void showNothing(const QString &text);
    void load();
    void catchUp();
    void take(int side, const SideCode &code);
    void finish();
    void setCompiling(bool compiling);
    void updateMix();
    void updateFocus();
    void setActive(int side);
    void goToHottest(int by);
    void copyRows();

    WorkspaceModel *m_workspace;
    Selection *m_selection;
    CodeLoader *m_loader;
    MixModel *m_mix;
    CodeRequests m_wanted;
    bool m_isStale = true; ///< what is wanted has to be asked for, once the panel is seen
    bool m_isCompiling = false;
    std::array<bool, 2> m_pending{}; ///< asked for, and not there yet
    std::array<int, 2> m_lines{};    ///< that were chosen; 0: none
    int m_active = 1;                ///< the side that commands are about
    int m_wantsHottest = 0;          ///< steps to go once there is code
    SegmentedSwitch *m_forms;
    SegmentedSwitch *m_places; ///< which side, where there is room for one
    QLabel *m_summary;
    QString m_summaryText; ///< whole
    QTableView *m_mixTable;
    std::array<CodeSide *, 2> m_sides;
    QWidget *m_sideBorder;
    QTimer *m_busyTimer;
    QAction *m_mixAction = nullptr;
    QList<QToolButton *> m_buttons;
};

} // namespace klineage::ui
