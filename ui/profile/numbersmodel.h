// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QAbstractTableModel>
#include <QString>
#include <QVariant>

#include <vector>

namespace klineage::ui {

/// The numbers behind a picture as a table: what is shown and, for files, the plain values with all of their digits (EditRole).
class NumbersModel : public QAbstractTableModel
{
    Q_OBJECT

public:
    struct Column {
        QString title; ///< "candidate, µs"
        QString plain; ///< in a file: "candidate_ns"
    };
    struct Cell {
        QString text; ///< empty: there is no such number
        QVariant value;
    };
    using Row = std::vector<Cell>;

    using QAbstractTableModel::QAbstractTableModel;

    void setNumbers(std::vector<Column> columns, std::vector<Row> rows);

    int rowCount(const QModelIndex &parent = {}) const override;
    int columnCount(const QModelIndex &parent = {}) const override;
    QVariant data(const QModelIndex &index, int role) const override;
    QVariant headerData(int section, Qt::Orientation orientation, int role) const override;

private:
    std::vector<Column> m_columns;
    std::vector<Row> m_rows; ///< each as long as m_columns, or shorter
};

} // namespace klineage::ui
