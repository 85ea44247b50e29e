// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/pool/gatepool.h"
#include "core/pool/poolfile.h"
#include "ui/runs/gatecontroller.h"

#include <QObject>
#include <QString>
#include <QTimer>

#include <memory>

namespace klineage::ui {

/// The gates of this window: those of the pool that the workspace or the user has, else this machine's. Lives on the GUI thread; what
/// the runners that it hands out do is done on their threads, and may outlive it.
class GateDesk : public QObject
{
    Q_OBJECT

public:
    explicit GateDesk(QObject *parent = nullptr);
    ~GateDesk() override;

    /// Reads the pool anew; gates of one that has not changed are kept.
    void open(const QString &workspace);

    [[nodiscard]] bool hasPool() const { return !m_file.file.empty(); }
    [[nodiscard]] QString fileName() const;
    [[nodiscard]] QString problem() const { return m_problem; } ///< why the pool could not be read
    [[nodiscard]] gate::PoolState state() const;                ///< of the pool; of no gates without one

    /// Whether runs ask this machine's gate although there is a pool.
    [[nodiscard]] bool areRunsHere() const;
    void setRunsHere(bool here);

    /// A person's trials, and those of runs: without a pool each have a gate of their own, so that nobody waits for the other.
    [[nodiscard]] GateController::Runner runnerForPerson() const;
    [[nodiscard]] GateController::Runner runnerForRuns() const;

signals:
    void changed(); ///< the pool, or the state of its gates

private:
    struct Shared;
    void look();
    gate::PoolFile m_file;
    QString m_problem;
    QString m_seen;
    QTimer m_timer;
    std::shared_ptr<Shared> m_shared;
};

/// "3 of 8 gates busy, 2 trials wait".
[[nodiscard]] QString poolSummary(const gate::PoolState &state);

} // namespace klineage::ui
