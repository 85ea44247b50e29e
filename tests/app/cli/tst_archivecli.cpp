// SPDX-License-Identifier: GPL-3.0-or-later
// From a checkpoint of another system to a lineage that can be gated: `lineage import`, `lineage show`, `lineage jobs`.
#include "core/files/atomicfile.h"
#include "tests/app/cli/rows.h"
#include "tests/paths.h"

#include <QDir>
#include <QFile>
#include <QJsonArray>
#include <QTemporaryDir>
#include <QTest>

using namespace klineage;
using namespace klineage::tests;

class TestArchiveCli : public QObject
{
    Q_OBJECT

private:
    QTemporaryDir m_folder;

    void write(const QString &name, const std::string &text) const
    {
        QVERIFY(QDir(m_folder.path()).mkpath(QFileInfo(name).path()));
        QVERIFY(files::writeFileAtomic(m_folder.filePath(name).toStdString(), text));
    }
    static std::string program(const QString &id, const QString &parent, double score)
    {
        const QString code =
            "// " + id
            + "\n__kernel void rows(__global const float *x, __global float *y, int C)\n{\n"
              "    float sum = 0.0f;\n    for (int i = 0; i < C; ++i)\n"
              "        sum += x[get_group_id(0) * C + i];\n    y[get_group_id(0)] = sum;\n}\n";
        const QJsonObject metrics{{"combined_score", score}};
        const QJsonObject program{
            {"id", id},        {"parent_id", parent.isEmpty() ? QJsonValue() : QJsonValue(parent)},
            {"generation", 1}, {"language", "opencl"},
            {"code", code},    {"metrics", metrics}};
        return QJsonDocument(program).toJson().toStdString();
    }
    [[nodiscard]] Outcome run(const QStringList &arguments, bool asJson = true) const
    {
        QProcess process;
        process.setWorkingDirectory(m_folder.filePath("w"));
        process.start(QString::fromStdString(klineage::test::programPath("/klineage-cli")),
                      arguments + QStringList{"--workspace", m_folder.filePath("w")}
                          + (asJson ? QStringList{"--json"} : QStringList{}));
        return outcomeOf(process);
    }

private slots:
    void initTestCase()
    {
        QVERIFY(QDir(m_folder.path()).mkpath("w/skills"));
        write("w/workloads/rows/workload.toml", rowsWorkload);
        write("out/checkpoints/checkpoint_5/programs/a.json", program("a", "", 1));
        write("out/checkpoints/checkpoint_5/programs/b.json", program("b", "a", 2));
        write("out/checkpoints/checkpoint_5/programs/c.json", program("c", "a", 1.5));
        write("out/checkpoints/checkpoint_5/programs/d.json", "{\"id\": \"d");
        write("out/checkpoints/checkpoint_5/metadata.json", R"({"best_program_id": "b"})");
    }

    void wrongUsage()
    {
        const QString out = m_folder.filePath("out");
        QCOMPARE(run({"lineage", "import", out}).status, 2);
        QVERIFY(run({"lineage", "import", out, "--workload", "row"}).err.contains("did you mean 'rows'"));
        QVERIFY(run({"lineage", "import", out, "--workload", "rows", "--surface", "cud"})
                    .err.contains("did you mean 'cuda'"));
        const Outcome platform = run({"lineage", "import", out, "--workload", "rows"});
        QCOMPARE(platform.status, 2);
        QVERIFY2(platform.err.contains("--platform"), platform.err.constData());
        QCOMPARE(run({"lineage", "import", out, "--workload", "rows", "--most", "5001"}).status, 2);
        QCOMPARE(run({"lineage", "import", out + "-none", "--workload", "rows"}).status, 2);
        const Outcome nothing =
            run({"lineage", "import", m_folder.filePath("w"), "--workload", "rows", "--platform", "pocl"});
        QCOMPARE(nothing.status, 1);
        QCOMPARE(nothing.json["imported"].toInt(), 0);
        QVERIFY(!nothing.json.contains("next"));
    }

    void importAndShow()
    {
        const QStringList command = {"lineage",    "import", m_folder.filePath("out"), "--workload", "rows",
                                     "--platform", "pocl"};
        const Outcome dry = run(command + QStringList{"--dry-run"});
        QVERIFY2(dry.status == 0, (dry.out + dry.err).constData());
        QVERIFY(!dry.json.contains("next"));
        const QJsonArray entries = dry.json["entries"].toArray();
        const QJsonArray rows = entries[0].toObject()["rows"].toArray();
        QCOMPARE(rows.size(), 3);
        QCOMPARE(rows[1].toObject()["id"].toString(), QString("K01"));
        QCOMPARE(rows[1].toObject()["source"].toString(), QString("programs/b.json"));
        QCOMPARE(rows[2].toObject()["kind"].toString(), QString("attempt"));
        QVERIFY(!entries[1].toObject().contains("rows"));
        QVERIFY(!QFile::exists(m_folder.filePath("w/workloads/rows/lineages")));
        const Outcome said = run(command, false);
        QVERIFY2(said.status == 0, (said.out + said.err).constData());
        for (const char *part : {"imported rows/pocl-openevolve from ",
                                 "note: 2 states and 1 attempt, in OpenCL C.", "skipped programs/d.json: ",
                                 "1 imported, 1 skipped.\nNext: klineage-cli lineage jobs "
                                 "rows/pocl-openevolve > jobs.jsonl && klineage-gate batch jobs.jsonl --out "
                                 "trials.jsonl && klineage-cli trials import trials.jsonl --lineage "
                                 "rows/pocl-openevolve --assign\n"})
            QVERIFY2(said.out.contains(part), said.out.constData());
        const Outcome again = run(command);
        QCOMPARE(again.status, 2);
        QVERIFY2(again.err.contains("There is a lineage rows/pocl-openevolve already"),
                 again.err.constData());
        const Outcome named = run(command + QStringList{"--name", "second"});
        QVERIFY2(named.status == 0, (named.out + named.err).constData());
        QCOMPARE(named.json["next"].toArray().size(), 3);

        const Outcome shown = run({"lineage", "show", "rows/pocl-openevolve"});
        QCOMPARE(shown.json["states"].toArray().size(), 2);
        QCOMPARE(shown.json["notices"].toArray().size(), 0);
        QCOMPARE(shown.json["attempts"].toArray()[0].toObject()["parent"].toString(), QString("K00"));
        const Outcome jobs = run({"lineage", "jobs", "rows/pocl-openevolve"});
        QCOMPARE(jobs.json["jobs"].toArray().size(), 3);
    }

    /// The platform's own lineage is no obstacle: the import has a name of its own.
    void besideTheLineageOfThePlatform()
    {
        QVERIFY(QDir(m_folder.path()).mkpath("w/workloads/rows/lineages/sm90"));
        const QStringList command = {"lineage",    "import",   m_folder.filePath("out"),
                                     "--workload", "rows",     "--platform",
                                     "sm90",       "--dry-run"};
        const Outcome said = run(command);
        QVERIFY2(said.status == 0, (said.out + said.err).constData());
        QVERIFY(QDir(m_folder.path()).rmdir("w/workloads/rows/lineages/sm90"));
    }
};

QTEST_GUILESS_MAIN(TestArchiveCli)
#include "tst_archivecli.moc"
