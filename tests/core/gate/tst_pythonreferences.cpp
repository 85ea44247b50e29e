// SPDX-License-Identifier: GPL-3.0-or-later
//
// What a python3 process can do wrong, and that each of it is told. The interpreters are scripts of this test; what the packages
// compute is only tried where there is a GPU.
#include "core/gate/references/python.h"

#include "gatefixture.h"

#include <QtTest>

#include <csignal>
#include <filesystem>
#include <fstream>

using namespace klineage;
using namespace klineage::gate;

namespace {

/// Introduces itself, answers "begin" and "add", and then does `then`, a Python statement.
std::string speaker(const std::string &then)
{
    return "#!/usr/bin/env python3\n"
           "import json, socket, struct, sys, time\n"
           "s = socket.socket(fileno=3)\n"
           "def send(m):\n"
           "    d = json.dumps(m).encode()\n"
           "    s.sendall(struct.pack('<I', len(d)) + d)\n"
           "def receive():\n"
           "    n = struct.unpack('<I', s.recv(4, socket.MSG_WAITALL))[0]\n"
           "    return json.loads(s.recv(n, socket.MSG_WAITALL))\n"
           "send({'hello': 'klineage-reference', 'version': 1, 'text': 'tried 1.2'})\n"
           "receive(); send({'ok': True})\n"
           "receive(); send({'ok': True, 'subject': 0})\n"
           "receive()\n"
           + then + "\n";
}

/// The program's own script over packages that only look like torch and FlashInfer.
const std::string withPackages = "#!/bin/sh\nPYTHONPATH='" KLINEAGE_PYTHON_MODULES
                                 "/torch:" KLINEAGE_PYTHON_MODULES "/flashinfer' exec python3 -S \"$@\"\n";

constexpr const char *smallTopk = R"(
name = "topk"
axes = ["B", "S", "K"]
flops = "B * S"
bytes = "4 * B * S + 8 * B * K"
[[tensor]]
name = "x"
role = "input"
dtype = "f32"
shape = ["B", "S"]
[[tensor]]
name = "values"
role = "output"
dtype = "f32"
shape = ["B", "K"]
[[tensor]]
name = "indices"
role = "output"
dtype = "i32"
shape = ["B", "K"]
[[case]]
name = "timed"
axes = { B = 3, S = 20, K = 5 }
exact = true
[oracle]
name = "topk_rows"
args = { in = "x", values = "values", indices = "indices" }
)";

} // namespace

class TestPythonReferences : public QObject
{
    Q_OBJECT
private slots:
    void initTestCase();
    void init() { qunsetenv("KLINEAGE_PYTHON"); }
    void providers();
    void missingPython();
    void startFails_data();
    void startFails();
    void timeFails_data();
    void timeFails();
    void refusalKeepsItAlive();
    void wrongResultIsTold();
    void fastestWay_data();
    void fastestWay();
    void noWay();
    void killedWithItsSession();
    void installed();

private:
    void useInterpreter(const std::string &text);
    std::unique_ptr<PythonSession> begun(const std::string &then);

    QTemporaryDir m_folder;
    workload::Workload m_workload = test::parsed(test::smallMatmul);
    CaseInstancePtr m_instance;
};

void TestPythonReferences::initTestCase()
{
    if (QStandardPaths::findExecutable("python3").isEmpty())
        QSKIP("There is no python3.");
    m_instance = *makeInstance(m_workload, m_workload.cases.front(), 1);
}

void TestPythonReferences::useInterpreter(const std::string &text)
{
    const auto path = std::filesystem::path(m_folder.path().toStdString()) / "python";
    std::filesystem::remove(path);
    std::ofstream(path) << text;
    std::filesystem::permissions(path, std::filesystem::perms::owner_all);
    qputenv("KLINEAGE_PYTHON", path.c_str());
}

std::unique_ptr<PythonSession> TestPythonReferences::begun(const std::string &then)
{
    useInterpreter(speaker(then));
    auto session = PythonSession::start("torch", 60, {});
    if (!session)
        qFatal("%s", session.error().error.message.c_str());
    if (auto done = (*session)->begin(m_instance, 2, {}); !done)
        qFatal("%s", done.error().error.message.c_str());
    if (auto added = (*session)->add({"torch", "gemm_nt", {{"a", "a"}}, {}}); !added || *added != 0)
        qFatal("no subject");
    return std::move(*session);
}

