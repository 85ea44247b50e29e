// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "ui/models/lineagerow.h"

#include <QAbstractTableModel>

namespace klineage::ui {

/// The rows of one lineage. Holds texts only: it stays valid when the workspace changes, until refresh() is called with the new
/// lineage. A refresh of the same lineage inserts and removes rows and never resets, so a view keeps its selection.
class LineageModel : public QAbstractTableModel
{
    Q_OBJECT

public:
    enum Column {
        StepColumn,
        GateColumn,
        LatencyColumn,
        ChangeColumn,
        BaselineColumn,
        ReferenceColumn,
        ColumnCount
    };
    enum Role {
        IdRole = Qt::UserRole, ///< Selection row id
        NumberRole,            ///< double behind the text: nanoseconds, speedups
    };

    using QAbstractTableModel::QAbstractTableModel;

    /// nullptr clears. An unknown or empty baseline means K0.
    void refresh(const lineage::Lineage *lineage, const QString &baseline, Direction direction);

    [[nodiscard]] const std::vector<LineageRow> &rows() const { return m_rows.rows; }
    [[nodiscard]] const LineageRow &row(int row) const { return m_rows.rows[static_cast<std::size_t>(row)]; }
    [[nodiscard]] int rowOf(const QString &id) const; ///< -1: not there
    /// The next state of the main line in reading order; step is +1 (down) or -1. Empty at the ends.
    [[nodiscard]] QString neighbourState(const QString &id, int step) const;
    [[nodiscard]] QString baseline() const { return m_rows.baseline; }
    [[nodiscard]] QString reference() const { return m_rows.reference; }

    int rowCount(const QModelIndex &parent = {}) const override;
    int columnCount(const QModelIndex &parent = {}) const override;
    QVariant data(const QModelIndex &index, int role) const override;
    QVariant headerData(int section, Qt::Orientation orientation, int role) const override;

private:
    [[nodiscard]] QVariant text(const LineageRow &row, int column) const;
    [[nodiscard]] QVariant number(const LineageRow &row, int column) const;
    void merge(std::vector<LineageRow> rows);

    QString m_key;
    Direction m_direction = Direction::Backward;
    LineageRows m_rows;
};

} // namespace klineage::ui
