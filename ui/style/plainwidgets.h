// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QLabel>
#include <QString>

class QAbstractItemModel;
class QHeaderView;
class QPushButton;
class QTableView;

namespace klineage::ui {

/// A table of rows to be read and chosen, one at a time: no grid, no frame, no editing; Tab leaves it. Columns
/// keep their width in proportion to the text.
[[nodiscard]] QTableView *makePlainTable(QAbstractItemModel *model, const QString &name);

/// The names of columns: smaller than what is in them, and the same whichever cell is current.
void makePlainHeader(QHeaderView *header);

/// What stands in the middle of a panel that has nothing else to show.
[[nodiscard]] QLabel *makeMessageLabel(const QString &text = {});

/// A page with a text in its middle and below it a button that mends what the text tells; takes both.
[[nodiscard]] QWidget *makeMessagePage(QLabel *text, QPushButton *button);

/// A line that takes the room there is, and ends in "…" where that is too little; the whole text is its tool tip and its accessible text.
class ElidedLabel : public QLabel
{
public:
    explicit ElidedLabel(QWidget *parent = nullptr);

    void setWhole(const QString &text);

protected:
    void resizeEvent(QResizeEvent *event) override;
    void changeEvent(QEvent *event) override;

private:
    void fit();

    QString m_whole;
};

} // namespace klineage::ui
