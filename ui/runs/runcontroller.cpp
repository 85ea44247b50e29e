// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/runs/runcontroller.h"

#include "core/llm/ledger.h"
#include "core/run/drive/drive.h"
#include "core/run/drive/runprovider.h"
#include "ui/keys/keyring.h"
#include "ui/runs/gatedesk.h"
#include "ui/runs/runstore.h"
#include "ui/runs/takeover.h"
#include "ui/runs/verdicttext.h"

#include <QPointer>

#include <mutex>
#include <thread>

namespace klineage::ui {

namespace fs = std::filesystem;

namespace {

constexpr int maxShownReply = 200'000; // characters of a reply that is still being written

QString wholeSentence(const Error &error)
{
    return QString::fromStdString(error.detail.empty() ? error.message : error.message + "\n" + error.detail);
}

/// What a run's thread shares with the window.
struct Shared {
    std::atomic<bool> pause = false;
    std::stop_source stop;
    std::mutex mutex;
    std::string written; ///< of the reply since the window last looked
    bool isPosted = false;
};

} // namespace

struct RunController::Private {
    RunStore *store = nullptr;
    run::GateFunction gate;
    ProviderMaker maker; ///< empty: the providers themselves
    QPointer<KeyRing> keys;
    QPointer<GateDesk> desks;
    RunProgress progress;
    quint64 number = 0; ///< of the run's start: what an earlier one still has to say is dropped
    bool running = false;
    bool stores = false;    ///< the run's kind writes into the workspace
    bool hasStored = false; ///< since the last stored()
    std::shared_ptr<llm::ManualDesk> desk;
    std::shared_ptr<std::atomic<bool>> byHand;
    std::shared_ptr<Shared> shared;
    std::jthread thread;
};

RunController::RunController(RunStore *store, QObject *parent)
    : QObject(parent)
    , m_d(std::make_unique<Private>())
{
    m_d->store = store;
}

RunController::~RunController()
{
    if (m_d->shared)
        m_d->shared->stop.request_stop();
}

void RunController::setGates(GateDesk *desk)
{
    m_d->desks = desk;
    setGate(desk->runnerForRuns());
}

GateDesk *RunController::gates() const
{
    return m_d->desks;
}

void RunController::setGate(run::GateFunction gate)
{
    m_d->gate = std::move(gate);
}

void RunController::setProviderMaker(ProviderMaker maker)
{
    m_d->maker = std::move(maker);
}

void RunController::setKeys(KeyRing *keys)
{
    m_d->keys = keys;
}

KeyRing *RunController::keys() const
{
    return m_d->keys;
}

bool RunController::isRunning() const
{
    return m_d->running;
}

const RunProgress &RunController::progress() const
{
    return m_d->progress;
}

QString RunController::start(const run::Settings &settings)
{
    if (m_d->running)
        return tr("A run is going on; stop or pause it first.");
    const fs::path runs = m_d->store->directory().toStdString();
    if (runs.empty())
        return tr("Open a workspace first.");
    if (const auto made = run::ensureRun(runs, settings); !made)
        return wholeSentence(made.error());
    return launch(QString::fromStdString(settings.id));
}

QString RunController::resume(const QString &id)
{
    if (m_d->running)
        return tr("A run is going on; stop or pause it first.");
    const RunEntryPtr entry = m_d->store->run(id);
    if (!entry)
        return tr("There is no run %1.").arg(id);
    if (entry->isFinished())
        return tr("The run is finished; there is nothing to go on with.");
    if (entry->isRunning())
        return tr("Another program is at this run.");
    return launch(id);
}

QString RunController::launch(const QString &id)
{
    const fs::path runs = m_d->store->directory().toStdString();
    const RunEntryPtr known = m_d->store->run(id); // an experiment's lies elsewhere
    const fs::path directory = known ? known->record.directory : runs / id.toStdString();
    const Result<run::RunRecord> record = run::readRun(directory);
    if (!record)
        return wholeSentence(record.error());
    const quint64 number = ++m_d->number;
    m_d->running = true;
    m_d->shared = std::make_shared<Shared>();
    m_d->byHand = std::make_shared<std::atomic<bool>>(false);
    m_d->desk = std::make_shared<llm::ManualDesk>();
    m_d->desk->setOnChange([this] { QMetaObject::invokeMethod(this, &RunController::questionChanged); });
    m_d->progress = {};
    m_d->progress.id = id;
    m_d->progress.busy = tr("Starting");
    m_d->progress.capDollars = record->settings.capDollars;
    m_d->progress.byHand = record->settings.provider == "manual";
    m_d->stores = record->settings.kind != run::Kind::Materialize;
    m_d->hasStored = false;
    ProviderMaker maker = m_d->maker;
    if (!maker) {
        const llm::KeyCallback key =
            m_d->keys ? m_d->keys->callback(record->settings, m_d->shared->stop.get_token())
                      : llm::KeyCallback();
        maker = [key](const run::Settings &settings, const fs::path &workspace, const fs::path &folder,
                      std::shared_ptr<llm::ManualDesk> asked) {
            return run::makeRunProvider(settings, workspace, folder, std::move(asked), key);
        };
    }

    auto body = [this, number, directory, workspace = runs.parent_path(), settings = record->settings,
                 gate = m_d->gate, maker = std::move(maker), desk = m_d->desk, byHand = m_d->byHand,
                 shared = m_d->shared, watcher = watcher()] {
        const auto drive = [&]() -> Result<run::Ending> {
            const Result<llm::PriceTable> prices = llm::loadPrices(workspace);
            if (!prices)
                return tl::unexpected(prices.error());
            Result<std::unique_ptr<llm::Provider>> provider = maker(settings, workspace, directory, desk);
            if (!provider)
                return tl::unexpected(provider.error());
            TakeOverProvider author(std::move(*provider), desk, byHand);
            return run::driveRun(directory,
                                 {workspace, author, *prices, gate, shared->stop.get_token(), watcher, 0});
        };
        const Result<run::Ending> ending = drive();
        QMetaObject::invokeMethod(this, [this, number, ending] {
            if (m_d->running && m_d->number == number)
                finish(ending);
        });
    };
    // The thread ends before `this` does: the destructor stops it, and the jthread, a member of m_d, joins it.
    m_d->thread = std::jthread(std::move(body));
    m_d->store->refresh();
    m_d->store->setCurrent(id);
    emit started(id);
    emit progressed();
    return {};
}

/// Called on the run's thread; everything is queued to the window.
run::Watcher RunController::watcher()
{
    const auto post = [this, number = m_d->number](std::function<void(RunProgress &)> apply) {
        QMetaObject::invokeMethod(this, [this, number, apply = std::move(apply)] {
            if (m_d->running && m_d->number == number)
                change(apply);
        });
    };
    run::Watcher watcher;
    watcher.begins = [this, post](const std::string &what) {
        post([this, what](RunProgress &progress) {
            progress.busy = QString::fromStdString(what);
            progress.written.clear();
            // What belongs to a step is written after it and before the next thing begins.
            if (std::exchange(m_d->hasStored, false))
                emit stored(progress.id);
        });
    };
    watcher.gateProgress = [post](const gate::GateProgress &gate) {
        post([text = progressSentence(gate)](RunProgress &progress) { progress.busy = text; });
    };
    watcher.spent = [post](const llm::Ledger &ledger) {
        post([spent = ledger.spentDollars(), reserved = ledger.reservedDollars(),
              usage = ledger.usage()](RunProgress &progress) {
            progress.spentDollars = spent;
            progress.reservedDollars = reserved;
            progress.usage = usage;
        });
    };
    // Pieces of a reply come faster than a window is painted: those since the last look are one.
    watcher.replyText = [post, shared = m_d->shared](std::string_view text) {
        const std::lock_guard lock(shared->mutex);
        shared->written += text;
        if (std::exchange(shared->isPosted, true))
            return;
        post([shared](RunProgress &progress) {
            const std::lock_guard inner(shared->mutex);
            progress.written += QString::fromStdString(std::exchange(shared->written, {}));
            progress.written = progress.written.right(maxShownReply);
            shared->isPosted = false;
        });
    };
    watcher.stepped = [this, post, shared = m_d->shared](const run::StepRecord &step) {
        if (shared->pause)
            shared->stop.request_stop();
        post([this, number = step.number](RunProgress &progress) {
            progress.steps = number;
            progress.written.clear();
            m_d->hasStored = m_d->stores;
            m_d->store->refresh();
        });
    };
    return watcher;
}

void RunController::change(const std::function<void(RunProgress &)> &change)
{
    change(m_d->progress);
    emit progressed();
}

void RunController::finish(const Result<run::Ending> &ending)
{
    m_d->thread.join();
    m_d->running = false;
    const QString id = m_d->progress.id;
    m_d->store->refresh();
    emit questionChanged();
    emit progressed();
    if (m_d->stores)
        emit stored(id);
    if (ending)
        emit ended(id, QString::fromStdString(ending->code), QString::fromStdString(ending->reason));
    else
        emit failed(id, wholeSentence(ending.error()));
}

void RunController::pause()
{
    if (!m_d->running)
        return;
    m_d->shared->pause = true;
    change([](RunProgress &progress) { progress.pausing = true; });
}

void RunController::stop()
{
    if (!m_d->running)
        return;
    m_d->shared->stop.request_stop();
    change([](RunProgress &progress) { progress.stopping = true; });
}

void RunController::setByHand(bool byHand)
{
    if (!m_d->running || m_d->progress.byHand == byHand)
        return;
    *m_d->byHand = byHand;
    change([byHand](RunProgress &progress) { progress.byHand = byHand; });
}

std::optional<llm::ManualDesk::Pending> RunController::question() const
{
    return m_d->running && m_d->desk ? m_d->desk->pending() : std::nullopt;
}

QString RunController::answer(int number, const QString &text)
{
    if (!m_d->desk)
        return tr("No question waits for an answer.");
    const auto handed = m_d->desk->reply(number, text.toStdString());
    return handed ? QString() : wholeSentence(handed.error());
}

} // namespace klineage::ui
