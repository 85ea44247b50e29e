// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/process/childprocess.h"
#include "core/process/sharedmemory.h"
#include "tests/patience.h"

#include <QtTest>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <sys/resource.h>
#include <thread>

using namespace klineage;
using process::ChildOptions;
using process::ChildProcess;
using process::Deadline;

namespace {

ChildOptions shell(const std::string &script)
{
    ChildOptions options;
    options.command = {"sh", "-c", script};
    return options;
}

std::size_t openDescriptors()
{
    std::size_t count = 0;
    for ([[maybe_unused]] const auto &entry : std::filesystem::directory_iterator("/proc/self/fd"))
        ++count;
    return count;
}

bool processExists(pid_t pid)
{
    return ::kill(pid, 0) == 0;
}

/// Gone, or a zombie that its new parent has not reaped yet.
bool processRuns(pid_t pid)
{
    std::ifstream stat("/proc/" + std::to_string(pid) + "/stat");
    std::string text;
    std::getline(stat, text);
    const auto paren = text.rfind(')');
    return paren != std::string::npos && paren + 2 < text.size() && text[paren + 2] != 'Z';
}

} // namespace

class TestChildProcess : public QObject
{
    Q_OBJECT
private slots:
    void exitCodeAndOutput();
    void signalsAreNamed();
    void missingProgram();
    void deadlineLeavesTheChildRunning();
    void outputIsCapped();
    void floodDoesNotBlockTheDeadline();
    void killTakesTheWholeGroup();
    void destructionKills();
    void stdinReachesTheChild();
    void environmentAndFolder();
    void onlyInheritedDescriptorsAreOpen();
    void limitsApply();
    void childSurvivesTheStartingThread();
    void noDescriptorsLeakOverManyChildren();
    void sharedMemoryIsSharedAndCannotShrink();
};

void TestChildProcess::exitCodeAndOutput()
{
    auto child = ChildProcess::start(shell("echo out; echo err >&2; exit 3"));
    QVERIFY(child);
    const auto status = child->wait(Deadline::in(patienceSeconds));
    QVERIFY(status);
    QCOMPARE(status->exitCode, 3);
    QCOMPARE(status->signal, 0);
    QVERIFY(!status->ok());
    QCOMPARE(child->standardOutput().text, std::string("out\n"));
    QCOMPARE(child->standardError().text, std::string("err\n"));
}

void TestChildProcess::signalsAreNamed()
{
    auto child = ChildProcess::start(shell("kill -SEGV $$"));
    QVERIFY(child);
    const auto status = child->wait(Deadline::in(patienceSeconds));
    QVERIFY(status);
    QCOMPARE(status->signal, SIGSEGV);
    QVERIFY(status->describe().find("SIGSEGV") != std::string::npos);
}

void TestChildProcess::missingProgram()
{
    ChildOptions options;
    options.command = {"klineage-no-such-program"};
    const auto child = ChildProcess::start(options);
    QVERIFY(!child);
    QCOMPARE(child.error().code, ErrorCode::NotFound);
    QVERIFY(child.error().message.find("klineage-no-such-program") != std::string::npos);
    options.command.clear();
    QVERIFY(!ChildProcess::start(options));
}

void TestChildProcess::deadlineLeavesTheChildRunning()
{
    auto child = ChildProcess::start(shell("sleep 600"));
    QVERIFY(child);
    QElapsedTimer timer;
    timer.start();
    const auto status = child->wait(Deadline::in(0.2));
    QVERIFY(!status);
    QCOMPARE(status.error().code, ErrorCode::Timeout);
    QVERIFY(timer.elapsed() < patienceMs);
    QVERIFY(!child->tryWait());
    const auto killed = child->kill();
    QCOMPARE(killed.signal, SIGKILL);
}

void TestChildProcess::outputIsCapped()
{
    auto options = shell("head -c 300000 /dev/zero | tr '\\0' x");
    options.outputCapBytes = 1000;
    auto child = ChildProcess::start(options);
    QVERIFY(child);
    QVERIFY(child->wait(Deadline::in(patienceSeconds)));
    QCOMPARE(child->standardOutput().text.size(), std::size_t{1000});
    QCOMPARE(child->standardOutput().droppedBytes, std::uint64_t{299000});
}

void TestChildProcess::floodDoesNotBlockTheDeadline()
{
    auto child = ChildProcess::start(shell("yes; true"));
    QVERIFY(child);
    QElapsedTimer timer;
    timer.start();
    const auto status = child->wait(Deadline::in(0.3));
    QVERIFY(!status);
    QVERIFY(timer.elapsed() < patienceMs);
    QVERIFY(child->standardOutput().text.size() <= std::size_t{1} << 20);
    QVERIFY(child->standardOutput().droppedBytes > 0);
}

