// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "ui/begin/importrunner.h"

#include <QAbstractTableModel>

namespace klineage::ui {

/// What an import did, or would do, a row each.
class ImportModel : public QAbstractTableModel
{
    Q_OBJECT

public:
    enum Column { StateColumn, NameColumn, SourceColumn, WhyColumn, ColumnCount };

    using QAbstractTableModel::QAbstractTableModel;
    void setReport(const ImportReport &report, bool isTrial);
    [[nodiscard]] const ImportReport &report() const { return m_report; }
    int rowCount(const QModelIndex &parent = {}) const override;
    int columnCount(const QModelIndex &parent = {}) const override;
    QVariant data(const QModelIndex &index, int role) const override;
    QVariant headerData(int section, Qt::Orientation orientation, int role) const override;

private:
    ImportReport m_report;
    bool m_isTrial = false; ///< nothing was written
};

} // namespace klineage::ui
