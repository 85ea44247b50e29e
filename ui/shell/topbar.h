// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QWidget>

class QLabel;
class QMenu;
class QPushButton;
class QToolButton;

namespace klineage::ui {

class SegmentedSwitch;

/// The bar at the top: the name, the workspace with its menu, the layouts, go to anything, and the menu of everything.
class TopBar : public QWidget
{
    Q_OBJECT

public:
    explicit TopBar(QWidget *parent = nullptr);

    [[nodiscard]] QMenu *workspaceMenu() const { return m_workspaceMenu; }
    [[nodiscard]] QMenu *mainMenu() const { return m_mainMenu; }
    [[nodiscard]] SegmentedSwitch *layoutSwitch() const { return m_layouts; }
    void setWorkspaceName(const QString &name, const QString &path);
    /// Whether what is opened cannot be changed; then a button says so and offers a copy.
    void setReadOnly(bool readOnly);
    void setGoToKey(const QString &key);
    void openMainMenu();

signals:
    void layoutChosen(int layout);
    void goToRequested();
    void copyRequested();

protected:
    void resizeEvent(QResizeEvent *event) override;
    void changeEvent(QEvent *event) override;

private:
    void makeRoom();

    QLabel *m_name;
    QString m_workspaceName;
    QToolButton *m_workspace;
    QToolButton *m_readOnly;
    QMenu *m_workspaceMenu;
    QMenu *m_mainMenu;
    SegmentedSwitch *m_layouts;
    QPushButton *m_goTo;
    QToolButton *m_menuButton;
};

} // namespace klineage::ui
