// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "ui/machine/code/machinecode.h"

#include <QAbstractTableModel>

#include <optional>

namespace klineage::ui {

/// How many instructions of each class both sides have, and the difference. Classes that neither has are left out. A static count: it
/// does not know how often an instruction runs.
class MixModel : public QAbstractTableModel
{
    Q_OBJECT

public:
    enum Column { ClassColumn, ExamplesColumn, LeftColumn, RightColumn, ChangeColumn, ColumnCount };

    using QAbstractTableModel::QAbstractTableModel;

    /// A side without code is null: its counts are not known, which is not zero.
    void setSides(const MachineCode *left, const QString &leftName, const MachineCode *right,
                  const QString &rightName);
    /// The classes by the size of their difference, in one line; of one side alone by their number. Empty when nothing is known.
    [[nodiscard]] QString inOneLine() const;

    int rowCount(const QModelIndex &parent = {}) const override;
    int columnCount(const QModelIndex &parent = {}) const override;
    QVariant data(const QModelIndex &index, int role) const override;
    QVariant headerData(int section, Qt::Orientation orientation, int role) const override;

private:
    struct Row {
        std::size_t opcode = 0; ///< an OpcodeClass
        std::optional<qint64> left;
        std::optional<qint64> right;

        [[nodiscard]] std::optional<qint64> change() const;
    };
    [[nodiscard]] static std::optional<qint64> number(const Row &row, int column);

    std::vector<Row> m_rows;
    QString m_leftName;
    QString m_rightName;
};

} // namespace klineage::ui
