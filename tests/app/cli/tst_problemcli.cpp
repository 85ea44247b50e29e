// SPDX-License-Identifier: GPL-3.0-or-later
//
// From a definition of another benchmark to the verdict of the gate: `workload import`, `workload check`, `gate run`.
#include "core/files/atomicfile.h"
#include "core/pool/gateclient.h"
#include "tests/app/cli/rows.h"
#include "tests/paths.h"

#include <QDir>
#include <QJsonArray>
#include <QTemporaryDir>
#include <QTest>

#include <filesystem>

using namespace klineage;
using namespace klineage::tests;

namespace {

/// After the public schema of FlashInfer Trace; its reference is plain Python, so that it computes with whatever arrays there are.
constexpr const char *definition = R"json({
  "name": "rownorm_d96",
  "op_type": "rmsnorm",
  "description": "Each row divided by its root mean square, times a weight.",
  "axes": {"rows": {"type": "var"}, "hidden": {"type": "const", "value": 96}},
  "inputs": {
    "x": {"shape": ["rows", "hidden"], "dtype": "float32"},
    "weight": {"shape": ["hidden"], "dtype": "float32"},
    "eps": {"shape": null, "dtype": "float32"}
  },
  "outputs": {"y": {"shape": ["rows", "hidden"], "dtype": "float32"}},
  "reference": "def run(x, weight, eps):\n    out = []\n    for row in x:\n        values = [float(v) for v in row]\n        scale = (sum(v * v for v in values) / len(values) + eps) ** -0.5\n        out.append([v * scale * float(w) for v, w in zip(values, weight)])\n    return out\n"
})json";

constexpr const char *bindings =
    R"({"uuid": "a", "axes": {"rows": 256}, "inputs": {"x": {"type": "random"}, "weight": {"type": "random"}, "eps": {"type": "scalar", "value": 1e-5}}}
{"uuid": "b", "axes": {"rows": 3}, "inputs": {"x": {"type": "random"}, "weight": {"type": "random"}, "eps": {"type": "scalar", "value": 1e-5}}}
)";

std::string kernelText(const std::string &result)
{
    return "/*klineage\nsurface = \"opencl\"\n\n[[launch]]\nkernel = \"norm\"\ngrid = [\"rows\"]\nblock = [1]\n"
           "args = [\"x\", \"weight\", \"y\", \"int hidden\"]\n*/\n"
           "__kernel void norm(__global const float *x, __global const float *weight, __global float *y, int hidden)\n{\n"
           "    x += get_global_id(0) * hidden;\n    y += get_global_id(0) * hidden;\n    float sum = 0.0f;\n"
           "    for (int i = 0; i < hidden; ++i)\n        sum += x[i] * x[i];\n"
           "    float scale = 1.0f / sqrt(sum / hidden + 1e-5f);\n"
           "    for (int i = 0; i < hidden; ++i)\n        y[i] = "
           + result + ";\n}\n";
}

} // namespace

class TestProblemCli : public QObject
{
    Q_OBJECT
private slots:
    void initTestCase();
    void importAndCheck();
    void verdicts_data();
    void verdicts();
    void whatIsSkippedIsSaid();
    void aFunctionToAVerdict();
    void anotherFunctionInItsPlace();
    void functionsThatAreRefused_data();
    void functionsThatAreRefused();

private:
    [[nodiscard]] Outcome run(QStringList arguments) const;

    QTemporaryDir m_folder;
    bool m_hasDevice = false;
};

Outcome TestProblemCli::run(QStringList arguments) const
{
    QProcess process;
    arguments << "--workspace" << m_folder.path() << "--json";
    process.start(QString::fromStdString(klineage::test::programPath("/klineage-cli")), arguments);
    return outcomeOf(process);
}

void TestProblemCli::initTestCase()
{
    QVERIFY(QDir(m_folder.path()).mkpath("workloads") && QDir(m_folder.path()).mkpath("skills")
            && QDir(m_folder.path()).mkpath("set"));
    QVERIFY(files::writeFileAtomic(m_folder.filePath("set/rownorm.json").toStdString(), definition));
    QVERIFY(files::writeFileAtomic(m_folder.filePath("set/rownorm.jsonl").toStdString(), bindings));
    QVERIFY(files::writeFileAtomic(m_folder.filePath("set/readme.txt").toStdString(), "no problem"));
    QVERIFY(files::writeFileAtomic(m_folder.filePath("right.cl").toStdString(),
                                   kernelText("x[i] * scale * weight[i]")));
    QVERIFY(files::writeFileAtomic(m_folder.filePath("wrong.cl").toStdString(), kernelText("x[i] * scale")));
    const auto devices = gate::queryDevices(klineage::test::programPath("/klineage-gate"));
    QVERIFY2(devices, devices ? "" : devices.error().message.c_str());
    for (const gate::DeviceInfo &device : *devices)
        m_hasDevice = m_hasDevice || (device.kind == kernel::DeviceKind::OpenCl && device.available);
}

