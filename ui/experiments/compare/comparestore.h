// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "ui/experiments/compare/comparedrun.h"
#include "ui/highlight/jobslot.h"
#include "ui/models/growthwatcher.h"

#include <QObject>

namespace klineage::ui {

class RunStore;

/// The recorded runs of the open workspace, its own and those of its experiments. Reads on a worker thread, from when it is first asked to,
/// and then follows the folders while runs grow, whoever runs them. Lives on the GUI thread.
class CompareStore : public QObject
{
    Q_OBJECT

public:
    /// The workspace's own runs are those of the store, which is not owned and outlives this.
    explicit CompareStore(RunStore *store, QObject *parent = nullptr);
    ~CompareStore() override;

    [[nodiscard]] const std::vector<ComparedRun> &runs() const { return m_runs; }
    [[nodiscard]] bool isReading() const { return m_reading; }

    void refresh(); ///< reads again now; changed() follows

signals:
    void changed();

private:
    void take(std::vector<ComparedRun> ofExperiments);
    void watch();

    RunStore *m_store;
    GrowthWatcher m_growth;
    JobSlot m_reader;
    std::vector<ComparedRun> m_ofExperiments;
    std::vector<ComparedRun> m_runs;
    QString m_directory; ///< runs/ of what was read
    bool m_isWanted = false;
    bool m_reading = false;
    bool m_again = false;
};

} // namespace klineage::ui
