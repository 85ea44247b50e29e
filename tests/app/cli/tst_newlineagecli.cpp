// SPDX-License-Identifier: GPL-3.0-or-later
// `lineage new`: from a kernel to K00.
#include "core/lineage/lineage.h"
#include "core/pool/gateclient.h"
#include "core/workspace/starter.h"
#include "tests/app/cli/rows.h"
#include "tests/paths.h"

#include <QDir>
#include <QFile>
#include <QJsonArray>
#include <QTemporaryDir>
#include <QTest>

#include <filesystem>

using namespace klineage;
using namespace klineage::tests;

namespace {

const char *const siluText = "__kernel void act(__global const float *in, __global float *out, int n)\n"
                             "{\n"
                             "    int i = get_global_id(0);\n"
                             "    if (i < n)\n"
                             "        out[i] = in[i] / (1.0f + exp(-in[i]));\n"
                             "}\n";

} // namespace

class TestNewLineageCli : public QObject
{
    Q_OBJECT

private slots:
    void init()
    {
        m_folder = std::make_unique<QTemporaryDir>();
        QVERIFY(createWorkspace(m_folder->filePath("w").toStdString()));
        write("act.cl", siluText);
    }

    void aDryRunPrintsThePlan()
    {
        const Outcome said = run({"--workload", "silu", "--dry-run"});
        QVERIFY2(said.status == 0, said.err.constData());
        for (const char *part : {"/*klineage\n", "kernel = \"act\"", "grid = [\"ceil_div(R * C, 64)\"]",
                                 "args = [\"x\", \"y\", \"int R * C\"]", "__kernel void act"})
            QVERIFY2(said.out.contains(part), said.out.constData());
        QVERIFY(!QDir(m_folder->filePath("w/workloads/silu/lineages/pocl-act")).exists());
    }

    void whatIsSaidReplacesTheGuess()
    {
        const Outcome said = run({"--workload", "silu", "--dry-run", "--grid", "ceil_div(R * C, 32), 1",
                                  "--block", "32", "--arg", "x", "--arg", "y", "--arg", "int C * R"});
        QVERIFY2(said.status == 0, said.err.constData());
        QVERIFY2(said.out.contains("grid = [\"ceil_div(R * C, 32)\", 1]"), said.out.constData());
        QVERIFY(said.out.contains("\"int C * R\""));
    }

    void whatIsWrongIsSaidFieldByField()
    {
        const Outcome said = run({"--workload", "silu", "--dry-run", "--grid", "Q", "--arg", "y", "--arg",
                                  "y", "--arg", "float C", "--json"});
        QCOMPARE(said.status, 1);
        QStringList fields;
        for (const QJsonValue &problem : said.json["problems"].toArray())
            fields << problem["field"].toString();
        QCOMPARE(fields, QStringList({"arg:0", "arg:2", "grid"}));
        QCOMPARE(run({"--workload", "silo", "--dry-run"}).status, 2);
        QVERIFY(run({"--workload", "silo", "--dry-run"}).err.contains("did you mean 'silu'"));
        QCOMPARE(run({"--workload", "silu", "--dry-run", "--kernel", "nothing"}).status, 2);
    }

    void ungatedItIsSaidToBe()
    {
        QCOMPARE(run({"--workload", "silu", "--ungated"}).status, 2); // no platform
        const Outcome said = run({"--workload", "silu", "--ungated", "--platform", "pocl", "--name", "mine"});
        QVERIFY2(said.status == 0, said.err.constData());
        QVERIFY(said.out.contains("silu/pocl-mine") && said.out.contains("not gated"));
        const auto lineage =
            lineage::readLineage(m_folder->filePath("w/workloads/silu/lineages/pocl-mine").toStdString());
        QVERIFY(lineage && lineage->trials.empty());
        QCOMPARE(run({"--workload", "silu", "--ungated", "--platform", "pocl", "--name", "mine"}).status, 2);
        // A workload of the program's, on request.
        QCOMPARE(run({"--workload", "softmax", "--ungated", "--platform", "pocl"}).status, 2);
        QCOMPARE(run({"--workload", "softmax", "--template", "--ungated", "--platform", "pocl"}).status, 0);
    }

    void gatedItBecomesK00()
    {
        const auto devices = gate::queryDevices(klineage::test::programPath("/klineage-gate"));
        if (!devices || std::none_of(devices->begin(), devices->end(), [](const gate::DeviceInfo &device) {
                return device.kind == kernel::DeviceKind::OpenCl && device.available;
            }))
            QSKIP("There is no OpenCL device.");
        write("act.cl", QByteArray(siluText).replace("1.0f + exp", "2.0f + exp"));
        const Outcome wrong = run({"--workload", "silu", "--name", "mine", "--json"});
        QCOMPARE(wrong.status, 1);
        QCOMPARE(wrong.json["trial"]["verdict"]["status"].toString(), QString("wrong"));
        QVERIFY(wrong.err.contains("Nothing was written"));

        write("act.cl", siluText);
        const Outcome right = run({"--workload", "silu", "--name", "mine", "--json"});
        QVERIFY2(right.status == 0, (right.out + right.err).constData());
        QVERIFY(right.json["lineage"].toString().startsWith("silu/")
                && right.json["lineage"].toString().endsWith("-mine"));
        const auto lineage = lineage::readLineage(right.json["directory"].toString().toStdString());
        QVERIFY(lineage && lineage->notices.empty());
        QVERIFY(lineage->trialOf(lineage->states.front()));

        // A next version is recorded where its parent is, though the lineage has a name of its own.
        QFile first(QString::fromStdString((lineage->directory / lineage->states.front().file).string()));
        QVERIFY(first.open(QIODevice::ReadOnly));
        write("next.cl", first.readAll() + "// the next one\n");
        QProcess process;
        process.start(QString::fromStdString(klineage::test::programPath("/klineage-cli")),
                      {"gate", "run", m_folder->filePath("next.cl"), "--workspace", m_folder->filePath("w"),
                       "--workload", "silu", "--lineage", right.json["lineage"].toString(), "--parent", "K00",
                       "--record", "--seeds", "1", "--rounds", "3", "--profile-seconds", "0.3", "--json"});
        const Outcome next = outcomeOf(process);
        QVERIFY2(next.status == 0, (next.out + next.err).constData());
        QCOMPARE(next.json["recorded"]["lineage"].toString(), right.json["lineage"].toString());
        QCOMPARE(lineage::readLineage(lineage->directory)->branches.size(), std::size_t{1});
    }

private:
    void write(const char *name, const QByteArray &text) const
    {
        QFile file(m_folder->filePath(name));
        QVERIFY(file.open(QIODevice::WriteOnly) && file.write(text) == text.size());
    }

    [[nodiscard]] Outcome run(QStringList options) const
    {
        QProcess process;
        process.start(QString::fromStdString(klineage::test::programPath("/klineage-cli")),
                      QStringList{"lineage", "new", m_folder->filePath("act.cl"), "--workspace",
                                  m_folder->filePath("w")}
                          + options);
        return outcomeOf(process);
    }

    std::unique_ptr<QTemporaryDir> m_folder;
};

QTEST_GUILESS_MAIN(TestNewLineageCli)
#include "tst_newlineagecli.moc"