void TestPythonReferences::providers()
{
    for (const char *provider : {"torch", "flashinfer", "fla", "flash_qla", "fa3"})
        QVERIFY(isPythonProvider(provider));
    QVERIFY(!isPythonProvider("cublas") && !isPythonProvider(""));
}

void TestPythonReferences::missingPython()
{
    qputenv("KLINEAGE_PYTHON", "/proc/nowhere/python3");
    const auto session = PythonSession::start("torch", 60, {});
    QVERIFY(!session);
    QVERIFY2(session.error().error.message.find("KLINEAGE_PYTHON") != std::string::npos,
             session.error().error.message.c_str());
}

void TestPythonReferences::startFails_data()
{
    QTest::addColumn<QString>("interpreter");
    QTest::addColumn<QString>("provider");
    QTest::addColumn<QString>("says");
    // The program's own script, in a Python without packages.
    const QString bare = "#!/bin/sh\nexec python3 -I -S \"$@\"\n";
    QTest::newRow("no package") << bare << "torch"
                                << "cannot import it: No module named 'torch'";
    QTest::newRow("no such provider")
        << bare << "jax"
        << "there is no provider 'jax'; expected torch, flashinfer, fla, flash_qla, fa3";
    // Of a package that has torch, but not the routine's own.
    for (const auto &[provider, module] : {std::pair{"flashinfer", "flashinfer"},
                                           {"fla", "fla"},
                                           {"flash_qla", "flash_qla"},
                                           {"fa3", "flash_attn_interface"}})
        QTest::addRow("no %s", provider)
            << QString("#!/bin/sh\nPYTHONPATH='" KLINEAGE_PYTHON_MODULES "/torch' exec python3 -S \"$@\"\n")
            << provider << QString("cannot import it: No module named '%1").arg(module);
    QTest::newRow("garbage") << "#!/bin/sh\nprintf 'hello there' >&3\n"
                             << "torch"
                             << "did not introduce itself";
    QTest::newRow("another protocol") << "#!/bin/sh\nprintf '\\015\\000\\000\\000{\"version\":9}' >&3\n"
                                      << "torch"
                                      << "no introduction";
    QTest::newRow("dies") << "#!/bin/sh\necho out of luck >&2\nexit 3\n"
                          << "torch"
                          << "Its last words: out of luck";
}

void TestPythonReferences::startFails()
{
    QFETCH(const QString, interpreter);
    QFETCH(const QString, provider);
    QFETCH(const QString, says);
    useInterpreter(interpreter.toStdString());
    const auto session = PythonSession::start(provider.toStdString(), 60, {});
    QVERIFY(!session);
    const QString message = QString::fromStdString(session.error().error.message);
    QVERIFY2(message.startsWith("Cannot use " + provider + ": "), qPrintable(message));
    QVERIFY2(message.contains(says), qPrintable(message));
}

void TestPythonReferences::timeFails_data()
{
    QTest::addColumn<QString>("then");
    QTest::addColumn<int>("kind");
    QTest::newRow("ends") << "sys.exit(1)" << static_cast<int>(FailureKind::Died);
    QTest::newRow("cut") << "s.sendall(b'\\x40\\0\\0\\0{\"ok\"')" << static_cast<int>(FailureKind::Died);
    QTest::newRow("no JSON") << "s.sendall(b'\\4\\0\\0\\0oops'); time.sleep(60)"
                             << static_cast<int>(FailureKind::Protocol);
    QTest::newRow("too long") << "s.sendall(b'\\xff\\xff\\xff\\x7f'); time.sleep(60)"
                              << static_cast<int>(FailureKind::Protocol);
    QTest::newRow("not ok") << "send({'ns': 5}); time.sleep(60)" << static_cast<int>(FailureKind::Protocol);
    QTest::newRow("no time") << "send({'ok': True, 'ns': -1}); time.sleep(60)"
                             << static_cast<int>(FailureKind::Protocol);
    QTest::newRow("killed") << "import os; os.kill(os.getpid(), 9)" << static_cast<int>(FailureKind::Died);
}

void TestPythonReferences::timeFails()
{
    QFETCH(const QString, then);
    QFETCH(const int, kind);
    const auto session = begun(then.toStdString());
    const auto sample = session->time(0, {}, 10);
    QVERIFY(!sample);
    QCOMPARE(static_cast<int>(sample.error().kind), kind);
    QVERIFY(!session->alive());
    QCOMPARE(session->time(0, {}, 10).error().error.message, sample.error().error.message);
}

