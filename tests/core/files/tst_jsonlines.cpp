// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/files/atomicfile.h"
#include "core/files/jsonlines.h"

#include <QTemporaryDir>
#include <QTest>

#include <chrono>
#include <csignal>
#include <fstream>
#include <thread>

#include <nlohmann/json.hpp>

#include <sys/wait.h>
#include <unistd.h>

using namespace klineage;
using namespace klineage::files;
namespace fs = std::filesystem;

class TestJsonLines : public QObject
{
    Q_OBJECT

private slots:
    void appendsAndReads();
    void blankLinesAreSkippedAndCounted();
    void tornTails_data();
    void tornTails();
    void appendRefusesWhatIsNoLine();
    void lengthLimits();
    void aMissingFileIsNotFound();
    void aTornTailLongerThanABlockIsMovedWhole();
    void writersInParallelLoseNothing();
    void aKillLosesAtMostTheLineInFlight();

private:
    static fs::path in(const QTemporaryDir &dir, const char *name)
    {
        return fs::path(dir.path().toStdString()) / name;
    }
};

void TestJsonLines::appendsAndReads()
{
    const QTemporaryDir dir;
    const fs::path path = in(dir, "t.jsonl");
    QVERIFY(appendLine(path, R"({"n":1})"));
    QVERIFY(appendLine(path, R"({"n":2})"));
    QCOMPARE(readFile(path, 1000).value(), std::string("{\"n\":1}\n{\"n\":2}\n"));
    const Lines lines = readLines(path).value();
    QCOMPARE(lines.lines.size(), std::size_t{2});
    QCOMPARE(lines.lines[1].number, 2);
    QCOMPARE(lines.lines[1].text, std::string(R"({"n":2})"));
    QVERIFY(!lines.tornTail);
}

void TestJsonLines::blankLinesAreSkippedAndCounted()
{
    const Lines lines = splitLines("\n{}\n \t\r\n[]\n", "t").value();
    QCOMPARE(lines.lines.size(), std::size_t{2});
    QCOMPARE(lines.lines[0].number, 2);
    QCOMPARE(lines.lines[1].number, 4);
    QVERIFY(splitLines("", "t").value().lines.empty());
}

void TestJsonLines::tornTails_data()
{
    QTest::addColumn<QByteArray>("before");
    QTest::addColumn<bool>("torn");
    QTest::addColumn<int>("whole");
    QTest::addColumn<QByteArray>("after"); // an append of {"new":1}
    QTest::newRow("clean") << QByteArray("{}\n") << false << 1 << QByteArray("{}\n{\"new\":1}\n");
    QTest::newRow("torn") << QByteArray("{}\n{\"n\":") << true << 1 << QByteArray("{}\n{\"new\":1}\n");
    QTest::newRow("only a torn line") << QByteArray("{\"n") << true << 0 << QByteArray("{\"new\":1}\n");
    QTest::newRow("whole, without a newline")
        << QByteArray("{}\n{\"n\":2}") << false << 2 << QByteArray("{}\n{\"n\":2}\n{\"new\":1}\n");
    QTest::newRow("zeros after a power cut")
        << QByteArray("{}\n\0\0\0\0", 7) << true << 1 << QByteArray("{}\n{\"new\":1}\n");
    QTest::newRow("no UTF-8") << QByteArray("{}\n\"\xff\"") << true << 1 << QByteArray("{}\n{\"new\":1}\n");
    QTest::newRow("empty") << QByteArray("") << false << 0 << QByteArray("{\"new\":1}\n");
}

void TestJsonLines::tornTails()
{
    QFETCH(QByteArray, before);
    QFETCH(bool, torn);
    QFETCH(int, whole);
    QFETCH(QByteArray, after);
    const QTemporaryDir dir;
    const fs::path path = in(dir, "t.jsonl");
    QVERIFY(writeFileAtomic(path, before.toStdString()));

    const Lines lines = readLines(path).value();
    QCOMPARE(lines.tornTail.has_value(), torn);
    QCOMPARE(static_cast<int>(lines.lines.size()), whole);

    QVERIFY(appendLine(path, R"({"new":1})"));
    QCOMPARE(QByteArray::fromStdString(readFile(path, 1000).value()), after);
    const Result<std::string> aside = readFile(path.string() + ".torn", 1000);
    QCOMPARE(aside.has_value(), torn);
    if (torn)
        QCOMPARE(*aside, lines.tornTail->text + '\n');
}

void TestJsonLines::appendRefusesWhatIsNoLine()
{
    const QTemporaryDir dir;
    const fs::path path = in(dir, "t.jsonl");
    for (const char *bad : {"", " ", "{}\n{}", "{}\n"})
        QCOMPARE(appendLine(path, bad).error().code, ErrorCode::InvalidInput);
    QVERIFY(!fs::exists(path));
    QCOMPARE(appendLine(in(dir, "missing/t.jsonl"), "{}").error().code, ErrorCode::NotFound);
}

