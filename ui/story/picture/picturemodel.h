// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "ui/story/picture/picture.h"

#include <QAbstractTableModel>

namespace klineage::ui {

/// The table that stands behind a picture. Numbers have all of their digits in Qt::EditRole.
class PictureModel : public QAbstractTableModel
{
    Q_OBJECT

public:
    enum Role {
        ItemRole = Qt::UserRole, ///< int: the picture's item; -1: none
    };

    using QAbstractTableModel::QAbstractTableModel;

    /// Rows that only came at the end are inserted there; anything else resets.
    void setTable(PictureTable table);
    [[nodiscard]] int rowOf(int item) const; ///< -1: there is none

    int rowCount(const QModelIndex &parent = {}) const override;
    int columnCount(const QModelIndex &parent = {}) const override;
    QVariant data(const QModelIndex &index, int role) const override;
    QVariant headerData(int section, Qt::Orientation orientation, int role) const override;

private:
    PictureTable m_table;
};

} // namespace klineage::ui
