// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QAbstractTableModel>

namespace klineage::ui {

class ActionRegistry;

/// The commands of a registry as a table: command, key, where it acts.
class KeyModel : public QAbstractTableModel
{
    Q_OBJECT

public:
    enum Column { CommandColumn, KeyColumn, ScopeColumn, ColumnCount };
    enum Role { IdRole = Qt::UserRole, SearchRole };

    explicit KeyModel(ActionRegistry *registry, QObject *parent = nullptr);

    int rowCount(const QModelIndex &parent = {}) const override;
    int columnCount(const QModelIndex &parent = {}) const override;
    QVariant data(const QModelIndex &index, int role) const override;
    QVariant headerData(int section, Qt::Orientation orientation, int role) const override;

private:
    struct Row {
        QString id;
        QString command;
        QString key;
        QString scope;
        bool isChanged = false;
    };
    [[nodiscard]] std::vector<Row> makeRows() const;
    void refresh();

    ActionRegistry *m_registry;
    std::vector<Row> m_rows;
};

} // namespace klineage::ui
