// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QString>

class QAbstractItemView;
class QWidget;

namespace klineage::ui {

/// File dialog filters for what can be made of a panel: pictures of any, CSV and text of one with a table.
[[nodiscard]] QString exportFilters(const QWidget &panel);

/// Writes what a panel shows, by the name's ending: png (at twice the size of the screen), svg, pdf, csv, txt. Empty on success, else a
/// sentence. An existing file is replaced only when the new one is complete.
[[nodiscard]] QString exportPanel(QWidget &panel, const QString &fileName);

/// The table of a panel that is shown, or nullptr; of several the one that had the focus last, else the first.
[[nodiscard]] QAbstractItemView *visibleTable(const QWidget &panel);
/// The same, or the table behind the plot that is shown, brought up to date, or the one that a panel keeps behind its picture (named
/// "behindCanvas").
[[nodiscard]] QAbstractItemView *exportedTable(const QWidget &panel);
/// Header and rows of a view as they are shown, hidden columns left out. RFC 4180: CRLF, quotes doubled.
[[nodiscard]] QString tableAsCsv(const QAbstractItemView &view);
/// The same rows with the texts of the screen, in columns that are as wide as what is in them.
[[nodiscard]] QString tableAsText(const QAbstractItemView &view);

} // namespace klineage::ui
