// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/runs/gatecontroller.h"

#include "core/lineage/record.h"
#include "ui/models/workspacemodel.h"

#include <QPointer>

#include <thread>

namespace klineage::ui {

namespace {

/// What became of a trial's record.
struct Recorded {
    QString row;
    QString note;
};

QString sentence(const Error &error)
{
    return QString::fromStdString(error.detail.empty() ? error.message : error.message + "\n" + error.detail);
}

/// Stores the candidate and its trial as a branch. A verdict without a device is no evidence and is not recorded, nor is a slip of the
/// pen that a compiler found.
Recorded record(const std::filesystem::path &lineageDirectory, const std::string &candidateText,
                const gate::Trial &trial)
{
    if (lineageDirectory.empty())
        return {{}, GateController::tr("Not recorded: the candidate belongs to no lineage.")};
    if (trial.verdict.status == gate::VerdictStatus::Unavailable)
        return {{}, GateController::tr("Not recorded: nothing was run.")};
    if (trial.verdict.status == gate::VerdictStatus::CompileError)
        return {{}, GateController::tr("Not recorded: a draft that does not compile is no attempt.")};
    const auto lineage = lineage::readLineage(lineageDirectory);
    if (!lineage)
        return {{}, GateController::tr("Not recorded: %1").arg(sentence(lineage.error()))};
    const auto outcome = lineage::recordTrial(*lineage, trial, candidateText);
    if (!outcome)
        return {{}, GateController::tr("Not recorded: %1").arg(sentence(outcome.error()))};
    return {QStringLiteral("trial:%1").arg(QString::fromStdString(trial.id)), {}};
}

} // namespace

struct GateController::Private {
    WorkspaceModel *workspace = nullptr;
    Runner runner;
    GateJob job;
    bool running = false;
    std::jthread thread;
};

GateController::GateController(WorkspaceModel *workspace, QObject *parent)
    : QObject(parent)
    , m_d(std::make_unique<Private>())
{
    m_d->workspace = workspace;
}

GateController::~GateController() = default;

void GateController::setRunner(Runner runner)
{
    m_d->runner = std::move(runner);
}

bool GateController::isRunning() const
{
    return m_d->running;
}

GateJob GateController::currentJob() const
{
    return m_d->job;
}

bool GateController::start(const gate::GateRequest &request, const QString &lineageKey,
                           const QString &parentRow)
{
    Q_ASSERT(m_d->runner);
    if (m_d->running)
        return false;
    m_d->job = GateJob{m_d->job.id + 1, QString::fromStdString(request.candidateName), lineageKey, parentRow};
    m_d->running = true;
    const quint64 id = m_d->job.id;
    std::filesystem::path directory;
    if (const lineage::Lineage *lineage = m_d->workspace ? m_d->workspace->lineage(lineageKey) : nullptr)
        directory = lineage->directory;

    // The thread ends before `this` does: the jthread is a member of m_d, and its destructor stops and joins.
    m_d->thread = std::jthread([this, id, request, directory, runner = m_d->runner](std::stop_token stop) {
        auto result = runner(request, stop, [this, id](const gate::GateProgress &progress) {
            QMetaObject::invokeMethod(this, [this, id, progress] {
                if (m_d->running && m_d->job.id == id)
                    emit progressed(id, progress);
            });
        });
        const bool cancelled = stop.stop_requested();
        Recorded recorded;
        if (result && !cancelled)
            recorded = record(directory, request.candidateText, *result);
        QMetaObject::invokeMethod(this, [this, id, cancelled, recorded, result = std::move(result)] {
            if (!m_d->running || m_d->job.id != id)
                return;
            if (result && !cancelled && !recorded.row.isEmpty() && m_d->workspace) {
                // The row is there before anybody hears of it.
                m_d->workspace->readChanges([self = QPointer(this), id, recorded, trial = *result] {
                    if (self)
                        self->end(id, trial, recorded.row, recorded.note);
                });
                return;
            }
            if (result && !cancelled) {
                end(id, *result, recorded.row, recorded.note);
                return;
            }
            m_d->running = false;
            if (cancelled)
                emit stopped(id);
            else
                emit failed(id, sentence(result.error()));
        });
    });
    emit started(m_d->job);
    return true;
}

void GateController::end(quint64 id, const gate::Trial &trial, const QString &row, const QString &note)
{
    m_d->running = false;
    emit finished(id, trial, row, note);
}

void GateController::stop()
{
    if (m_d->running)
        m_d->thread.request_stop();
}

} // namespace klineage::ui
