// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/cards/applicationcounter.h"

#include "ui/models/workspacemodel.h"

#include <utility>

namespace klineage::ui {

ApplicationCounter::ApplicationCounter(WorkspaceModel *workspace, QObject *parent)
    : QObject(parent)
    , m_workspace(workspace)
{
    const auto logsMayDiffer = [this] { m_areLogsNew = true; };
    connect(workspace, &WorkspaceModel::loaded, this, logsMayDiffer);
    connect(workspace, &WorkspaceModel::cardChanged, this, logsMayDiffer);
}

void ApplicationCounter::look()
{
    const Workspace &workspace = m_workspace->workspace();
    const bool isElsewhere = m_root != workspace.root;
    if (m_isCounting && !isElsewhere && !m_areLogsNew)
        return;
    if (isElsewhere)
        m_record.reset();
    m_root = workspace.root;
    m_isCounting = true;
    const bool areLogsNew = std::exchange(m_areLogsNew, false) || !m_record;
    m_counting.start(backgroundPool(), [this, root = workspace.root, areLogsNew, stamp = m_stamp,
                                        logs = run::verificationLogs(workspace.cards)](
                                           const std::stop_token &stop, const JobSlot::Post &post) {
        std::string now = run::applicationsStamp(root);
        std::shared_ptr<const run::ApplicationRecord> record;
        if (areLogsNew || now != stamp)
            record = std::make_shared<run::ApplicationRecord>(run::readApplications(root, logs, stop));
        if (stop.stop_requested())
            return;
        post([this, now = std::move(now), record = std::move(record)] {
            m_isCounting = false;
            if (!record)
                return;
            m_stamp = now;
            m_record = record;
            emit changed();
        });
    });
}

} // namespace klineage::ui
