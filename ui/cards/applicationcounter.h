// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/run/applications.h"
#include "ui/highlight/jobslot.h"

#include <QObject>

#include <memory>

namespace klineage::ui {

class WorkspaceModel;

/// Counts what came of the cards in the runs of the open workspace, in the background and only when somebody wants to see it. GUI thread.
class ApplicationCounter : public QObject
{
    Q_OBJECT

public:
    /// Not owned; outlives the counter.
    explicit ApplicationCounter(WorkspaceModel *workspace, QObject *parent = nullptr);

    /// Counts anew where runs have gone on since; changed() follows when that came to something else.
    void look();
    /// null until it was counted once for this workspace.
    [[nodiscard]] const run::ApplicationRecord *record() const { return m_record.get(); }
    [[nodiscard]] bool isCounting() const { return m_isCounting; }

signals:
    void changed();

private:
    WorkspaceModel *m_workspace;
    JobSlot m_counting;
    bool m_isCounting = false;
    bool m_areLogsNew = true;
    std::filesystem::path m_root;
    std::string m_stamp;
    std::shared_ptr<const run::ApplicationRecord> m_record;
};

} // namespace klineage::ui