void TestChildProcess::killTakesTheWholeGroup()
{
    auto child = ChildProcess::start(shell("sleep 600 & echo $!; wait"));
    QVERIFY(child);
    QTRY_VERIFY_WITH_TIMEOUT((child->drain(), !child->standardOutput().text.empty()), patienceMs);
    const pid_t grandchild = std::stoi(child->standardOutput().text);
    QVERIFY(processRuns(grandchild));
    child->kill();
    QTRY_VERIFY_WITH_TIMEOUT(!processRuns(grandchild), patienceMs);
}

void TestChildProcess::destructionKills()
{
    pid_t pid = -1;
    {
        auto child = ChildProcess::start(shell("sleep 600"));
        QVERIFY(child);
        pid = child->pid();
        ChildProcess moved = std::move(*child);
        QVERIFY(processExists(pid));
    }
    QVERIFY(!processExists(pid)); // killed and reaped
}

void TestChildProcess::stdinReachesTheChild()
{
    auto options = shell("cat");
    options.openStdin = true;
    auto child = ChildProcess::start(options);
    QVERIFY(child);
    QCOMPARE(::write(child->stdinFd(), "hello", 5), ssize_t{5});
    child->closeStdin();
    QVERIFY(child->wait(Deadline::in(patienceSeconds)));
    QCOMPARE(child->standardOutput().text, std::string("hello"));
}

void TestChildProcess::environmentAndFolder()
{
    auto options = shell("echo \"$KLINEAGE_TEST $(pwd)\"");
    options.environment = {{"KLINEAGE_TEST", "set"}};
    options.workingDirectory = "/";
    auto child = ChildProcess::start(options);
    QVERIFY(child);
    QVERIFY(child->wait(Deadline::in(patienceSeconds)));
    QCOMPARE(child->standardOutput().text, std::string("set /\n"));
}

void TestChildProcess::onlyInheritedDescriptorsAreOpen()
{
    // One without close-on-exec must not reach the child; the inherited one must, under its new number.
    const int leaky = ::dup(0);
    auto memory = process::SharedMemory::create(100);
    QVERIFY(memory);
    auto options = shell("ls /proc/self/fd | tr '\\n' ' '");
    options.inherited = {{memory->fd(), 7}};
    auto child = ChildProcess::start(options);
    QVERIFY(child);
    QVERIFY(child->wait(Deadline::in(patienceSeconds)));
    ::close(leaky);
    // ls opens the folder as the next free number, 3
    QCOMPARE(QString::fromStdString(child->standardOutput().text).trimmed(), QString("0 1 2 3 7"));
}

void TestChildProcess::limitsApply()
{
    auto options = shell("ulimit -n; ulimit -c");
    options.limits = {{RLIMIT_NOFILE, 64}, {RLIMIT_CORE, 0}};
    auto child = ChildProcess::start(options);
    QVERIFY(child);
    QVERIFY(child->wait(Deadline::in(patienceSeconds)));
    QCOMPARE(child->standardOutput().text, std::string("64\n0\n"));
}

void TestChildProcess::childSurvivesTheStartingThread()
{
    std::optional<ChildProcess> child;
    std::thread([&] {
        auto started = ChildProcess::start(shell("sleep 600"));
        if (started)
            child = std::move(*started);
    }).join();
    QVERIFY(child);
    QTest::qWait(100);
    QVERIFY(!child->tryWait());
}

void TestChildProcess::noDescriptorsLeakOverManyChildren()
{
    QVERIFY(ChildProcess::start(shell("true"))->wait(Deadline::in(patienceSeconds)));
    const std::size_t before = openDescriptors();
    for (int i = 0; i < 100; ++i) {
        auto options = shell("true");
        options.openStdin = i % 2 == 0;
        auto child = ChildProcess::start(options);
        QVERIFY(child);
        if (i % 3 != 0)
            QVERIFY(child->wait(Deadline::in(patienceSeconds)));
    }
    QCOMPARE(openDescriptors(), before);
}

void TestChildProcess::sharedMemoryIsSharedAndCannotShrink()
{
    auto memory = process::SharedMemory::create(8192);
    QVERIFY(memory);
    memory->bytes()[5] = std::byte{'a'};
    auto options = shell(
        "head -c 6 /proc/self/fd/5 | tail -c 1; printf z | dd of=/proc/self/fd/5 bs=1 seek=9 conv=notrunc 2>/dev/null; "
        "truncate -s 0 /proc/self/fd/5 2>/dev/null && echo shrunk");
    options.inherited = {{memory->fd(), 5}};
    auto child = ChildProcess::start(options);
    QVERIFY(child);
    QVERIFY(child->wait(Deadline::in(patienceSeconds)));
    QCOMPARE(child->standardOutput().text, std::string("a"));
    QCOMPARE(memory->bytes()[9], std::byte{'z'});
    QVERIFY(memory->ensure(std::size_t{3} << 20));
    QCOMPARE(memory->bytes()[9], std::byte{'z'});
}

QTEST_GUILESS_MAIN(TestChildProcess)
#include "tst_childprocess.moc"
