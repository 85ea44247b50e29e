// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/experiments/compare/comparestore.h"

#include "ui/experiments/experimentfolders.h"
#include "ui/runs/runstore.h"

#include <QDir>
#include <QFileInfo>

#include <utility>

namespace klineage::ui {

namespace fs = std::filesystem;

CompareStore::CompareStore(RunStore *store, QObject *parent)
    : QObject(parent)
    , m_store(store)
{
    connect(&m_growth, &GrowthWatcher::grown, this, &CompareStore::refresh);
    connect(store, &RunStore::changed, this, [this] {
        if (m_isWanted)
            refresh();
    });
}

CompareStore::~CompareStore() = default;

void CompareStore::refresh()
{
    m_isWanted = true;
    if (m_reading) {
        m_again = true;
        return;
    }
    m_reading = true;
    const QString directory = m_store->directory();
    if (directory != m_directory)
        m_ofExperiments.clear();
    m_directory = directory;
    std::vector<fs::path> places;
    if (!directory.isEmpty())
        places = experimentPlaces(QFileInfo(directory).path());
    m_reader.start(interactivePool(), [this, places, known = m_ofExperiments](const std::stop_token &,
                                                                              const JobSlot::Post &post) {
        QStringList problems; // the page Experiments tells them
        std::vector<ComparedRun> runs = readExperimentRuns(places, known, &problems);
        post([this, runs = std::move(runs)]() mutable {
            m_reading = false;
            take(std::move(runs));
            if (std::exchange(m_again, false))
                refresh();
        });
    });
}

void CompareStore::take(std::vector<ComparedRun> ofExperiments)
{
    m_ofExperiments = std::move(ofExperiments);
    m_runs.clear();
    for (const RunEntryPtr &entry : m_store->runs()) {
        // The store may show an experiment's runs as guests.
        if (QString::fromStdString(entry->record.directory.parent_path().string()) == m_directory)
            m_runs.push_back(compareRun(entry, {}));
    }
    m_runs.insert(m_runs.end(), m_ofExperiments.begin(), m_ofExperiments.end());
    watch();
    emit changed();
}

void CompareStore::watch()
{
    if (m_directory.isEmpty())
        return;
    QStringList paths;
    const QString experiments = QDir(m_directory).absoluteFilePath(QStringLiteral("../experiments"));
    if (QDir(experiments).exists())
        paths << QDir::cleanPath(experiments);
    bool isAlive = false;
    for (const ComparedRun &run : m_ofExperiments) {
        if (run.run->isFinished())
            continue;
        isAlive = isAlive || run.run->isRunning();
        const QDir folder(QString::fromStdString(run.run->record.directory.string()));
        paths << folder.path();
        if (folder.exists(QStringLiteral("steps.jsonl")))
            paths << folder.filePath(QStringLiteral("steps.jsonl"));
    }
    m_growth.watch(paths, isAlive);
}

} // namespace klineage::ui
