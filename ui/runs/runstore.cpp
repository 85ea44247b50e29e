// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/runs/runstore.h"

#include "ui/models/workspacemodel.h"

#include <QDir>
#include <QFileInfo>

#include <algorithm>

namespace klineage::ui {

namespace {

/// Ids are unique in a folder alone: of two runs with the same one the workspace's is shown.
void addGuests(RunListing &listing, const RunListing &guests)
{
    const std::size_t own = listing.runs.size();
    for (const RunEntryPtr &guest : guests.runs) {
        const auto end = listing.runs.begin() + static_cast<std::ptrdiff_t>(own);
        if (std::none_of(listing.runs.begin(), end,
                         [&](const RunEntryPtr &run) { return run->id() == guest->id(); }))
            listing.runs.push_back(guest);
    }
    listing.problems << guests.problems;
}

} // namespace

RunStore::RunStore(WorkspaceModel *workspace, QObject *parent)
    : QObject(parent)
    , m_workspace(workspace)
{
    connect(&m_growth, &GrowthWatcher::grown, this, &RunStore::refresh);
    const auto follow = [this] {
        const std::filesystem::path &root = m_workspace->workspace().root;
        setDirectory(root.empty() ? QString() : QString::fromStdString((root / "runs").string()));
    };
    connect(workspace, &WorkspaceModel::loaded, this, follow);
    if (workspace->isLoaded())
        follow();
}

RunStore::~RunStore() = default;

RunEntryPtr RunStore::run(const QString &id) const
{
    const auto found = std::find_if(m_runs.begin(), m_runs.end(),
                                    [&](const RunEntryPtr &entry) { return entry->id() == id; });
    return found == m_runs.end() ? nullptr : *found;
}

void RunStore::setDirectory(const QString &directory)
{
    if (directory != m_directory) {
        m_directory = directory;
        m_guest.clear();
        m_runs.clear();
        m_awaited.clear();
        m_current.clear();
        m_step = 0;
        emit changed();
        emit currentChanged();
        emit stepChanged();
    }
    refresh();
}

void RunStore::setCurrent(const QString &id, int step)
{
    const RunEntryPtr entry = run(id);
    const int last = entry && !entry->record.steps.empty() ? entry->record.steps.back().number : 0;
    const int wanted = step > 0 ? step : last;
    if (id == m_current) {
        if (step > 0)
            setStep(step);
        return;
    }
    m_current = id;
    m_awaited = entry ? QString() : id;
    m_step = wanted;
    emit currentChanged();
    emit stepChanged();
}

void RunStore::openGuest(const QString &directory, const QString &id)
{
    if (directory != m_guest && directory != m_directory) {
        m_guest = directory;
        refresh();
    }
    setCurrent(id);
}

void RunStore::setStep(int number)
{
    if (number == m_step)
        return;
    m_step = number;
    emit stepChanged();
}

bool RunStore::isFollowing() const
{
    const RunEntryPtr entry = current();
    return !entry || entry->record.steps.empty() || m_step >= entry->record.steps.back().number;
}

void RunStore::refresh()
{
    if (m_directory.isEmpty())
        return;
    if (m_reading) {
        m_again = true;
        return;
    }
    m_reading = true;
    m_reader.start(interactivePool(), [this, directory = m_directory, guest = m_guest,
                                       known = m_runs](const std::stop_token &, const JobSlot::Post &post) {
        auto listing = std::make_shared<RunListing>(
            readRunListing(std::filesystem::path(directory.toStdString()), known));
        if (!guest.isEmpty())
            addGuests(*listing, readRunListing(std::filesystem::path(guest.toStdString()), known));
        // Posted to the slot's thread, and only while the slot, which is a member, lives.
        post([this, directory, listing] {
            m_reading = false;
            if (directory == m_directory)
                take(*listing);
            if (m_again || directory != m_directory) {
                m_again = false;
                refresh();
            }
        });
    });
}

void RunStore::take(const RunListing &listing)
{
    const bool same = listing.runs.size() == m_runs.size()
                      && std::equal(listing.runs.begin(), listing.runs.end(), m_runs.begin(),
                                    [](const RunEntryPtr &a, const RunEntryPtr &b) {
                                        return a->stamp == b->stamp && a->record.state == b->record.state
                                               && a->id() == b->id();
                                    });
    for (const QString &problem : listing.problems) {
        if (!m_problems.contains(problem))
            emit problemFound(problem);
    }
    m_problems = listing.problems;
    if (!same) {
        const bool following = isFollowing();
        const QString before = m_current;
        m_runs = listing.runs;
        if (!current() && m_current != m_awaited)
            m_current = m_runs.empty() ? QString() : m_runs.front()->id();
        const RunEntryPtr entry = current();
        if (entry)
            m_awaited.clear();
        const int stepBefore = m_step;
        if (!entry || entry->record.steps.empty())
            m_step = 0;
        else if (following || before != m_current || !entry->step(m_step))
            m_step = entry->record.steps.back().number;
        emit changed();
        if (before != m_current)
            emit currentChanged();
        if (before != m_current || stepBefore != m_step)
            emit stepChanged();
    }
    watch();
}

void RunStore::watch()
{
    QStringList paths;
    const QDir runs(m_directory);
    paths << (runs.exists() ? m_directory : QFileInfo(m_directory).absolutePath());
    if (!m_guest.isEmpty() && QDir(m_guest).exists())
        paths << m_guest;
    bool alive = false;
    for (const RunEntryPtr &entry : m_runs) {
        if (entry->isFinished())
            continue;
        alive = alive || entry->isRunning();
        const QDir folder(QString::fromStdString(entry->record.directory.string()));
        paths << folder.path();
        for (const char *name : {"steps.jsonl", "ledger.jsonl", "ending.toml"}) {
            if (folder.exists(QLatin1String(name)))
                paths << folder.filePath(QLatin1String(name));
        }
    }
    m_growth.watch(paths, alive);
}

} // namespace klineage::ui