void TestJsonLines::lengthLimits()
{
    const QTemporaryDir dir;
    const fs::path path = in(dir, "t.jsonl");
    const std::string longest = '"' + std::string(maxLineBytes - 2, 'x') + '"';
    QVERIFY(appendLine(path, longest));
    QCOMPARE(readLines(path).value().lines.front().text.size(), maxLineBytes);
    QCOMPARE(appendLine(path, longest + ' ').error().code, ErrorCode::InvalidInput);

    const Result<Lines> lines = splitLines("{}\n" + longest + " \n", "t.jsonl");
    QVERIFY(!lines);
    QVERIFY(QString::fromStdString(lines.error().message).startsWith("t.jsonl:2:1: "));
}

void TestJsonLines::aMissingFileIsNotFound()
{
    QCOMPARE(readLines("/proc/nonexistent/t.jsonl").error().code, ErrorCode::NotFound);
}

void TestJsonLines::aTornTailLongerThanABlockIsMovedWhole()
{
    const QTemporaryDir dir;
    const fs::path path = in(dir, "t.jsonl");
    const std::string tail = '"' + std::string(200'000, 'x');
    QVERIFY(writeFileAtomic(path, "{}\n" + tail));
    QVERIFY(appendLine(path, "[]"));
    QCOMPARE(readFile(path, 1000).value(), std::string("{}\n[]\n"));
    QCOMPARE(readFile(path.string() + ".torn", 1'000'000).value(), tail + '\n');
}

void TestJsonLines::writersInParallelLoseNothing()
{
    const QTemporaryDir dir;
    const fs::path path = in(dir, "t.jsonl");
    constexpr int perWriter = 40;
    std::vector<std::thread> writers;
    for (int writer = 0; writer < 4; ++writer) {
        writers.emplace_back([&path, writer] {
            for (int i = 0; i < perWriter; ++i) {
                const std::string pad(static_cast<std::size_t>(i) * 50, 'x');
                static_cast<void>(
                    appendLine(path, nlohmann::json({{"w", writer}, {"i", i}, {"pad", pad}}).dump()));
            }
        });
    }
    for (std::thread &writer : writers)
        writer.join();
    std::vector<int> next(4, 0);
    const Lines lines = readLines(path).value();
    QCOMPARE(lines.lines.size(), std::size_t{4 * perWriter});
    for (const Line &line : lines.lines) {
        const nlohmann::json record = nlohmann::json::parse(line.text);
        QCOMPARE(record.at("i").get<int>(), next[record.at("w").get<std::size_t>()]++);
    }
}

/// A child appends numbered records and confirms each on a pipe; it is killed at a moment that moves from
/// round to round. All confirmed records must be there, in order, and every line must be whole.
void TestJsonLines::aKillLosesAtMostTheLineInFlight()
{
    const QTemporaryDir dir;
    const fs::path path = in(dir, "t.jsonl");
    int expected = 0;
    for (int round = 0; round < 30; ++round) {
        int pipe[2];
        QCOMPARE(::pipe(pipe), 0);
        const pid_t child = ::fork();
        QVERIFY(child >= 0);
        if (child == 0) {
            for (int i = expected;; ++i) {
                const std::string pad(static_cast<std::size_t>(i % 7) * 30'000, 'x');
                const std::string record = "{\"i\":" + std::to_string(i) + ",\"pad\":\"" + pad + "\"}";
                if (!appendLine(path, record) || ::write(pipe[1], &i, sizeof i) != sizeof i)
                    ::_exit(1);
            }
        }
        ::close(pipe[1]);
        std::this_thread::sleep_for(std::chrono::microseconds(500 + 613 * round));
        ::kill(child, SIGKILL);
        ::waitpid(child, nullptr, 0);
        int confirmed = expected - 1;
        for (int i = 0; ::read(pipe[0], &i, sizeof i) == sizeof i;)
            confirmed = i;
        ::close(pipe[0]);

        const Result<Lines> read = readLines(path);
        if (!read) { // killed before the file was made
            QCOMPARE(confirmed, -1);
            continue;
        }
        expected = static_cast<int>(read->lines.size());
        QVERIFY(expected == confirmed + 1 || expected == confirmed + 2);
    }
    QVERIFY(expected > 0);
    const Lines all = readLines(path).value(); // once: it is a long file by now
    for (std::size_t i = 0; i < all.lines.size(); ++i)
        QCOMPARE(nlohmann::json::parse(all.lines[i].text).at("i").get<int>(), static_cast<int>(i));
}

QTEST_GUILESS_MAIN(TestJsonLines)
#include "tst_jsonlines.moc"
