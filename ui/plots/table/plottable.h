// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QAbstractTableModel>
#include <QString>
#include <QVariant>

#include <vector>

namespace klineage::ui {

/// What a picture shows, as numbers: its table view, its CSV and what assistive technology reads are made from this alone.
struct PlotTable {
    struct Column {
        QString title; ///< "Speedup over cublas"
        QString
            plain; ///< what it is called in a file, with its unit: "speedup", "latency_ns"; empty: the title
        bool isFigure = true;
    };
    struct Cell {
        QString text;   ///< as it is read
        QVariant value; ///< the number behind it, with all of its digits; invalid: the text is all there is

        Cell() = default;   ///< there is none: "–" on the screen, nothing in a file
        Cell(QString shown) // NOLINT(google-explicit-constructor): rows are lists of these
            : text(std::move(shown))
        {}
        Cell(double number, QString shown)
            : text(std::move(shown))
            , value(number)
        {}
    };
    struct Row {
        QString id; ///< of what it stands for, as the panel selects it; empty: nothing that can be selected
        std::vector<Cell> cells;
    };

    /// "1.48×"; none where it was not measured (0).
    [[nodiscard]] static Cell speedup(double value);

    std::vector<Column> columns;
    std::vector<Row> rows; ///< as many cells as columns
};

/// A PlotTable for views. Qt::EditRole has numbers, and in the header the plain names.
class PlotTableModel : public QAbstractTableModel
{
    Q_OBJECT

public:
    enum Role { IdRole = Qt::UserRole };

    using QAbstractTableModel::QAbstractTableModel;

    void setTable(PlotTable table);
    [[nodiscard]] const PlotTable &table() const { return m_table; }
    [[nodiscard]] int rowOf(const QString &id) const; ///< the first one; -1: none

    int rowCount(const QModelIndex &parent = {}) const override;
    int columnCount(const QModelIndex &parent = {}) const override;
    QVariant data(const QModelIndex &index, int role) const override;
    QVariant headerData(int section, Qt::Orientation orientation, int role) const override;

private:
    PlotTable m_table;
};

} // namespace klineage::ui
