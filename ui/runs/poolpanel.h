// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/pool/gatepool.h"

#include <QAbstractTableModel>
#include <QDialog>

class QLabel;

namespace klineage::ui {

class GateDesk;

/// A row a gate of the pool.
class PoolModel : public QAbstractTableModel
{
    Q_OBJECT

public:
    enum Column { GateColumn, WhereColumn, StateColumn, DeviceColumn, TrialsColumn, LoadColumn, ColumnCount };

    using QAbstractTableModel::QAbstractTableModel;
    void setState(const gate::PoolState &state);

    [[nodiscard]] int rowCount(const QModelIndex &parent = {}) const override;
    [[nodiscard]] int columnCount(const QModelIndex &parent = {}) const override;
    [[nodiscard]] QVariant data(const QModelIndex &index, int role) const override;
    [[nodiscard]] QVariant headerData(int section, Qt::Orientation orientation, int role) const override;

private:
    struct Row {
        QString texts[ColumnCount];
        QString tip;
    };
    std::vector<Row> m_rows;
};

/// The gates of the pool, with what they are doing: beside the window while one works.
class PoolPanel : public QDialog
{
    Q_OBJECT

public:
    explicit PoolPanel(GateDesk *desk, QWidget *parent = nullptr);

private:
    void refresh();
    GateDesk *m_desk;
    PoolModel *m_model;
    QLabel *m_summary;
};

} // namespace klineage::ui
