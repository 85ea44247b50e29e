// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QMap>
#include <QObject>

class QTableView;

namespace klineage::ui {

/// Keeps the widths of a table's columns, and the height of its rows, in proportion to the text (ui::textScale()): whoever comes back
/// from a layout with larger text finds each column as it was, also one that was fitted, or dragged, there. Lives as long as the table.
class ColumnScale : public QObject
{
public:
    explicit ColumnScale(QTableView *table);

protected:
    bool eventFilter(QObject *watched, QEvent *event) override;

private:
    void rescale();

    QTableView *m_table;
    QMap<int, double> m_widths; ///< by column, of text as designed
    double m_scale;
};

} // namespace klineage::ui
