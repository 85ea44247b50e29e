// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/files/atomicfile.h"

#include <QTemporaryDir>
#include <QTest>

#include <chrono>
#include <csignal>
#include <fstream>
#include <thread>

#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

using namespace klineage;
using namespace klineage::files;
namespace fs = std::filesystem;

class TestAtomicFile : public QObject
{
    Q_OBJECT

private slots:
    void writesAndReplaces();
    void keepsPermissions();
    void writesThroughASymbolicLink();
    void failsWithoutAFolderAndLeavesNothing();
    void oldTemporariesAreRemovedAndFreshOnesLeft();
    void readRefusesWhatIsTooLargeOrNoFile();
    void readSaysWhatIsMissing();
    void aKillLeavesOldBytesOrNewBytes();

private:
    static fs::path in(const QTemporaryDir &dir, const char *name)
    {
        return fs::path(dir.path().toStdString()) / name;
    }
    static std::size_t entries(const fs::path &dir)
    {
        return static_cast<std::size_t>(std::distance(fs::directory_iterator(dir), fs::directory_iterator()));
    }
};

void TestAtomicFile::writesAndReplaces()
{
    const QTemporaryDir dir;
    const fs::path path = in(dir, "a.txt");
    QVERIFY(writeFileAtomic(path, "one"));
    QVERIFY(writeFileAtomic(path, std::string("two\0three", 9)));
    QCOMPARE(readFile(path, 100).value(), std::string("two\0three", 9));
    QVERIFY(writeFileAtomic(path, ""));
    QCOMPARE(readFile(path, 0).value(), std::string());
    QCOMPARE(entries(path.parent_path()), std::size_t{1});
}

void TestAtomicFile::keepsPermissions()
{
    const QTemporaryDir dir;
    const fs::path path = in(dir, "a.txt");
    QVERIFY(writeFileAtomic(path, "one"));
    fs::permissions(path, fs::perms(0640));
    QVERIFY(writeFileAtomic(path, "two"));
    QCOMPARE(static_cast<int>(fs::status(path).permissions()), 0640);
}

void TestAtomicFile::writesThroughASymbolicLink()
{
    const QTemporaryDir dir;
    const fs::path target = in(dir, "target.txt");
    const fs::path link = in(dir, "link.txt");
    QVERIFY(writeFileAtomic(target, "one"));
    fs::create_symlink("target.txt", link);
    QVERIFY(writeFileAtomic(link, "two"));
    QVERIFY(fs::is_symlink(link));
    QCOMPARE(readFile(target, 100).value(), std::string("two"));
}

void TestAtomicFile::failsWithoutAFolderAndLeavesNothing()
{
    const QTemporaryDir dir;
    const Status status = writeFileAtomic(in(dir, "missing/a.txt"), "x");
    QVERIFY(!status);
    QCOMPARE(status.error().code, ErrorCode::NotFound);
    QVERIFY(status.error().message.find("missing/a.txt") != std::string::npos);

    // The target is a folder: the rename fails after the temporary file was written.
    fs::create_directory(in(dir, "folder"));
    QVERIFY(!writeFileAtomic(in(dir, "folder"), "x"));
    QCOMPARE(entries(dir.path().toStdString()), std::size_t{1});
}

void TestAtomicFile::oldTemporariesAreRemovedAndFreshOnesLeft()
{
    const QTemporaryDir dir;
    const fs::path old = in(dir, ".a.txt.1-0.tmp");
    const fs::path fresh = in(dir, ".a.txt.2-0.tmp");
    const fs::path foreign = in(dir, ".b.txt.1-0.tmp");
    for (const fs::path &path : {old, fresh, foreign})
        std::ofstream(path) << "left";
    for (const fs::path &path : {old, foreign})
        fs::last_write_time(path, fs::file_time_type::clock::now() - std::chrono::hours(1));
    QVERIFY(writeFileAtomic(in(dir, "a.txt"), "x"));
    QVERIFY(!fs::exists(old));
    QVERIFY(fs::exists(fresh));
    QVERIFY(fs::exists(foreign));
}

void TestAtomicFile::readRefusesWhatIsTooLargeOrNoFile()
{
    const QTemporaryDir dir;
    const fs::path path = in(dir, "a.txt");
    QVERIFY(writeFileAtomic(path, "12345"));
    QCOMPARE(readFile(path, 5).value(), std::string("12345"));
    QCOMPARE(readFile(path, 4).error().code, ErrorCode::InvalidInput);
    QCOMPARE(readFile(path.parent_path(), 100).error().code, ErrorCode::InvalidInput);
    const fs::path pipe = in(dir, "pipe");
    QCOMPARE(::mkfifo(pipe.c_str(), 0600), 0);
    QCOMPARE(readFile(pipe, 100).error().code, ErrorCode::InvalidInput); // and does not hang
}

void TestAtomicFile::readSaysWhatIsMissing()
{
    const Result<std::string> text = readFile("/proc/nonexistent/a.txt", 10);
    QVERIFY(!text);
    QCOMPARE(text.error().code, ErrorCode::NotFound);
    QCOMPARE(text.error().message,
             std::string("Cannot read '/proc/nonexistent/a.txt': No such file or directory."));
}

void TestAtomicFile::aKillLeavesOldBytesOrNewBytes()
{
    const QTemporaryDir dir;
    const fs::path path = in(dir, "a.txt");
    const std::string a(300'000, 'a');
    const std::string b(200'000, 'b');
    QVERIFY(writeFileAtomic(path, a));
    for (int round = 0; round < 20; ++round) {
        const pid_t child = ::fork();
        QVERIFY(child >= 0);
        if (child == 0) {
            for (;;) {
                static_cast<void>(writeFileAtomic(path, b));
                static_cast<void>(writeFileAtomic(path, a));
            }
        }
        std::this_thread::sleep_for(std::chrono::microseconds(300 + 777 * round));
        ::kill(child, SIGKILL);
        ::waitpid(child, nullptr, 0);
        const std::string bytes = readFile(path, 1'000'000).value();
        QVERIFY(bytes == a || bytes == b);
    }
}

QTEST_GUILESS_MAIN(TestAtomicFile)
#include "tst_atomicfile.moc"
