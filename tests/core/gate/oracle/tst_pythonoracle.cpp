// SPDX-License-Identifier: GPL-3.0-or-later
//
// An oracle that a workload brings: what it computes, and that whatever else its process does costs an error and nothing more.
#include "core/files/atomicfile.h"
#include "core/gate/check/caseinstance.h"
#include "core/gate/oracle/pythonoracle.h"

#include <QtTest>

using namespace klineage;
using namespace klineage::gate;

namespace {

/// y[i][j] = x[i][j] · w[j] + 0.5, in whatever arrays come.
constexpr const char *scale =
    "def run(x, w, offset):\n"
    "    return [[float(a) * float(b) + offset for a, b in zip(row, w)] for row in x]\n";

std::string workloadText(const std::string &source, const std::string &keys = "arrays = \"lists\"")
{
    return R"(name = "scaled"
axes = ["R", "C"]
flops = "2 * R * C"
bytes = "8 * R * C"
[[tensor]]
name = "x"
role = "input"
dtype = "f16"
shape = ["R", "C"]
[[tensor]]
name = "w"
role = "input"
dtype = "bf16"
shape = ["C"]
[[tensor]]
name = "y"
role = "output"
dtype = "f32"
shape = ["R", "C"]
[[case]]
name = "timed"
axes = { R = 5, C = 7 }
[oracle]
provider = "python"
arguments = ["x", "w", "0.5"]
)" + keys + "\nsource = '''\n"
           + source + "'''\n";
}

workload::Workload workloadOf(const std::string &source, const std::string &keys = "arrays = \"lists\"")
{
    auto workload = workload::parseWorkload(workloadText(source, keys), "test.toml");
    if (!workload)
        qFatal("%s", workload.error().message.c_str());
    return std::move(*workload);
}

std::vector<HostTensor> tensorsOf(const workload::Workload &workload)
{
    return generateCase(workload, workload.cases.front(), 7).value();
}

QString messageOf(const Result<Expected> &expected)
{
    return expected ? QString() : QString::fromStdString(expected.error().message);
}

void compareScaled(const workload::Workload &workload)
{
    const auto tensors = tensorsOf(workload);
    PythonOracles oracles;
    const auto expected = oracles.compute(workload, tensors);
    if (!expected && expected.error().code == ErrorCode::Unavailable)
        QSKIP(expected.error().message.c_str());
    QVERIFY2(expected, qPrintable(messageOf(expected)));
    const std::vector<double> &y = expected->at("y");
    QCOMPARE(y.size(), std::size_t{35});
    for (std::size_t i = 0; i < y.size(); ++i) {
        const double x = kernel::loadElement(tensors[0].bytes.data(), tensors[0].dtype, i);
        const double w = kernel::loadElement(tensors[1].bytes.data(), tensors[1].dtype, i % 7);
        QVERIFY(std::abs(y[i] - (x * w + 0.5)) < 1e-12);
    }
}

} // namespace

class TestPythonOracle : public QObject
{
    Q_OBJECT
private slots:
    void initTestCase();
    void computes_data();
    void computes();
    void declaredTypesArrive();
    void otherFormsOfResults_data();
    void otherFormsOfResults();
    void refusals_data();
    void refusals();
    void aHangIsEnded();
    void deathIsToldAndTheNextOneLives();
    void itReachesNothing_data();
    void itReachesNothing();
    void aFloodOfWordsDoesNoHarm();
    void theFileIsReadBesideTheWorkload();
    void wordsOfTheFormat_data();
    void wordsOfTheFormat();
};

void TestPythonOracle::initTestCase()
{
    qputenv("KLINEAGE_TEST_SECRET", "told");
    const auto workload = workloadOf(scale);
    const auto started = OracleProcess::start(*workload.python);
    if (!started && started.error().code == ErrorCode::Unavailable)
        QSKIP(started.error().message.c_str());
    QVERIFY2(started, started ? "" : started.error().message.c_str());
    QVERIFY((*started)->version().find("Python 3") != std::string::npos);
}

void TestPythonOracle::computes_data()
{
    QTest::addColumn<QString>("keys");
    QTest::newRow("lists") << "arrays = \"lists\"";
    QTest::newRow("numpy") << "arrays = \"numpy\"";
    QTest::newRow("torch") << "arrays = \"torch\"";
}

void TestPythonOracle::computes()
{
    QFETCH(QString, keys);
    compareScaled(workloadOf(scale, keys.toStdString()));
}

void TestPythonOracle::declaredTypesArrive()
{
    for (const char *arrays : {"numpy", "torch"}) {
        const std::string source = "def run(x, w, offset):\n"
                                   "    assert '16' in str(x.dtype), x.dtype\n"
                                   "    return x.reshape(5, 7) * 0 + 1\n";
        const auto workload =
            workloadOf(source, "precision = \"declared\"\narrays = \"" + std::string(arrays) + "\"");
        const auto expected = PythonOracles().compute(workload, tensorsOf(workload));
        if (!expected && expected.error().code == ErrorCode::Unavailable)
            continue;
        QVERIFY2(expected, qPrintable(messageOf(expected)));
        QCOMPARE(expected->at("y").back(), 1.0);
    }
}

