// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "ui/experiments/experimententry.h"
#include "ui/highlight/jobslot.h"
#include "ui/models/growthwatcher.h"

#include <QObject>

namespace klineage::ui {

class WorkspaceModel;

/// The experiments of the open workspace and which of them is looked at. Reads on a worker thread, from when it is first asked to, and
/// then follows the folders while runs grow, whoever runs them. Lives on the GUI thread.
class ExperimentStore : public QObject
{
    Q_OBJECT

public:
    explicit ExperimentStore(WorkspaceModel *workspace, QObject *parent = nullptr);
    ~ExperimentStore() override;

    [[nodiscard]] const std::vector<ExperimentEntryPtr> &experiments() const { return m_experiments; }
    [[nodiscard]] ExperimentEntryPtr experiment(const QString &name) const; ///< nullptr: there is none
    [[nodiscard]] ExperimentEntryPtr current() const { return experiment(m_current); }
    /// One that is not read yet becomes current when it is.
    void setCurrent(const QString &name);
    [[nodiscard]] bool isReading() const { return m_reading; }
    [[nodiscard]] QString directory() const { return m_directory; }

    /// Shows what is in this folder, an experiment's or one with folders of experiments in it, with those of the workspace from now on. Empty,
    /// or why it cannot.
    [[nodiscard]] QString openFolder(const QString &folder);
    /// Takes what was opened with the current experiment's folder away again.
    void closeFolder();
    [[nodiscard]] bool isCurrentOpened() const; ///< from outside the workspace

    void refresh(); ///< reads again now; changed() follows when something did

signals:
    void changed(); ///< another experiments() or current()
    void readingChanged();

private:
    void follow();
    void take(const std::vector<ExperimentEntryPtr> &experiments);
    void watch();
    [[nodiscard]] QString root() const;
    [[nodiscard]] QString openedPlace() const; ///< of the current one; empty: the workspace has it

    WorkspaceModel *m_workspace;
    GrowthWatcher m_growth;
    JobSlot m_reader;
    std::vector<ExperimentEntryPtr> m_experiments;
    QString m_directory;
    QString m_current;
    bool m_isWanted = false;
    bool m_reading = false;
    bool m_again = false;
};

} // namespace klineage::ui