void TestPythonReferences::refusalKeepsItAlive()
{
    const auto session = begun("send({'error': 'out of memory'})\nreceive(); send({'ok': True, 'ns': 12.5})");
    const auto refused = session->time(0, {}, 10);
    QVERIFY(!refused);
    QCOMPARE(refused.error().error.message, std::string("Cannot use torch: out of memory."));
    QVERIFY(session->alive());
    const auto sample = session->time(0, {}, 10);
    QVERIFY(sample);
    QCOMPARE(sample->ns, 12.5);
    QCOMPARE(session->version(), std::string("tried 1.2"));
}

void TestPythonReferences::wrongResultIsTold()
{
    // It says that it ran, and wrote nothing.
    const auto session = begun("send({'ok': True})");
    const auto wrong = session->check(0);
    QVERIFY(wrong);
    QVERIFY(wrong->has_value());
    QVERIFY2((*wrong)->find("4096 of 4096 elements differ") != std::string::npos, (*wrong)->c_str());
}

void TestPythonReferences::fastestWay_data()
{
    QTest::addColumn<QString>("op");
    QTest::addColumn<QString>("way");
    QTest::addColumn<double>("ns");
    QTest::newRow("unsorted") << "topk_rows"
                              << "cub" << 2000.0;
    QTest::newRow("one of them fails") << "topk_sorted_rows"
                                       << "sort afterwards" << 5000.0;
}

void TestPythonReferences::fastestWay()
{
    QFETCH(const QString, op);
    QFETCH(const QString, way);
    QFETCH(const double, ns);
    useInterpreter(withPackages);
    const auto session = PythonSession::start("flashinfer", 60, {});
    QVERIFY2(session, session ? "" : session.error().error.message.c_str());
    QCOMPARE((*session)->version(), std::string("flashinfer 1.2.3 (torch 0.0.0)"));
    const workload::Workload topk = test::parsed(smallTopk);
    const auto begun = (*session)->begin(*makeInstance(topk, topk.cases.front(), 1), 3, {});
    QVERIFY2(begun, begun ? "" : begun.error().error.message.c_str());
    const auto subject = (*session)->add(
        {"flashinfer", op.toStdString(), {{"in", "x"}, {"out", "values"}, {"indices", "indices"}}, {}});
    QVERIFY2(subject, subject ? "" : subject.error().error.message.c_str());
    QCOMPARE((*session)->version(*subject), "flashinfer 1.2.3 (torch 0.0.0): " + way.toStdString());
    const auto wrong = (*session)->check(*subject);
    QVERIFY2(wrong, wrong ? "" : wrong.error().error.message.c_str());
    QVERIFY2(!*wrong, wrong->value_or("").c_str());
    const auto sample = (*session)->time(*subject, {}, 10);
    QVERIFY2(sample, sample ? "" : sample.error().error.message.c_str());
    QCOMPARE(sample->ns, ns);
}

void TestPythonReferences::noWay()
{
    useInterpreter(withPackages);
    const auto session = PythonSession::start("flashinfer", 60, {});
    QVERIFY(session);
    const workload::Workload topk = test::parsed(smallTopk);
    QVERIFY((*session)->begin(*makeInstance(topk, topk.cases.front(), 1), 1, {}));
    const auto refused =
        (*session)->add({"flashinfer", "topk_rows", {{"in", "values"}, {"out", "values"}}, {}});
    QVERIFY(!refused);
    const std::string &why = refused.error().error.message;
    QVERIFY2(why.find("radix: k is not below the row's length; cub: k is not") != std::string::npos,
             why.c_str());
    QVERIFY((*session)->alive());
}

void TestPythonReferences::killedWithItsSession()
{
    auto session = begun("time.sleep(600)");
    const pid_t pid = session->pid();
    QCOMPARE(::kill(pid, 0), 0);
    session.reset();
    QCOMPARE(::kill(pid, 0), -1);
}

void TestPythonReferences::installed()
{
    const auto versions = installedPythonReferences();
    QVERIFY2(versions, versions ? "" : versions.error().message.c_str());
    for (const auto &[provider, version] : *versions)
        QVERIFY(isPythonProvider(provider) && !version.empty());
}

QTEST_GUILESS_MAIN(TestPythonReferences)
#include "tst_pythonreferences.moc"
