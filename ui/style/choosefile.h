// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QString>

class QWidget;

namespace klineage::ui {

// All files and folders that a person chooses are chosen here: with the desktop's own dialog, through its portal where there is one (main.cpp),
// else with Qt's. Each returns an absolute name, empty when it was called off.

/// Proposes `name` in the folder and with the ending of the last time, so that Enter is enough; choosing another kind of `filters` changes the
/// ending, a typed ending stays. An existing file is asked about. `name` has no ending.
[[nodiscard]] QString chooseFileToSave(QWidget *parent, const QString &title, const QString &name,
                                       const QString &filters);
/// An existing file; `start` is the folder to begin in, empty: the current one.
[[nodiscard]] QString chooseFileToOpen(QWidget *parent, const QString &title, const QString &start,
                                       const QString &filters);
/// An existing folder.
[[nodiscard]] QString chooseFolder(QWidget *parent, const QString &title, const QString &start);

/// Sets the platform theme to the one that asks the desktop's portal, unless somebody has set another, or the desktop has no portal (no
/// session bus, no service of that name), or Qt has no such theme. Before the application object is made.
void preferPortal();

} // namespace klineage::ui
