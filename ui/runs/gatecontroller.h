// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/base/result.h"
#include "core/trial/request.h"
#include "core/trial/trial.h"

#include <QObject>
#include <QString>

#include <functional>
#include <memory>
#include <stop_token>

namespace klineage::ui {

class WorkspaceModel;

/// A trial that was asked for in the window.
struct GateJob {
    quint64 id = 0;
    QString candidateName; ///< "K03.cl (draft)"
    QString lineageKey;    ///< where the trial is recorded
    QString parentRow;     ///< state the candidate was made from
};

/// Runs candidates through klineage-gate, one at a time, in a thread of its own, and records each trial in its lineage.
/// Lives on the GUI thread; all signals arrive there. Results of a stopped job are dropped.
class GateController : public QObject
{
    Q_OBJECT

public:
    /// Runs one request to its end. Called on the worker thread.
    using Runner = std::function<Result<gate::Trial>(const gate::GateRequest &, std::stop_token,
                                                     gate::ProgressCallback)>;

    explicit GateController(WorkspaceModel *workspace, QObject *parent = nullptr);
    ~GateController() override; ///< stops the running job and waits for its thread

    void setRunner(Runner runner); ///< before the first start()

    [[nodiscard]] bool isRunning() const;
    [[nodiscard]] GateJob currentJob() const;

    /// Starts gating; refused (false) while another job runs.
    bool start(const gate::GateRequest &request, const QString &lineageKey, const QString &parentRow);
    /// Kills the job at once; what it had measured is lost, what was recorded before stays.
    void stop();

signals:
    void started(const klineage::ui::GateJob &job);
    void progressed(quint64 id, const klineage::gate::GateProgress &progress);
    /// The verdict is in. recordedRow is the row of the new branch, empty when nothing was recorded (`note` says why).
    void finished(quint64 id, const klineage::gate::Trial &trial, const QString &recordedRow,
                  const QString &note);
    void failed(quint64 id, const QString &message);
    void stopped(quint64 id);

private:
    struct Private;
    void end(quint64 id, const gate::Trial &trial, const QString &row, const QString &note);
    std::unique_ptr<Private> m_d;
};

} // namespace klineage::ui
