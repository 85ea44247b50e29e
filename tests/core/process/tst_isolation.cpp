// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/process/childprocess.h"
#include "core/process/landlock.h"
#include "core/process/scratchfolder.h"
#include "tests/paths.h"
#include "tests/patience.h"

#include <QFile>
#include <QTemporaryDir>
#include <QtTest>

#include <filesystem>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

using namespace klineage;
using namespace klineage::process;

namespace {

namespace fs = std::filesystem;

const std::string probeProgram = klineage::test::programPath("/klineage-isolationprobe");

/// What a program of this build needs to start.
Isolation programOnly()
{
    Isolation isolation;
    isolation.readable = {"/lib", "/lib64", "/usr/lib", "/usr/lib64", "/etc/ld.so.cache"};
    isolation.devices = {"/dev/null"};
    return isolation;
}

/// 0: it was done, 1: refused, else something else went wrong; -1: it did not start or end.
int attempt(const Isolation &isolation, const std::string &what, const std::string &argument = {})
{
    ChildOptions options;
    options.command = {probeProgram, what, argument};
    options.isolation = isolation;
    auto child = ChildProcess::start(options);
    if (!child) {
        qWarning("%s", child.error().message.c_str());
        return -1;
    }
    const auto status = child->wait(Deadline::in(patienceSeconds));
    if (status && status->exitCode > 1)
        qWarning("%s: %s%s", what.c_str(), child->standardOutput().text.c_str(),
                 child->standardError().text.c_str());
    return status && status->signal == 0 ? status->exitCode : -1;
}

void touch(const fs::path &path)
{
    QFile file(QString::fromStdString(path.string()));
    QVERIFY(file.open(QIODevice::WriteOnly));
    file.write("x");
}

} // namespace

class TestIsolation : public QObject
{
    Q_OBJECT
private slots:
    void systemCalls_data();
    void systemCalls();
    void listedCalls_data();
    void listedCalls();
    void sealed_data();
    void sealed();
    void limitThatIsRaised();
    void files();
    void whatIsNamedWorks();
    void everyAbi();
    void variables();
    void scratchFolder();
    void saysWhatThereIs();
};

void TestIsolation::systemCalls_data()
{
    QTest::addColumn<QString>("what");
    QTest::addColumn<bool>("allowed");
    for (const char *what :
         {"internet", "datagram", "netlink", "local", "signal-parent", "signal-all", "kill-self", "trace",
          "memory", "limits", "session", "namespace", "clock", "bpf", "uring"})
        QTest::newRow(what) << what << false;
    for (const char *what : {"signal-self", "thread"})
        QTest::newRow(what) << what << true;
}

void TestIsolation::systemCalls()
{
    if (!isolationSupport().seccomp)
        QSKIP("The kernel offers no seccomp here.");
    QFETCH(QString, what);
    QFETCH(bool, allowed);
    QCOMPARE(attempt(programOnly(), what.toStdString()), allowed ? 0 : 1);
}

void TestIsolation::listedCalls_data()
{
    systemCalls_data();
    for (const char *what : {"affinity", "priority", "segment", "semaphore", "watch", "sibling"})
        QTest::newRow(what) << what << false;
    for (const char *what : {"child", "code", "compute"})
        QTest::newRow(what) << what << true;
}

void TestIsolation::listedCalls()
{
    if (!isolationSupport().seccomp)
        QSKIP("The kernel offers no seccomp here.");
    QFETCH(QString, what);
    QFETCH(bool, allowed);
    Isolation isolation = programOnly();
    isolation.systemCalls = SystemCalls::Listed;
    QCOMPARE(attempt(isolation, what.toStdString()), allowed ? 0 : 1);
    isolation.startsPrograms = false;
    if (what == "child")
        QCOMPARE(attempt(isolation, what.toStdString()), 1);
    if (what == "thread")
        QCOMPARE(attempt(isolation, what.toStdString()), 0);
}

void TestIsolation::sealed_data()
{
    QTest::addColumn<QString>("what");
    QTest::addColumn<bool>("allowed");
    for (const char *what :
         {"internet", "local", "signal-parent", "kill-self", "limits", "session", "clock", "affinity",
          "priority", "segment", "watch", "sibling", "child", "thread", "code", "look", "name-thread"})
        QTest::newRow(what) << what << false;
    QTest::newRow("compute") << "compute" << true;
}

void TestIsolation::sealed()
{
    if (!isolationSupport().seccomp)
        QSKIP("The kernel offers no seccomp here.");
    QFETCH(QString, what);
    QFETCH(bool, allowed);
    Isolation isolation = programOnly();
    isolation.systemCalls = SystemCalls::Listed;
    QCOMPARE(attempt(isolation, "sealed-" + what.toStdString()), allowed ? 0 : 1);
}

void TestIsolation::limitThatIsRaised()
{
    ChildOptions options;
    options.command = {"/bin/sh", "-c", "ulimit -S -n; read line; ulimit -S -n; ulimit -H -n"};
    options.openStdin = true;
    options.limits = {{RLIMIT_NOFILE, 100, 50}};
    auto child = ChildProcess::start(options);
    QVERIFY(child);
    const auto said = [&](const char *text) {
        child->drain();
        return child->standardOutput().text == text;
    };
    QTRY_VERIFY(said("50\n"));
    QVERIFY(child->raiseLimit({RLIMIT_NOFILE, 80}));
    QCOMPARE(::write(child->stdinFd(), "\n", 1), ssize_t{1});
    QVERIFY(child->wait(Deadline::in(patienceSeconds)));
    QCOMPARE(child->standardOutput().text, std::string("50\n80\n100\n"));
}

