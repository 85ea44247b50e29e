// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/experiments/experimentstore.h"

#include "ui/experiments/experimentfolders.h"
#include "ui/models/workspacemodel.h"

#include <QDir>
#include <QFileInfo>

#include <algorithm>
#include <utility>

namespace klineage::ui {

ExperimentStore::ExperimentStore(WorkspaceModel *workspace, QObject *parent)
    : QObject(parent)
    , m_workspace(workspace)
{
    connect(&m_growth, &GrowthWatcher::grown, this, &ExperimentStore::refresh);
    connect(workspace, &WorkspaceModel::loaded, this, &ExperimentStore::follow);
    follow();
}

ExperimentStore::~ExperimentStore() = default;

ExperimentEntryPtr ExperimentStore::experiment(const QString &name) const
{
    const auto found = std::find_if(m_experiments.begin(), m_experiments.end(),
                                    [&](const ExperimentEntryPtr &entry) { return entry->name() == name; });
    return found == m_experiments.end() ? nullptr : *found;
}

void ExperimentStore::follow()
{
    const std::filesystem::path &root = m_workspace->workspace().root;
    const QString directory =
        root.empty() ? QString() : QString::fromStdString((root / "experiments").string());
    if (directory != m_directory) {
        m_directory = directory;
        m_experiments.clear();
        emit changed();
    }
    if (m_isWanted)
        refresh();
}

void ExperimentStore::setCurrent(const QString &name)
{
    if (name == m_current)
        return;
    m_current = name;
    emit changed();
}

QString ExperimentStore::root() const
{
    return QString::fromStdString(m_workspace->workspace().root.string());
}

QString ExperimentStore::openFolder(const QString &folder)
{
    const QString path = QFileInfo(folder).canonicalFilePath();
    const std::vector<std::filesystem::path> found = experimentFolders(path.toStdString());
    if (m_directory.isEmpty())
        return tr("An experiment is looked at with a workspace: open one first.");
    if (path.isEmpty() || found.empty())
        return tr("%1 is no folder of an experiment: neither it nor a folder in it has an experiment.toml.")
            .arg(QDir::toNativeSeparators(folder));
    QStringList opened = openedExperiments(root());
    const bool isOwn = path == QFileInfo(m_directory).canonicalFilePath()
                       || QFileInfo(path).path() == QFileInfo(m_directory).canonicalFilePath();
    for (const std::filesystem::path &one : found) {
        const QString name = QString::fromStdString(one.filename().string());
        const ExperimentEntryPtr known = experiment(name);
        if (!isOwn && !opened.contains(path) && known && known->experiment.directory != one)
            return tr("Cannot open %1: an experiment of this name is shown already, that in %2.")
                .arg(QDir::toNativeSeparators(QString::fromStdString(one.string())),
                     QDir::toNativeSeparators(QString::fromStdString(known->experiment.directory.string())));
    }
    if (!isOwn && !opened.contains(path))
        setOpenedExperiments(root(), opened << path);
    setCurrent(QString::fromStdString(found.front().filename().string()));
    refresh();
    return {};
}

QString ExperimentStore::openedPlace() const
{
    const ExperimentEntryPtr entry = current();
    const QString folder = entry ? QString::fromStdString(entry->experiment.directory.string()) : QString();
    const QStringList opened = openedExperiments(root());
    for (const QString &place : {folder, QFileInfo(folder).path()}) {
        if (opened.contains(place))
            return place;
    }
    return {};
}

bool ExperimentStore::isCurrentOpened() const
{
    return !openedPlace().isEmpty();
}

void ExperimentStore::closeFolder()
{
    QStringList opened = openedExperiments(root());
    if (opened.removeAll(openedPlace()) == 0)
        return;
    setOpenedExperiments(root(), opened);
    refresh();
}

void ExperimentStore::refresh()
{
    m_isWanted = true;
    if (m_directory.isEmpty())
        return;
    if (m_reading) {
        m_again = true;
        return;
    }
    m_reading = true;
    emit readingChanged();
    m_reader.start(
        interactivePool(), [this, directory = m_directory, places = experimentPlaces(root()),
                            known = m_experiments](const std::stop_token &, const JobSlot::Post &post) {
            auto read = std::make_shared<std::vector<ExperimentEntryPtr>>(readExperiments(places, known));
            // Posted to the slot's thread, and only while the slot, which is a member, lives.
            post([this, directory, read] {
                m_reading = false;
                if (directory == m_directory)
                    take(*read);
                emit readingChanged();
                if (std::exchange(m_again, false) || directory != m_directory)
                    refresh();
            });
        });
}

void ExperimentStore::take(const std::vector<ExperimentEntryPtr> &experiments)
{
    const auto isSame = [](const ExperimentEntryPtr &a, const ExperimentEntryPtr &b) {
        const auto states = [](const run::CellResult &x, const run::CellResult &y) {
            return x.state == y.state;
        };
        return a->name() == b->name() && a->stamp == b->stamp && a->problem == b->problem
               && std::equal(a->results.cells.begin(), a->results.cells.end(), b->results.cells.begin(),
                             b->results.cells.end(), states);
    };
    const bool same = std::equal(experiments.begin(), experiments.end(), m_experiments.begin(),
                                 m_experiments.end(), isSame);
    if (!same) {
        m_experiments = experiments;
        if (!current() && !m_experiments.empty())
            m_current = m_experiments.front()->name();
        emit changed();
    }
    watch();
}

void ExperimentStore::watch()
{
    QStringList paths;
    const QDir experiments(m_directory);
    paths << (experiments.exists() ? m_directory : QFileInfo(m_directory).absolutePath());
    bool alive = false;
    for (const ExperimentEntryPtr &entry : m_experiments) {
        const QDir folder(QString::fromStdString(entry->experiment.directory.string()));
        paths << folder.path() << folder.filePath(QStringLiteral("experiment.toml"));
        const QDir runs(entry->runsDirectory());
        if (runs.exists())
            paths << runs.path();
        alive = alive || entry->isRunning();
        for (const run::CellResult &cell : entry->results.cells) {
            const QDir run(runs.filePath(QString::fromStdString(cell.cell.runId)));
            if (cell.isOver() || !run.exists())
                continue;
            paths << run.path();
            if (run.exists(QStringLiteral("steps.jsonl")))
                paths << run.filePath(QStringLiteral("steps.jsonl"));
        }
    }
    m_growth.watch(paths, alive);
}

} // namespace klineage::ui
