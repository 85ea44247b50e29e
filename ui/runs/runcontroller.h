// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/llm/providers/manualdesk.h"
#include "core/run/context.h"

#include <QObject>
#include <QString>

#include <memory>

namespace klineage::ui {

class GateDesk;
class KeyRing;
class RunStore;

/// What the run of this window is doing.
struct RunProgress {
    QString id;
    QString busy;    ///< "Asking for step 4", "compile: …"
    QString written; ///< of the reply, as it streams
    int steps = 0;
    double spentDollars = 0;
    double reservedDollars = 0;
    double capDollars = 0;
    llm::Usage usage;
    bool byHand = false;
    bool pausing = false;  ///< stops after the step
    bool stopping = false; ///< stops at once
};

/// Starts runs and goes on with them, one at a time, in a thread of its own. What was recorded stays, however a run stops: it is gone
/// on with later, here or by another program. Lives on the GUI thread; all signals arrive there.
class RunController : public QObject
{
    Q_OBJECT

public:
    using ProviderMaker = std::function<Result<std::unique_ptr<llm::Provider>>(
        const run::Settings &settings, const std::filesystem::path &workspace,
        const std::filesystem::path &runDirectory, std::shared_ptr<llm::ManualDesk> desk)>;

    explicit RunController(RunStore *store, QObject *parent = nullptr);
    ~RunController() override; ///< stops at once and waits for the thread

    /// Where providers' keys come from before the environment; it may go before the controller does.
    void setKeys(KeyRing *keys);
    [[nodiscard]] KeyRing *keys() const;
    /// What runs ask for trials: before the first start(), one of these two.
    void setGate(run::GateFunction gate);
    /// The window's gates: what runs are asked to use is said there. It may go before the controller does.
    void setGates(GateDesk *desk);
    [[nodiscard]] GateDesk *gates() const;
    // Replaced in tests.
    void setProviderMaker(ProviderMaker maker);

    [[nodiscard]] bool isRunning() const;
    [[nodiscard]] const RunProgress &progress() const;

    /// Makes the run's folder and starts it. What is wrong in a sentence; empty when it runs.
    QString start(const run::Settings &settings);
    /// Goes on with a run of the store.
    QString resume(const QString &id);
    void pause(); ///< after the step that is being made
    void stop();  ///< at once
    /// The next questions are for the person at the window, or for the run's author again.
    void setByHand(bool byHand);

    /// The question that waits for the person.
    [[nodiscard]] std::optional<llm::ManualDesk::Pending> question() const;
    /// Hands in the reply; what is wrong with it in a sentence, else empty.
    QString answer(int number, const QString &text);

signals:
    void started(const QString &id);
    /// A deoptimization, a lift or an admission may have written into the workspace: after each of its steps, and when it ended.
    void stored(const QString &id);
    void progressed();
    void questionChanged();
    /// code: "complete", "budget", "stopped", …
    void ended(const QString &id, const QString &code, const QString &reason);
    void failed(const QString &id, const QString &message);

private:
    struct Private;
    QString launch(const QString &id);
    [[nodiscard]] run::Watcher watcher();
    void change(const std::function<void(RunProgress &)> &change);
    void finish(const Result<run::Ending> &ending);
    std::unique_ptr<Private> m_d;
};

} // namespace klineage::ui