void TestPythonOracle::otherFormsOfResults_data()
{
    QTest::addColumn<QString>("result");
    QTest::newRow("a tuple of one") << "(rows,)";
    QTest::newRow("by name") << "{'y': rows}";
    QTest::newRow("tuples") << "tuple(tuple(row) for row in rows)";
}

void TestPythonOracle::otherFormsOfResults()
{
    QFETCH(QString, result);
    const auto workload = workloadOf(
        "def run(x, w, offset):\n    rows = [[i * 7.0 + j for j in range(7)] for i in range(5)]\n    return "
        + result.toStdString() + "\n");
    const auto expected = PythonOracles().compute(workload, tensorsOf(workload));
    QVERIFY2(expected, qPrintable(messageOf(expected)));
    for (std::size_t i = 0; i < 35; ++i)
        QCOMPARE(expected->at("y")[i], static_cast<double>(i));
}

void TestPythonOracle::refusals_data()
{
    QTest::addColumn<QString>("source");
    QTest::addColumn<QString>("message");
    const QString run = "def run(x, w, offset):\n    ";
    QTest::newRow("no such function") << "x = 1\n"
                                      << "it has no function run";
    QTest::newRow("a syntax error") << "def run(:\n"
                                    << "SyntaxError";
    QTest::newRow("an exception, and its line") << run + "y = 1\n    return y / 0\n"
                                                << "ZeroDivisionError: division by zero (line 3)";
    QTest::newRow("it exits") << run + "raise SystemExit(3)\n"
                              << "SystemExit: 3";
    QTest::newRow("one row less") << run + "return x[1:]\n"
                                  << "a length of 4 where 5 elements are expected";
    QTest::newRow("a number") << run + "return 3\n"
                              << "a single value where 5 elements";
    QTest::newRow("nothing") << run + "pass\n"
                             << "a single value where 5 elements";
    QTest::newRow("words") << run + "return [['a'] * 7] * 5\n"
                           << "no tensor";
    QTest::newRow("two results") << run + "return x, x\n"
                                 << "has another shape";
    QTest::newRow("another name") << run + "return {'z': x}\n"
                                  << "it returns no y";
    QTest::newRow("NaN") << run + "return [[float('nan')] * 7] * 5\n"
                         << "gives NaN for 35 of 35 elements of y";
    QTest::newRow("other values each time")
        << "calls = []\n" + run + "calls.append(1)\n    return [[float(len(calls))] * 7] * 5\n"
        << "is not deterministic";
    QTest::newRow("too deep") << "def run(x, w, offset):\n    return run(x, w, offset)\n"
                              << "RecursionError";
    QTest::newRow("no such module") << "import klineage_no_such_module\n"
                                    << "klineage_no_such_module";
}

void TestPythonOracle::refusals()
{
    QFETCH(QString, source);
    QFETCH(QString, message);
    const auto workload = workloadOf(source.toStdString());
    const auto expected = PythonOracles().compute(workload, tensorsOf(workload));
    QVERIFY(!expected);
    QVERIFY2(messageOf(expected).contains(message), qPrintable(messageOf(expected)));
}

void TestPythonOracle::aHangIsEnded()
{
    const auto workload = workloadOf("def run(x, w, offset):\n    while True:\n        pass\n");
    PythonOracleLimits limits;
    limits.callSeconds = 2;
    PythonOracles oracles(limits);
    const auto expected = oracles.compute(workload, tensorsOf(workload));
    QVERIFY(!expected);
    QCOMPARE(expected.error().code, ErrorCode::Timeout);
}

void TestPythonOracle::deathIsToldAndTheNextOneLives()
{
    PythonOracles oracles;
    for (const char *how :
         {"import os, signal\ndef run(x, w, offset):\n    os._exit(3)\n",
          "import ctypes\ndef run(x, w, offset):\n    ctypes.string_at(1)\n",
          "import os\ndef run(x, w, offset):\n    os.write(3, b'no frame at all')\n    return x\n",
          "import os\ndef run(x, w, offset):\n    os.close(3)\n    return x\n"}) {
        const auto workload = workloadOf(how);
        const auto expected = oracles.compute(workload, tensorsOf(workload));
        QVERIFY2(!expected, how);
    }
    const auto workload = workloadOf(scale);
    QVERIFY(oracles.compute(workload, tensorsOf(workload)));
}

void TestPythonOracle::itReachesNothing_data()
{
    QTest::addColumn<QString>("statement");
    QTest::addColumn<bool>("needsLandlock");
    QTest::newRow("forks") << "os.fork()" << false;
    QTest::newRow("starts a program") << "import subprocess; subprocess.run(['/bin/true'])" << false;
    QTest::newRow("becomes one") << "os.execv('/bin/true', ['true'])" << false;
    QTest::newRow("connects")
        << "import socket; socket.socket(socket.AF_INET, socket.SOCK_STREAM).connect(('127.0.0.1', 9))"
        << false;
    QTest::newRow("signals its parent") << "os.kill(os.getppid(), 0)" << false;
    QTest::newRow("writes elsewhere") << "open(folder + '/written', 'w')" << true;
    QTest::newRow("removes") << "os.remove(folder + '/kept')" << true;
    QTest::newRow("reads") << "open(folder + '/kept').read()" << true;
    QTest::newRow("lists") << "os.listdir(folder)" << true;
    QTest::newRow("looks into its environment") << "print(os.environ['KLINEAGE_TEST_SECRET'])" << false;
}

