// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QString>
#include <QStringList>

#include <vector>

namespace klineage::ui {

/// Docks in one place: the first is shown, the others are tabs behind it.
struct DockStack {
    QStringList docks;
    int share = 1; ///< of the area's length, relative to its neighbours
};

/// A named arrangement of the window. Docks that it does not name are closed.
struct WindowLayout {
    QString id;                    ///< "review": for settings and --layout
    QString name;                  ///< "Review"
    std::vector<DockStack> left;   ///< from top to bottom
    std::vector<DockStack> right;  ///< from top to bottom
    std::vector<DockStack> bottom; ///< from left to right, between left and right
    int leftWidth = 0;             ///< of a window 1600 × 1000; scaled with it
    int rightWidth = 0;
    int bottomHeight = 0;
    QString centre;    ///< id of the centre page
    QString subject{}; ///< id of the panel that has the focus when the layout is chosen; empty: where it is
    double textScale = 1;    ///< on the person's own
    bool cardsFirst = false; ///< in the library
};

/// Review, Curate, Run, Demo, Code.
[[nodiscard]] const std::vector<WindowLayout> &windowLayouts();
/// -1: there is no such layout. Case is ignored.
[[nodiscard]] int findLayout(const QString &id);

} // namespace klineage::ui