void TestProblemCli::importAndCheck()
{
    const Outcome imported = run({"workload", "import", m_folder.filePath("set")});
    if (imported.out.contains("It needs python3"))
        QSKIP("There is no python3.");
    QVERIFY2(imported.status == 0, (imported.out + imported.err).constData());
    QCOMPARE(imported.json["imported"].toInt(), 1);
    QCOMPARE(imported.json["skipped"].toInt(), 1);
    const Outcome shown = run({"workload", "show", "rownorm_d96"});
    QCOMPARE(shown.json["oracle"].toString(), QString("python"));
    const Outcome checked = run({"workload", "check", "rownorm_d96"});
    QVERIFY2(checked.status == 0, (checked.out + checked.err).constData());
    QCOMPARE(checked.json["cases"].toArray().size(), 4);
    QCOMPARE(run({"workload", "import", m_folder.filePath("set/rownorm.json")}).json["imported"].toInt(), 0);
}

void TestProblemCli::verdicts_data()
{
    QTest::addColumn<QString>("file");
    QTest::addColumn<QString>("status");
    QTest::newRow("right") << "right.cl"
                           << "correct";
    QTest::newRow("wrong") << "wrong.cl"
                           << "wrong";
}

void TestProblemCli::verdicts()
{
    QFETCH(QString, file);
    QFETCH(QString, status);
    if (!m_hasDevice)
        QSKIP("No OpenCL device.");
    if (!QFile::exists(m_folder.filePath("workloads/rownorm_d96/workload.toml")))
        QSKIP("Nothing was imported.");
    const Outcome outcome = run({"gate", "run", m_folder.filePath(file), "--workload", "rownorm_d96",
                                 "--timeout", "300", "--profile-seconds", "0.3", "--no-reference"});
    QVERIFY2(outcome.json["status"].toString() == status, (outcome.out + outcome.err).constData());
    bool python = false;
    for (const auto &entry : outcome.json["trial"].toObject()["verdict"].toObject()["evidence"].toArray())
        python = python || entry.toObject()["value"].toString().startsWith("python: ");
    QVERIFY2(python, outcome.out.constData());
}

void TestProblemCli::whatIsSkippedIsSaid()
{
    QProcess process;
    process.start(
        QString::fromStdString(klineage::test::programPath("/klineage-cli")),
        {"workload", "import", m_folder.filePath("set/readme.txt"), "--workspace", m_folder.path()});
    const Outcome outcome = outcomeOf(process);
    QCOMPARE(outcome.status, 1);
    QVERIFY(outcome.out.contains("skipped readme.txt: It is neither a definition"));
    QVERIFY(outcome.out.contains("0 imported, 1 skipped."));
    QCOMPARE(run({"workload", "import", m_folder.filePath("none")}).status, 2);
    QCOMPARE(run({"workload", "import", m_folder.filePath("set"), "--set", "rows"}).status, 2);
}

/// From a Python function to the verdict on a kernel, as the README has it.
void TestProblemCli::aFunctionToAVerdict()
{
    QVERIFY(files::writeFileAtomic(
        m_folder.filePath("leaky.py").toStdString(),
        "def run(x: \"f32[R, C]\", slope=0.125) -> \"f32[R, C]\":\n"
        "    return [[v if v > 0 else slope * v for v in map(float, row)] for row in x]\n"));
    const QStringList made = {"workload", "new",     m_folder.filePath("leaky.py"),
                              "--size",   "R=64",    "--size",
                              "C=96",     "--flops", "R * C"};
    const Outcome dry = run(made + QStringList{"--dry-run"});
    if (dry.err.contains("It needs python3"))
        QSKIP("There is no python3.");
    QVERIFY2(dry.status == 0, (dry.out + dry.err).constData());
    QVERIFY(!QFile::exists(m_folder.filePath("workloads/leaky")));
    const Outcome done = run(made);
    QVERIFY2(done.status == 0, (done.out + done.err).constData());
    QVERIFY(QFile::exists(m_folder.filePath("workloads/leaky/reference.py")));
    const Outcome refused = run(made); // there is one already
    QCOMPARE(refused.status, 2);
    QVERIFY2(refused.err.contains("--replace"), refused.err.constData());
    const Outcome checked = run({"workload", "check", "leaky"});
    QVERIFY2(checked.status == 0, (checked.out + checked.err).constData());
    QVERIFY(files::writeFileAtomic(
        m_folder.filePath("leaky.cl").toStdString(),
        "__kernel void leaky(__global const float *x, __global float *y, int n)\n{\n    int i = get_global_id(0);\n"
        "    if (i < n)\n        y[i] = x[i] > 0.0f ? x[i] : 0.125f * x[i];\n}\n"));
    const Outcome plan =
        run({"lineage", "new", m_folder.filePath("leaky.cl"), "--workload", "leaky", "--dry-run"});
    QVERIFY2(plan.status == 0, (plan.out + plan.err).constData());
    if (!m_hasDevice)
        QSKIP("No OpenCL device.");
    const Outcome gated =
        run({"lineage", "new", m_folder.filePath("leaky.cl"), "--workload", "leaky", "--name", "first"});
    QVERIFY2(gated.status == 0, (gated.out + gated.err).constData());
}

