// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/models/workspacemodel.h"

#include <QThreadPool>

#include <utility>
#include <vector>

namespace klineage::ui {

struct WorkspaceModel::Private {
    Workspace workspace;
    bool loaded = false;
    bool reading = false;
    quint64 request = 0;                     ///< of the newest open(); results of older ones are dropped
    std::shared_ptr<WorkspaceReader> reader; ///< of what is held; used on the pool's thread
    bool isHeld = false;
    std::function<void()> arrived;                 ///< what open() read, while it is held
    std::vector<std::function<void()>> afterwards; ///< of readChanges() that were asked for while reading
    QThreadPool pool;                              ///< one reader; waits in its destructor
};

namespace {

QString sentence(const Error &error)
{
    return QString::fromStdString(error.detail.empty() ? error.message : error.message + "\n" + error.detail);
}

} // namespace

WorkspaceModel::WorkspaceModel(QObject *parent)
    : QObject(parent)
    , m_d(std::make_unique<Private>())
{
    m_d->pool.setMaxThreadCount(1);
}

WorkspaceModel::~WorkspaceModel()
{
    m_d->pool.clear();
    m_d->pool.waitForDone();
}

void WorkspaceModel::open(const QString &root)
{
    const quint64 request = ++m_d->request;
    m_d->reading = true;
    emit reading();
    auto reader = std::make_shared<WorkspaceReader>(root.toStdString());
    m_d->pool.start([this, request, reader] {
        // The destructor waits for this thread, so `this` outlives the call; Qt drops the event when it comes too late.
        auto result = std::make_shared<Result<Workspace>>(reader->open());
        QMetaObject::invokeMethod(
            this,
            [this, request, reader, result] {
                m_d->arrived = [this, request, reader, result] {
                    if (request != m_d->request)
                        return;
                    if (*result) {
                        m_d->reader = reader;
                        take(std::move(**result));
                    } else {
                        m_d->reading = false;
                        emit failed(sentence(result->error()));
                    }
                    endReading();
                };
                if (!m_d->isHeld)
                    release();
            },
            Qt::QueuedConnection);
    });
}

void WorkspaceModel::hold()
{
    m_d->isHeld = true;
}

void WorkspaceModel::release()
{
    m_d->isHeld = false;
    if (const auto arrived = std::exchange(m_d->arrived, {}))
        arrived();
}

void WorkspaceModel::openNow(const QString &root)
{
    ++m_d->request;
    auto reader = std::make_shared<WorkspaceReader>(root.toStdString());
    auto result = reader->open();
    if (result) {
        m_d->reader = std::move(reader);
        take(std::move(*result));
    } else {
        emit failed(sentence(result.error()));
    }
    endReading();
}

void WorkspaceModel::setWorkspace(Workspace workspace)
{
    ++m_d->request;
    m_d->reader = std::make_shared<WorkspaceReader>(workspace.root);
    take(std::move(workspace));
    endReading();
}

void WorkspaceModel::take(Workspace workspace)
{
    m_d->workspace = std::move(workspace);
    m_d->loaded = true;
    m_d->reading = false;
    emit loaded();
}

/// What was written while a workspace was read may have come too late for it.
void WorkspaceModel::endReading()
{
    for (std::function<void()> &then : std::exchange(m_d->afterwards, {}))
        readChanges(std::move(then));
}

bool WorkspaceModel::isReading() const
{
    return m_d->reading;
}

bool WorkspaceModel::isLoaded() const
{
    return m_d->loaded;
}

const Workspace &WorkspaceModel::workspace() const
{
    return m_d->workspace;
}

const lineage::Lineage *WorkspaceModel::lineage(const QString &key) const
{
    return m_d->workspace.findLineage(key.toStdString());
}

const workload::Workload *WorkspaceModel::workload(const QString &name) const
{
    return m_d->workspace.findWorkload(name.toStdString());
}

const skills::CardRecord *WorkspaceModel::card(const QString &name) const
{
    return m_d->workspace.findCard(name.toStdString());
}

void WorkspaceModel::readChanges(std::function<void()> then)
{
    if (m_d->reading) {
        m_d->afterwards.push_back(std::move(then));
        return;
    }
    m_d->pool.start([this, request = m_d->request, reader = m_d->reader, then = std::move(then)] {
        auto changes =
            std::make_shared<WorkspaceChanges>(reader ? reader->readChanges() : WorkspaceChanges());
        QMetaObject::invokeMethod(
            this,
            [this, request, changes, then] {
                if (request == m_d->request)
                    take(std::move(*changes));
                if (then)
                    then();
            },
            Qt::QueuedConnection);
    });
}

void WorkspaceModel::take(WorkspaceChanges changes)
{
    const std::vector<Error> problems = changes.problems;
    const bool less = !changes.gone.empty();
    std::vector<QString> lineages;
    for (const lineage::Lineage &lineage : changes.lineages)
        lineages.push_back(QString::fromStdString(lineage.key()));
    std::vector<QString> cards;
    for (const skills::CardRecord &card : changes.cards)
        cards.push_back(QString::fromStdString(card.card.name));
    applyChanges(std::move(changes), m_d->workspace);
    if (less)
        emit loaded();
    for (const QString &key : lineages)
        emit lineageChanged(key);
    for (const QString &name : cards)
        emit cardChanged(name);
    for (const Error &error : problems)
        emit failed(sentence(error));
}

} // namespace klineage::ui
