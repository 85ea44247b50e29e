// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "tests/paths.h"
#include "tests/patience.h"
#include "tests/ui/common/modal.h"
#include "ui/cards/cardreviewer.h"
#include "ui/graph/lineageview.h"
#include "ui/models/selection.h"
#include "ui/models/workspacemodel.h"
#include "ui/shell/mainwindow.h"

#include <QApplication>
#include <QLabel>
#include <QTemporaryDir>
#include <QTest>

#include <filesystem>
#include <memory>

namespace klineage::ui {

/// The main window on a copy of the workspace that ships, active and settled, and hands for it: keys go to whatever has the focus.
class RealWindow
{
public:
    /// layout: as --layout chooses it, before the window is shown.
    explicit RealWindow(const QString &open = QStringLiteral("gemm/sm90/K05"),
                        const QSize &size = {1600, 1000}, const QString &layout = {})
    {
        CardReviewer::setAuthor(QStringLiteral("Grace Hopper")); // who has no name yet is asked
        const std::filesystem::path root = folder.path().toStdString();
        for (const char *part : {"workloads", "skills"})
            std::filesystem::copy(std::filesystem::path(klineage::test::sourcePath()) / part, root / part,
                                  std::filesystem::copy_options::recursive);
        show(open, size, layout);
    }

    void show(const QString &open, const QSize &size, const QString &layout = {})
    {
        window = std::make_unique<MainWindow>(MainWindow::Furnish::AfterFirstPaint);
        window->resize(size);
        window->applyLayout(layout);
        window->setWanted(open, {});
        window->show();
        window->openWorkspace(folder.path());
        ready = takeKeys(*window) && settle();
    }

    [[nodiscard]] bool settle() const
    {
        const bool settled = QTest::qWaitFor(
            [this] { return window->workspace()->isLoaded() && window->isSettled(); }, patienceMs);
        if (!settled)
            qInfo("not up to date after %d ms: %s", patienceMs,
                  qPrintable(window->unsettled().join(QStringLiteral(", "))));
        return settled;
    }

    /// To what has the focus, as a keyboard does; every key counts.
    void press(Qt::Key key, Qt::KeyboardModifiers modifiers = Qt::NoModifier) const
    {
        ++keys;
        QWidget *focus = QApplication::activePopupWidget();
        if (!focus)
            focus = QApplication::focusWidget();
        QTest::keyClick(focus ? focus : window.get(), key, modifiers);
    }
    void type(const QString &text) const
    {
        keys += static_cast<int>(text.size());
        QTest::keyClicks(QApplication::focusWidget(), text);
    }

    void focus(const char *panel) const { window->panel(QLatin1String(panel))->setFocus(); }
    [[nodiscard]] bool hasFocus(const char *panel) const
    {
        const QWidget *focused = QApplication::focusWidget();
        const QWidget *held = window->panel(QLatin1String(panel));
        return focused && (focused == held || held->isAncestorOf(focused));
    }
    /// A widget of a panel by its class: T, or by object name.
    template <typename T>
    [[nodiscard]] T *find(const char *panel, const QString &name = {}) const
    {
        return window->panel(QLatin1String(panel))->findChild<T *>(name);
    }

    [[nodiscard]] Selection *selection() const { return window->selection(); }
    [[nodiscard]] QString row() const { return window->selection()->row(); }
    [[nodiscard]] QString card() const { return window->selection()->card(); }
    [[nodiscard]] const skills::CardRecord &record(const QString &name) const
    {
        return *window->workspace()->card(name);
    }
    [[nodiscard]] bool written() const
    {
        return QTest::qWaitFor([this] { return !window->reviewer()->isBusy(); }, patienceMs);
    }

    /// What the status bar says, all of it.
    [[nodiscard]] QString said() const
    {
        for (const QLabel *label : window->findChildren<QLabel *>()) {
            if (label->accessibleName() == QLatin1String("Message"))
                return label->toolTip();
        }
        return {};
    }

    QTemporaryDir folder;
    std::unique_ptr<MainWindow> window;
    bool ready = false;
    mutable int keys = 0; ///< pressed so far
};

} // namespace klineage::ui
