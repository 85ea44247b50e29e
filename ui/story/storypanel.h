// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "ui/story/chain/overlay.h"
#include "ui/story/picture/picture.h"

#include <QList>
#include <QStringList>
#include <QWidget>

#include <functional>
#include <memory>
#include <optional>

class QAction;
class QComboBox;
class QStackedWidget;
class QTableView;
class QToolButton;

namespace klineage::ui {

class CompareWindow;
class PictureCanvas;
class PictureModel;
class Presenter;
class RoundtripReader;
class RunStore;
class SegmentedSwitch;
class Selection;
class TickMenu;
class WorkspaceModel;

/// What a lineage, or a run while it goes on, tells as one picture: the waterfall, the graph with lanes, lineages over each other, speedups
/// and steps beside the published ones, the way back, roundtrips. Follows Selection and the run that is looked at, and moves them. Behind the picture
/// stands the same as a table ("behindCanvas"), which leaves as CSV.
class StoryPanel : public QWidget
{
    Q_OBJECT

public:
    enum class View { Waterfall, Graph, Overlay, Speedups, Trace, Steps, Roundtrip };

    StoryPanel(WorkspaceModel *workspace, Selection *selection, RunStore *runs, QWidget *parent = nullptr);
    ~StoryPanel() override;

    /// Of the views in their order, as commands and the command line call them: "waterfall", "roundtrip".
    [[nodiscard]] static QStringList viewNames();
    void setView(View view);
    [[nodiscard]] View view() const;
    /// The run that is looked at instead of the lineage, where a view can show either.
    void showRun(bool run);
    [[nodiscard]] bool showsRun() const;
    void showTable(bool table);
    [[nodiscard]] bool showsTable() const;
    /// Nothing that the picture shows is still being read.
    [[nodiscard]] bool isUpToDate() const;
    void setOverlayScale(OverlayScale scale);

    [[nodiscard]] PictureCanvas *canvas() const { return m_canvas; }
    [[nodiscard]] PictureModel *model() const { return m_model; }
    [[nodiscard]] QTableView *table() const { return m_table; }

    /// The presentation of the lineage that is selected, on the whole screen.
    void present();
    [[nodiscard]] Presenter *presenter() const { return m_presenter.get(); } ///< null before the first one
    /// Two rows of any lineages beside each other: diff and profile.
    void compare(const QString &leftKey, const QString &leftRow, const QString &rightKey,
                 const QString &rightRow);
    [[nodiscard]] CompareWindow *comparison() const
    {
        return m_comparison.get();
    } ///< null before the first one

    /// Commands that act in the comparison, too. Not owned; before the first comparison.
    void addComparisonCommands(const QList<QAction *> &commands) { m_comparisonCommands << commands; }

    /// Commands whose keys act in the whole window.
    [[nodiscard]] QList<QAction *> commands() const { return m_commands; }

signals:
    void compareRequested(); ///< two states are to be picked
    void rowOpened();        ///< the selected row is to be read
    void message(const QString &text);

protected:
    void showEvent(QShowEvent *event) override;

private:
    QAction *addCommand(const QString &id, const QString &text, const QKeySequence &key,
                        const std::function<void()> &act, bool isWindowWide = false);
    void buildBar();
    void buildCommands();
    void buildSideCommands();
    void fillLineages();
    void followRun();
    void refresh();
    void rebuild();
    void showSelection();
    void readRoundtrips();
    void followTrial(const QString &key, const QString &row);
    void follow(const QString &key, const QString &row);
    void chooseView(View view);
    [[nodiscard]] Picture makePicture() const;
    [[nodiscard]] QStringList overlayKeys() const;
    [[nodiscard]] QString exportName() const;

    WorkspaceModel *m_workspace;
    Selection *m_selection;
    RunStore *m_runs;
    PictureCanvas *m_canvas;
    PictureModel *m_model;
    QTableView *m_table;
    RoundtripReader *m_roundtrips;
    QStackedWidget *m_stack;
    QComboBox *m_views;
    SegmentedSwitch *m_source;
    SegmentedSwitch *m_scale;
    QToolButton *m_lineages;
    TickMenu *m_lineageMenu;
    QToolButton *m_tableButton;
    std::optional<QStringList>
        m_overlay; ///< keys that a person chose; none: those that fit the selected lineage
    std::unique_ptr<Presenter> m_presenter;
    std::unique_ptr<CompareWindow> m_comparison;
    QList<QAction *> m_commands;
    QList<QAction *> m_presenterCommands;
    QList<QAction *> m_comparisonCommands;
    QAction *m_copyCode = nullptr;   ///< of the comparison
    QAction *m_selectCode = nullptr; ///< of the comparison
    QString m_run;                   ///< that the store looked at last
    QString m_goingOn;               ///< that was seen to go on
    QString m_shownKey;              ///< of the picture: what it is of; another one is fitted
    bool m_isStale = true;
    bool m_following = false; ///< the table follows the selection, and must not change it
};

} // namespace klineage::ui
