// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "ui/profile/profiledelta.h"

#include <QAbstractTableModel>

#include <vector>

namespace klineage::ui {

/// The metrics of a step as a table: metric, left, right, change, bar.
class ProfileModel : public QAbstractTableModel
{
    Q_OBJECT

public:
    enum Column { MetricColumn, LeftColumn, RightColumn, ChangeColumn, BarColumn, ColumnCount };
    enum Role {
        DirectionRole = Qt::UserRole, ///< int, -1 0 +1
        BarRole,                      ///< double 0…1: the impact of the change
        NumberRole,                   ///< double, for sorting and export
    };

    using QAbstractTableModel::QAbstractTableModel;

    void setSides(const gate::Trial *left, const QString &leftName, const gate::Trial *right,
                  const QString &rightName, const gate::Comparison *paired = nullptr);
    [[nodiscard]] const std::vector<ProfileRow> &rows() const { return m_rows; }
    /// There is no room for the left column, or for both: the header says where their figures are.
    void setHidden(bool left, bool right);
    /// Without changes the right column is all there is.
    [[nodiscard]] bool hasChanges() const { return m_hasLeft; }

    int rowCount(const QModelIndex &parent = {}) const override;
    int columnCount(const QModelIndex &parent = {}) const override;
    QVariant data(const QModelIndex &index, int role) const override;
    QVariant headerData(int section, Qt::Orientation orientation, int role) const override;

private:
    struct Texts {
        QString left;
        QString right;
        QString change;
        QString tip;
        double bar = 0;
    };

    std::vector<ProfileRow> m_rows;
    std::vector<Texts> m_texts; ///< made once, so that data() computes nothing
    QString m_leftName;
    QString m_rightName;
    bool m_hasLeft = false; ///< figures
    bool m_isLeftHidden = false;
    bool m_isRightHidden = false;
};

} // namespace klineage::ui