/// The old definition is kept, a function that is refused replaces nothing, and lineages stay.
void TestProblemCli::anotherFunctionInItsPlace()
{
    const QString folder = m_folder.filePath("workloads/twice");
    const auto function = [this](const char *factor) {
        QVERIFY(
            files::writeFileAtomic(m_folder.filePath("twice.py").toStdString(),
                                   std::string("def run(x: \"f32[R, C]\") -> \"f32[R, C]\":\n    return [[")
                                       + factor + " for v in map(float, row)] for row in x]\n"));
    };
    const auto textOf = [&folder](const QString &name) {
        QFile file(folder + '/' + name);
        return file.open(QIODevice::ReadOnly) ? file.readAll() : QByteArray("nothing");
    };
    const QStringList made = {"workload", "new", m_folder.filePath("twice.py"), "--size", "R=16",
                              "--size",   "C=24"};
    function("2.0 * v");
    const Outcome first = run(made + QStringList{"--replace"}); // nothing to replace
    if (first.err.contains("It needs python3"))
        QSKIP("There is no python3.");
    QVERIFY2(first.status == 0, (first.out + first.err).constData());
    QVERIFY(first.json["kept"].isNull());
    QVERIFY(QDir(folder).mkpath("lineages/pocl"));
    const QByteArray toml = textOf("workload.toml");
    const QByteArray source = textOf("reference.py");

    function("0.0 * v");
    QCOMPARE(run(made + QStringList{"--replace"}).status, 1);
    function("3.0 * v");
    const Outcome dry = run(made + QStringList{"--replace", "--dry-run"});
    QVERIFY2(dry.status == 0, (dry.out + dry.err).constData());
    QCOMPARE(textOf("reference.py"), source);
    QVERIFY(!QFile::exists(folder + "/replaced-1"));

    const Outcome second = run(made + QStringList{"--replace"});
    QVERIFY2(second.status == 0, (second.out + second.err).constData());
    QCOMPARE(second.json["kept"].toString(), folder + "/replaced-1");
    QCOMPARE(second.json["lineages"].toArray(), QJsonArray{"pocl"});
    QVERIFY(textOf("reference.py").contains("3.0 * v"));
    QCOMPARE(textOf("replaced-1/reference.py"), source);
    QCOMPARE(textOf("replaced-1/workload.toml"), toml);
    QCOMPARE(run(made + QStringList{"--replace"}).json["kept"].toString(), folder + "/replaced-2");
    QCOMPARE(run({"workload", "check", "twice"}).status, 0);
    QVERIFY(QDir(folder + "/lineages/pocl").exists());
}

void TestProblemCli::functionsThatAreRefused_data()
{
    QTest::addColumn<QString>("body");
    QTest::addColumn<int>("status");
    QTest::addColumn<QString>("why");
    QTest::newRow("zeros") << "return [[0.0 for v in row] for row in x]" << 1 << "takes no work";
    QTest::newRow("not deterministic")
        << "import random\n    return [[random.random() for v in row] for row in x]" << 1 << "";
    QTest::newRow("another shape") << "return [1.0, 2.0]" << 1 << "";
    QTest::newRow("an exception") << "raise ValueError('no')" << 1 << "no";
    QTest::newRow("a process") << "import os\n    os.fork()\n    return x" << 1 << "";
    QTest::newRow("a file") << "open('/tmp/klineage-was-here', 'w')\n    return x" << 1 << "";
}

void TestProblemCli::functionsThatAreRefused()
{
    QFETCH(QString, body);
    QFETCH(int, status);
    QFETCH(QString, why);
    QVERIFY(
        files::writeFileAtomic(m_folder.filePath("bad.py").toStdString(),
                               "def run(x: 'f32[R, C]') -> 'f32[R, C]':\n    " + body.toStdString() + "\n"));
    const Outcome outcome =
        run({"workload", "new", m_folder.filePath("bad.py"), "--size", "R=16", "--size", "C=32"});
    if (outcome.err.contains("It needs python3"))
        QSKIP("There is no python3.");
    QVERIFY2(outcome.status == status, (outcome.out + outcome.err).constData());
    QVERIFY2(outcome.err.contains(why.toUtf8()), outcome.err.constData());
    QVERIFY(!QFile::exists(m_folder.filePath("workloads/bad")));
    QVERIFY(!QFile::exists("/tmp/klineage-was-here"));
}

QTEST_GUILESS_MAIN(TestProblemCli)
#include "tst_problemcli.moc"
