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

/// Where the trials of runs go.
struct RunPlace {
    enum Gates { Pool, Here, Launched };
    Gates gates = Pool; ///< without a pool the same as Here
    QString
        launcher; ///< when launched: the words that start a gate, as in "ssh HOST" or "srun --gres=gpu:1"; kept otherwise
};

/// The gates of this window: those of the pool that the workspace or the user has, else this machine's; runs may have one of a launcher.
/// Lives on the GUI thread; what the runners that it hands out do is done on their threads, and may outlive it.
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
    [[nodiscard]] gate::PoolState state() const;                ///< of the pool, and of the launcher's gate

    [[nodiscard]] RunPlace runPlace() const { return m_runPlace; }
    /// Trials that run go on where they are; a launcher's gate that is not needed any more is ended. Fails, and changes nothing, when the
    /// launcher's words cannot be read.
    [[nodiscard]] Status setRunPlace(const RunPlace &place);
    /// Whether there is more to show than this machine's gate.
    [[nodiscard]] bool hasGates() const { return hasPool() || m_runPlace.gates == RunPlace::Launched; }

    /// A person's trials, and those of runs: without a pool each have a gate of their own, so that nobody waits for the other.
    [[nodiscard]] GateController::Runner runnerForPerson() const;
    [[nodiscard]] GateController::Runner runnerForRuns() const;

signals:
    void changed(); ///< the pool, or the state of its gates

private:
    struct Shared;
    void look();
    void watch();
    gate::PoolFile m_file;
    RunPlace m_runPlace;
    QString m_problem;
    QString m_seen;
    QTimer m_timer;
    std::shared_ptr<Shared> m_shared;
};

/// "3 of 8 gates busy, 2 trials wait".
[[nodiscard]] QString poolSummary(const gate::PoolState &state);

} // namespace klineage::ui
