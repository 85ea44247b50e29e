// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QStringList>
#include <QWidget>

#include <vector>

class QStackedWidget;

namespace klineage::ui {

class Breadcrumb;
class GuideBar;
class LatePanel;
class SegmentedSwitch;
class Selection;
class WelcomePage;
class WorkspaceModel;

/// The middle of the window: breadcrumb and page switch above one of its pages, or what to do while there is no workspace.
class Centre : public QWidget
{
    Q_OBJECT

public:
    struct Page {
        QString id;
        QString title;
        bool followsLineage = true; ///< the breadcrumb stands above it
    };

    Centre(WorkspaceModel *workspace, Selection *selection, const std::vector<Page> &pages,
           QWidget *parent = nullptr);

    /// What a page shows, once; until then it is empty. The widget becomes a child.
    void setPage(const QString &id, QWidget *widget);
    void showPage(const QString &id);
    [[nodiscard]] QString page() const;
    [[nodiscard]] QWidget *pageWidget() const;
    /// Pages come when they are shown. Of those that have not come yet: the one in front, or the next of the others, false after the last.
    void revealFront();
    bool revealNext();
    [[nodiscard]] Breadcrumb *breadcrumb() const { return m_breadcrumb; }

    /// Instead of the pages: what to do while there is nothing to show, or the pages again.
    void showWelcome(bool welcoming);
    [[nodiscard]] bool isWelcoming() const;
    /// Made when it is first asked for.
    [[nodiscard]] WelcomePage *welcome();
    /// Above the pages, hidden at first.
    [[nodiscard]] GuideBar *guide() const { return m_guide; }

    /// No page, seen or not, takes the docks their height in a low window.
    [[nodiscard]] QSize minimumSizeHint() const override;

protected:
    void paintEvent(QPaintEvent *event) override;

private:
    QStringList m_ids;
    QStringList m_lineageIds; ///< of the pages with the breadcrumb
    Breadcrumb *m_breadcrumb;
    SegmentedSwitch *m_switch;
    std::vector<LatePanel *> m_late; ///< what the two stacks have as pages
    QStackedWidget *m_pages;
    QStackedWidget *m_whole; ///< pages with their bar, or the welcome
    WelcomePage *m_welcome = nullptr;
    GuideBar *m_guide;
    bool m_hasFocusWithin = false; ///< the frame is painted in the accent colour then
};

} // namespace klineage::ui
