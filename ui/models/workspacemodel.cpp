// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/models/workspacemodel.h"

#include "core/skills/store.h"

#include <QThreadPool>

#include <algorithm>

namespace klineage::ui {

struct WorkspaceModel::Private {
    Workspace workspace;
    bool loaded = false;
    bool reading = false;
    quint64 request = 0; ///< of the newest open(); results of older ones are dropped
    QThreadPool pool;    ///< one reader; waits in its destructor
};

namespace {

QString sentence(const Error &error)
{
    return QString::fromStdString(error.detail.empty() ? error.message : error.message + "\n" + error.detail);
}

template <typename Record, typename Matches>
Record *findRecord(std::vector<Record> &records, Matches matches)
{
    const auto found = std::find_if(records.begin(), records.end(), matches);
    return found == records.end() ? nullptr : &*found;
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
    m_d->pool.clear();
    m_d->reading = true;
    emit reading();
    m_d->pool.start([this, request, path = root.toStdString()] {
        // The destructor waits for this thread, so `this` outlives the call; Qt drops the event when it comes too late.
        auto result = std::make_shared<Result<Workspace>>(openWorkspace(path));
        QMetaObject::invokeMethod(
            this,
            [this, request, result] {
                if (request != m_d->request)
                    return;
                m_d->reading = false;
                if (*result)
                    setWorkspace(std::move(**result));
                else
                    emit failed(sentence(result->error()));
            },
            Qt::QueuedConnection);
    });
}

void WorkspaceModel::openNow(const QString &root)
{
    ++m_d->request;
    auto result = openWorkspace(root.toStdString());
    if (result)
        setWorkspace(std::move(*result));
    else
        emit failed(sentence(result.error()));
}

void WorkspaceModel::setWorkspace(Workspace workspace)
{
    ++m_d->request;
    m_d->workspace = std::move(workspace);
    m_d->loaded = true;
    m_d->reading = false;
    emit loaded();
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

void WorkspaceModel::reloadLineage(const QString &key)
{
    auto *held = findRecord(m_d->workspace.lineages,
                            [wanted = key.toStdString()](const auto &l) { return l.key() == wanted; });
    if (!held)
        return;
    auto read = lineage::readLineage(held->directory);
    if (!read) {
        emit failed(sentence(read.error()));
        return;
    }
    *held = std::move(*read);
    emit lineageChanged(key);
}

void WorkspaceModel::reloadCard(const QString &name)
{
    auto *held = findRecord(m_d->workspace.cards,
                            [wanted = name.toStdString()](const auto &c) { return c.card.name == wanted; });
    if (!held)
        return;
    const skills::CardStore store(held->directory.parent_path());
    auto read = store.read(name.toStdString());
    if (!read) {
        emit failed(sentence(read.error()));
        return;
    }
    *held = std::move(*read);
    emit cardChanged(name);
}

} // namespace klineage::ui
