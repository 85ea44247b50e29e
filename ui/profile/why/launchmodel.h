// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/trial/analysis/launch/launchrows.h"

#include <QAbstractTableModel>
#include <QString>

#include <vector>

namespace klineage::ui {

/// The launches of both sides of a step as a table: figure, left, right, and a mark where they differ. With several kernels, each
/// begins with a row of its own.
class LaunchModel : public QAbstractTableModel
{
    Q_OBJECT

public:
    enum Column { FigureColumn, LeftColumn, RightColumn, MarkColumn, ColumnCount };

    using QAbstractTableModel::QAbstractTableModel;

    void setSides(const std::vector<gate::LaunchNumbers> &left, const QString &leftName,
                  const std::vector<gate::LaunchNumbers> &right, const QString &rightName);

    int rowCount(const QModelIndex &parent = {}) const override;
    int columnCount(const QModelIndex &parent = {}) const override;
    QVariant data(const QModelIndex &index, int role) const override;
    QVariant headerData(int section, Qt::Orientation orientation, int role) const override;

private:
    struct Line {
        QString label;
        QString left;
        QString right;
        QVariant leftValue;
        QVariant rightValue;
        bool differs = false;
        bool isHeading = false;
    };

    std::vector<Line> m_lines; ///< texts made once, so that data() computes nothing
    QString m_leftName;
    QString m_rightName;
};

} // namespace klineage::ui
