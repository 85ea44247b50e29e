// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/workspace/installed.h"
#include "core/workspace/workspace.h"
#include "tests/core/trialfixture.h"

#include <QTest>

#include <fstream>
#include <unistd.h>

using namespace klineage;
using namespace klineage::tests;
namespace fs = std::filesystem;

namespace {

/// Whether a file or folder is there, whatever it is.
bool isThere(const fs::path &path)
{
    return fs::exists(fs::symlink_status(path));
}

std::size_t entriesIn(const fs::path &folder)
{
    return static_cast<std::size_t>(std::distance(fs::directory_iterator(folder), fs::directory_iterator()));
}

} // namespace

class TestInstalled : public QObject
{
    Q_OBJECT

private slots:
    void aCopyIsAWorkspaceThatCanBeWritten()
    {
        const WorkspaceCopy original;
        const fs::path card = original.skills() / "stage-rows/card.toml";
        const fs::path run = original.root() / "runs/one";
        fs::create_directories(run);
        std::ofstream(run / "run.toml") << "x";
        std::ofstream(original.root() / "pool.toml") << "";
        fs::create_directories(original.root() / "build");
        fs::create_symlink("card.toml", original.skills() / "stage-rows/link");
        fs::permissions(card, fs::perms::owner_read);
        fs::permissions(card.parent_path(), fs::perms::owner_read | fs::perms::owner_exec);

        const QTemporaryDir place;
        const fs::path to = fs::path(place.path().toStdString()) / "a" / "copy" / "";
        QVERIFY(copyWorkspace(original.root(), to));
        const Result<Workspace> copy = openWorkspace(to);
        QVERIFY(copy && copy->problems.empty());
        QVERIFY(copy->findCard("stage-rows") && copy->findLineage("toy/pocl"));
        QVERIFY(isThere(to / "runs/one/run.toml") && isThere(to / "pool.toml") && !isThere(to / "build"));
        QVERIFY(fs::is_symlink(to / "skills/stage-rows/link"));
        for (const char *path : {"skills/stage-rows", "skills/stage-rows/card.toml"})
            QVERIFY2((fs::status(to / path).permissions() & fs::perms::owner_write) != fs::perms::none, path);
        QCOMPARE(entriesIn(to.parent_path().parent_path()), std::size_t{1}); // nothing half done beside it
        fs::permissions(card.parent_path(), fs::perms::owner_all);
    }

    void whatIsThereIsKept()
    {
        const WorkspaceCopy original;
        const QTemporaryDir place;
        const fs::path to = place.path().toStdString();
        QVERIFY(copyWorkspace(original.root(), to)); // an empty folder
        std::ofstream(to / "mine") << "x";
        const Status again = copyWorkspace(original.root(), to);
        QVERIFY(!again && again.error().code == ErrorCode::Conflict);
        QVERIFY(isThere(to / "mine"));
    }

    void aCopyIsWholeOrNotThere()
    {
        const WorkspaceCopy original;
        const QTemporaryDir place;
        const fs::path folder = place.path().toStdString();
        std::stop_source source;
        source.request_stop();
        const Status stopped = copyWorkspace(original.root(), folder / "stopped", source.get_token());
        QVERIFY(!stopped && stopped.error().code == ErrorCode::Cancelled);

        std::ofstream(folder / "file") << "x";
        const Status below = copyWorkspace(original.root(), folder / "file" / "copy");
        QVERIFY(!below && below.error().code == ErrorCode::Io);
        QCOMPARE(entriesIn(folder), std::size_t{1});
    }

    void notIntoItselfAndOnlyAWorkspace()
    {
        const WorkspaceCopy original;
        const Status inner = copyWorkspace(original.root(), original.root() / "workloads/copy");
        QVERIFY(!inner && inner.error().code == ErrorCode::InvalidInput);
        QVERIFY(!isThere(original.root() / "workloads/copy"));
        const QTemporaryDir place;
        const fs::path folder = place.path().toStdString();
        const Status none = copyWorkspace(folder, folder / "copy");
        QVERIFY(!none && none.error().code == ErrorCode::NotFound);
    }

    void readOnlyIsWhatCannotBeWritten()
    {
        const WorkspaceCopy copy;
        QVERIFY(!isReadOnly(copy.root()));
        QVERIFY(isReadOnly(copy.root() / "no-such-folder"));
        QVERIFY(!installedWorkspace()); // a test lies in the build folder
        if (::geteuid() == 0)
            QSKIP("The administrator can write everywhere.");
        fs::permissions(copy.skills(), fs::perms::owner_read | fs::perms::owner_exec);
        QVERIFY(isReadOnly(copy.root()));
        fs::permissions(copy.skills(), fs::perms::owner_all);
    }
};

QTEST_GUILESS_MAIN(TestInstalled)
#include "tst_installed.moc"
