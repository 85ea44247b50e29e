// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "ui/runs/gatecontroller.h"

#include <QAbstractTableModel>
#include <QDateTime>

#include <optional>
#include <vector>

namespace klineage::ui {

/// The trials started in this session, newest first.
class JobModel : public QAbstractTableModel
{
    Q_OBJECT

public:
    enum Column {
        TimeColumn,
        CandidateColumn,
        LineageColumn,
        VerdictColumn,
        LatencyColumn,
        SpeedupColumn,
        MessageColumn,
        ColumnCount
    };
    enum Role { StatusRole = Qt::UserRole, DetailRole };
    enum class Status { Running, Done, Failed, Stopped };

    struct Entry {
        GateJob job;
        QDateTime started;
        Status status = Status::Running;
        QString doing;                    ///< while it runs: progressWord()
        QString message;                  ///< progress, verdict sentence or error
        std::optional<gate::Trial> trial; ///< once Done
        QString recordedRow;
    };

    /// Follows the controller.
    explicit JobModel(GateController *controller, QObject *parent = nullptr);

    [[nodiscard]] const std::vector<Entry> &entries() const { return m_entries; }
    /// The whole verdict as text: sentence, evidence, hint, log.
    [[nodiscard]] static QString detail(const Entry &entry);

    int rowCount(const QModelIndex &parent = {}) const override;
    int columnCount(const QModelIndex &parent = {}) const override;
    QVariant data(const QModelIndex &index, int role) const override;
    QVariant headerData(int section, Qt::Orientation orientation, int role) const override;

private:
    void update(quint64 id, const std::function<void(Entry &)> &change);

    std::vector<Entry> m_entries;
};

} // namespace klineage::ui
