// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QWidget>

class QTableView;

namespace klineage::ui {

class NumbersModel;

/// A picture with its numbers beside it, as far as there is room: the picture leaves the window without them, they leave it as CSV.
class NumberedPicture : public QWidget
{
    Q_OBJECT

public:
    /// Takes the picture, which has the focus.
    explicit NumberedPicture(QWidget *picture, QWidget *parent = nullptr);

    [[nodiscard]] NumbersModel *numbers() const { return m_numbers; }
    [[nodiscard]] QTableView *table() const { return m_table; }
    void fitColumns();

protected:
    void resizeEvent(QResizeEvent *event) override;

private:
    NumbersModel *m_numbers;
    QTableView *m_table;
};

} // namespace klineage::ui
