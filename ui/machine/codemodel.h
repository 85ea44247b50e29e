// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "ui/machine/code/machinecode.h"

#include <QAbstractTableModel>

namespace klineage::ui {

/// Machine code as a table that is only read: source line, samples, what is mostly waited for, instruction. Names of kernels and labels
/// are rows too.
class CodeModel : public QAbstractTableModel
{
    Q_OBJECT

public:
    enum Column { LineColumn, SamplesColumn, StallColumn, InstructionColumn, ColumnCount };

    using QAbstractTableModel::QAbstractTableModel;

    void setCode(MachineCodePtr code); ///< null: no rows
    [[nodiscard]] const MachineCodePtr &code() const { return m_code; }
    /// nullptr beyond the end.
    [[nodiscard]] const CodeRow *row(int at) const;

    /// Marks the rows of a source line; 0: none.
    void setMarkedLine(int line);
    [[nodiscard]] int markedLine() const { return m_markedLine; }
    [[nodiscard]] bool isMarked(int at) const;

    int rowCount(const QModelIndex &parent = {}) const override;
    int columnCount(const QModelIndex &parent = {}) const override;
    QVariant data(const QModelIndex &index, int role) const override;
    QVariant headerData(int section, Qt::Orientation orientation, int role) const override;

private:
    [[nodiscard]] QVariant shown(const CodeRow &row, int column) const;
    [[nodiscard]] QString tip(const CodeRow &row) const;

    MachineCodePtr m_code;
    int m_markedLine = 0;
};

} // namespace klineage::ui
