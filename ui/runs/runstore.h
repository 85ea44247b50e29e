// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "ui/highlight/jobslot.h"
#include "ui/models/growthwatcher.h"
#include "ui/runs/runentry.h"

#include <QObject>
#include <QStringList>

namespace klineage::ui {

class WorkspaceModel;

/// The runs of the open workspace and which of them is looked at, shared by all panels. Reads on a worker thread and follows the
/// folders while runs grow, whoever runs them. Lives on the GUI thread.
class RunStore : public QObject
{
    Q_OBJECT

public:
    explicit RunStore(WorkspaceModel *workspace, QObject *parent = nullptr);
    ~RunStore() override;

    [[nodiscard]] const std::vector<RunEntryPtr> &runs() const { return m_runs; }
    [[nodiscard]] RunEntryPtr run(const QString &id) const; ///< nullptr: there is none
    [[nodiscard]] QStringList problems() const { return m_problems; }
    [[nodiscard]] bool isReading() const { return m_reading; }
    [[nodiscard]] QString directory() const { return m_directory; }

    [[nodiscard]] QString currentId() const { return m_current; }
    [[nodiscard]] RunEntryPtr current() const { return run(m_current); }
    [[nodiscard]] int step() const { return m_step; } ///< 0: none
    /// Another run; its last step is taken unless one is named. A run that is not read yet becomes current when it is.
    void setCurrent(const QString &id, int step = 0);
    void setStep(int number);
    /// While the last step is looked at, the next one takes its place.
    [[nodiscard]] bool isFollowing() const;

    /// Shows the runs of another folder too (an experiment's), behind the workspace's, and looks at one of them. Only one other folder
    /// is shown at a time.
    void openGuest(const QString &directory, const QString &id);

    /// Reads again now; changed() follows.
    void refresh();

signals:
    void changed();        ///< runs() is another
    void currentChanged(); ///< another run
    void stepChanged();    ///< another step, or the same of another run
    void problemFound(const QString &text);

private:
    void setDirectory(const QString &directory);
    void take(const RunListing &listing);
    void watch();

    WorkspaceModel *m_workspace;
    GrowthWatcher m_growth;
    JobSlot m_reader;
    std::vector<RunEntryPtr> m_runs;
    QStringList m_problems;
    QString m_directory;
    QString m_guest; ///< another folder whose runs are shown
    QString m_current;
    QString m_awaited; ///< current, and not read yet
    int m_step = 0;
    bool m_reading = false;
    bool m_again = false;
};

} // namespace klineage::ui