void TestIsolation::files()
{
    if (isolationSupport().landlockAbi < 2)
        QSKIP("The kernel offers no Landlock, or its first version, here.");
    const QTemporaryDir folder;
    const fs::path base = fs::canonical(folder.path().toStdString());
    fs::create_directories(base / "secret");
    fs::create_directories(base / "mine");
    touch(base / "secret/file");
    touch(base / "mine/file");
    Isolation isolation = programOnly();
    isolation.writable = {base / "mine"};
    const std::string secret = (base / "secret/file").string();
    const std::string mine = (base / "mine/file").string();
    QCOMPARE(attempt(isolation, "read", secret), 1);
    QCOMPARE(attempt(isolation, "write", secret), 1);
    QCOMPARE(attempt(isolation, "truncate", secret), 1);
    QCOMPARE(attempt(isolation, "chmod", secret), 1);
    QCOMPARE(attempt(isolation, "remove", secret), 1);
    QCOMPARE(attempt(isolation, "list", (base / "secret").string()), 1);
    QCOMPARE(attempt(isolation, "read", "/etc/passwd"), 1);
    QCOMPARE(attempt(isolation, "read", "/proc/1/environ"), 1);
    QCOMPARE(attempt(isolation, "execute", "/usr/bin/env"), 1);
    QCOMPARE(attempt(isolation, "read", mine), 0);
    QCOMPARE(attempt(isolation, "write", mine), 0);
    QCOMPARE(attempt(isolation, "list", (base / "mine").string()), 0);
    QCOMPARE(attempt(isolation, "remove", mine), 0);
    QVERIFY(!fs::exists(mine));
    isolation.movesFiles = true;
    QCOMPARE(attempt(isolation, "move", (base / "mine").string()), 0);
    QCOMPARE(attempt(isolation, "read", "/proc/self/environ"), 0);
    QCOMPARE(attempt(isolation, "name-thread"), 0);
    isolation.ownProcess = false;
    QCOMPARE(attempt(isolation, "read", "/proc/self/environ"), 1);
}

void TestIsolation::whatIsNamedWorks()
{
    Isolation isolation = programOnly();
    isolation.localSockets = true;
    QCOMPARE(attempt(isolation, "local"), 0);
    if (isolationSupport().seccomp)
        QCOMPARE(attempt(isolation, "internet"), 1);
    isolation.readable.push_back("/usr/bin");
    isolation.readable.push_back("/no/such/folder");
    QCOMPARE(attempt(isolation, "execute", "/usr/bin/env"), 0);
    QCOMPARE(attempt(isolation, "write", "/dev/null"), 0);
}

void TestIsolation::everyAbi()
{
    const int newest = landlockAbi();
    if (newest == 0)
        QSKIP("The kernel offers no Landlock here.");
    Isolation isolation = programOnly();
    isolation.writable = {"/tmp"};
    for (int abi = 1; abi <= newest; ++abi) {
        const auto ruleset = landlockRuleset(isolation, {probeProgram}, abi);
        QVERIFY2(ruleset, ruleset ? "" : ruleset.error().message.c_str());
        QVERIFY(ruleset->get() >= 200);
    }
}

void TestIsolation::variables()
{
    qputenv("KLINEAGE_TEST_SECRET", "x");
    qputenv("KLINEAGE_KEPT_ONE", "x");
    const auto has = [](const char *name, bool all) {
        ChildOptions options;
        options.command = {probeProgram, "variable", name};
        options.environment = {{"KLINEAGE_GIVEN", "x"}};
        if (!all)
            options.inheritedVariables = {"PATH", "KLINEAGE_KEPT_*"};
        auto child = ChildProcess::start(options);
        const auto status = child->wait(Deadline::in(patienceSeconds));
        return status && status->ok();
    };
    QVERIFY(has("KLINEAGE_TEST_SECRET", true));
    QVERIFY(!has("KLINEAGE_TEST_SECRET", false));
    QVERIFY(has("KLINEAGE_KEPT_ONE", false));
    QVERIFY(has("KLINEAGE_GIVEN", false));
    QVERIFY(has("PATH", false));
}

void TestIsolation::scratchFolder()
{
    fs::path path;
    {
        auto folder = ScratchFolder::create();
        QVERIFY(folder);
        path = folder->path();
        struct stat info = {};
        QCOMPARE(::stat(path.c_str(), &info), 0);
        QCOMPARE(info.st_mode & 0777, 0700u);
        fs::create_directories(path / "a/b");
        touch(path / "a/b/file");
        fs::permissions(path / "a/b", fs::perms::none);
        fs::create_directory_symlink(fs::current_path(), path / "outside");
        const auto other = ScratchFolder::create();
        QVERIFY(other && other->path() != path);
        const ScratchFolder moved = std::move(*folder);
        QVERIFY(folder->path().empty() && fs::exists(path));
    }
    QVERIFY(!fs::exists(path));
    QVERIFY(fs::exists(fs::current_path()));
}

void TestIsolation::saysWhatThereIs()
{
    QCOMPARE(describe({7, true}), std::string("Landlock ABI 7 + seccomp"));
    QCOMPARE(describe({0, true}), std::string("seccomp, no Landlock"));
    QCOMPARE(describe({3, false}), std::string("Landlock ABI 3, no seccomp"));
    QCOMPARE(describe({}), std::string("none"));
}

QTEST_GUILESS_MAIN(TestIsolation)
#include "tst_isolation.moc"