void TestPythonOracle::itReachesNothing()
{
    QFETCH(QString, statement);
    QFETCH(bool, needsLandlock);
    if (!process::isolationSupport().seccomp
        || (needsLandlock && process::isolationSupport().landlockAbi == 0))
        QSKIP("This kernel does not confine it.");
    const QTemporaryDir folder;
    QVERIFY(files::writeFileAtomic(folder.filePath("kept").toStdString(), "text"));
    const std::string source = "import os\nfolder = '" + folder.path().toStdString()
                               + "'\ndef run(x, w, offset):\n    " + statement.toStdString()
                               + "\n    return x\n";
    const auto workload = workloadOf(source);
    const auto expected = PythonOracles().compute(workload, tensorsOf(workload));
    QVERIFY2(!expected, "it was allowed");
    QVERIFY(QFile::exists(folder.filePath("kept")));
    QVERIFY(!QFile::exists(folder.filePath("written")));
}

void TestPythonOracle::aFloodOfWordsDoesNoHarm()
{
    const auto workload = workloadOf(
        "import sys\ndef run(x, w, offset):\n    for i in range(200):\n        print('x' * 65536)\n"
        "        print('y' * 65536, file=sys.stderr)\n    return x\n");
    const auto expected = PythonOracles().compute(workload, tensorsOf(workload));
    QVERIFY2(expected, qPrintable(messageOf(expected)));
}

void TestPythonOracle::theFileIsReadBesideTheWorkload()
{
    const QTemporaryDir folder;
    workload::Workload workload = workloadOf(scale);
    workload.python->source.clear();
    workload.python->file = "reference.py";
    const std::string text = workload::writeWorkload(workload);
    QVERIFY(text.find("file = \"reference.py\"") != std::string::npos);
    QVERIFY(files::writeFileAtomic(folder.filePath("workload.toml").toStdString(), text));
    QVERIFY(!workload::readWorkload(folder.path().toStdString()));
    QVERIFY(files::writeFileAtomic(folder.filePath("reference.py").toStdString(), "\xff\xfe"));
    QVERIFY(!workload::readWorkload(folder.path().toStdString()));
    QVERIFY(files::writeFileAtomic(folder.filePath("reference.py").toStdString(), scale));
    const auto read = workload::readWorkload(folder.path().toStdString());
    QVERIFY2(read, read ? "" : read.error().message.c_str());
    QCOMPARE(read->python->source, std::string(scale));
    // As it travels to a gate: one text.
    const auto again = workload::parseWorkload(workload::writeWorkload(*read), "again.toml");
    QVERIFY2(again, again ? "" : again.error().message.c_str());
    QCOMPARE(again->python->source, std::string(scale));
    QCOMPARE(again->python->arguments, workload.python->arguments);
}

void TestPythonOracle::wordsOfTheFormat_data()
{
    QTest::addColumn<QString>("from");
    QTest::addColumn<QString>("to");
    QTest::addColumn<QString>("message");
    QTest::newRow("neither source nor file") << "source = '''"
                                             << "description = '''"
                                             << "either a 'file'";
    QTest::newRow("a file elsewhere") << "arrays = \"lists\""
                                      << "file = \"../a.py\""
                                      << "either a 'file'";
    QTest::newRow("an unknown argument") << "\"0.5\""
                                         << "\"z\""
                                         << "'z' is neither an input, nor a number";
    QTest::newRow("an output") << "\"0.5\""
                               << "\"y\""
                               << "'y' is neither";
    QTest::newRow("no number") << "\"0.5\""
                               << "\"1e999\""
                               << "is neither";
    QTest::newRow("arrays") << "\"lists\""
                            << "\"jax\""
                            << "arrays";
    QTest::newRow("provider") << "\"python\""
                              << "\"ruby\""
                              << "provider";
    QTest::newRow("function") << "arrays = \"lists\""
                              << "function = \"os.system\""
                              << "no Python identifier";
}

void TestPythonOracle::wordsOfTheFormat()
{
    QFETCH(QString, from);
    QFETCH(QString, to);
    QFETCH(QString, message);
    const QString text = QString::fromStdString(workloadText(scale)).replace(from, to);
    const auto workload = workload::parseWorkload(text.toStdString(), "test.toml");
    QVERIFY(!workload);
    QVERIFY2(QString::fromStdString(workload.error().message).contains(message),
             workload.error().message.c_str());
}

QTEST_GUILESS_MAIN(TestPythonOracle)
#include "tst_pythonoracle.moc"
