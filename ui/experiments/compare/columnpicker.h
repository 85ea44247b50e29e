// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "ui/experiments/compare/comparecolumns.h"

#include <QDialog>

class QAction;
class QLineEdit;
class QListWidget;

namespace klineage::ui {

/// Which columns a table shows, and in which order: checked ones, from top to bottom. Rows are dragged, or moved with Alt+Up and Alt+Down;
/// Space checks.
class ColumnPicker : public QDialog
{
    Q_OBJECT

public:
    /// Commands that move the current column; not owned.
    struct Moves {
        QAction *up = nullptr;
        QAction *down = nullptr;
    };
    ColumnPicker(const std::vector<CompareColumn> &columns, const QStringList &shown, const Moves &moves,
                 QWidget *parent = nullptr);

    [[nodiscard]] QStringList chosen() const;

protected:
    bool eventFilter(QObject *watched, QEvent *event) override;

private:
    void fill(const QStringList &shown);
    void filter(const QString &text);
    void move(int by);

    const std::vector<CompareColumn> &m_columns;
    QLineEdit *m_filter;
    QListWidget *m_list;
};

} // namespace klineage::ui
