// SPDX-License-Identifier: GPL-3.0-or-later
// The program itself, from outside: arguments in; exit status, JSON and text out.
#include "core/files/atomicfile.h"
#include "core/lineage/lineage.h"
#include "tests/app/cli/rows.h"
#include "tests/core/trialfixture.h"
#include "tests/paths.h"

#include <QJsonArray>
#include <QJsonDocument>
#include <QJsonObject>
#include <QProcess>
#include <QRegularExpression>
#include <QTest>

#include <nlohmann/json.hpp>

#include <algorithm>
#include <fstream>
#include <memory>

using namespace klineage;
using namespace klineage::tests;

namespace {

Outcome runCli(const QStringList &arguments, const std::filesystem::path &folder = "/")
{
    QProcess process;
    process.setWorkingDirectory(QString::fromStdString(folder.string()));
    process.start(QString::fromStdString(klineage::test::programPath("/klineage-cli")), arguments);
    return outcomeOf(process);
}

std::string readText(const std::filesystem::path &path)
{
    return files::readFile(path, 1 << 20).value_or(std::string());
}

double valueOf(const QJsonValue &interval)
{
    return interval.toObject().value("value").toDouble(-1);
}

} // namespace

class TestCli : public QObject
{
    Q_OBJECT

private slots:
    void init()
    {
        m_copy = std::make_unique<WorkspaceCopy>();
        qputenv("GIT_AUTHOR_NAME", "Grace");
    }

    void everyVerbHasHelpAndJson_data()
    {
        QTest::addColumn<QString>("verb");
        for (const char *verb :
             {"doctor",         "workload list", "workload show",       "lineage list",     "lineage show",
              "lineage verify", "lineage table", "lineage jobs",        "lineage rederive", "gate run",
              "gate devices",   "card list",     "card show",           "gate tune",        "card lint",
              "card approve",   "card reject",   "card needs-evidence", "card undo",        "card redo",
              "trials import",  "trials list",   "card probe"})
            QTest::newRow(verb) << verb;
        for (const char *verb : {"gate corpus", "workload check", "workload import", "lineage explain",
                                 "lineage import", "lineage export"})
            QTest::newRow(verb) << verb;
    }

    void everyVerbHasHelpAndJson()
    {
        QFETCH(QString, verb);
        const Outcome outcome = runCli(verb.split(' ') << "--help");
        QCOMPARE(outcome.status, 0);
        QVERIFY(outcome.out.contains("--json"));
        QVERIFY(outcome.out.contains("--workspace"));
    }

    void wrongUsageIsStatusTwo_data()
    {
        QTest::addColumn<QStringList>("arguments");
        QTest::newRow("nothing") << QStringList{};
        QTest::newRow("unknown verb") << QStringList{"lineages"};
        QTest::newRow("group alone") << QStringList{"lineage"};
        QTest::newRow("unknown option") << QStringList{"lineage", "list", "--jsn"};
        QTest::newRow("missing argument") << QStringList{"card", "show"};
        QTest::newRow("missing workload") << QStringList{"gate", "run", "K00.cl"};
        QTest::newRow("backend") << QStringList{"gate", "run",       "K00.cl", "--workload",
                                                "toy",  "--backend", "metal"};
        QTest::newRow("unknown workload") << QStringList{"workload", "show", "tyo"};
        QTest::newRow("unknown lineage") << QStringList{"lineage", "table", "toy/sm90"};
        QTest::newRow("no step to explain") << QStringList{"lineage", "explain", "toy/pocl"};
        QTest::newRow("unknown step") << QStringList{"lineage", "explain", "toy/pocl/K07"};
        QTest::newRow("unknown lineage to explain") << QStringList{"lineage", "explain", "toy/sm90/K01"};
        QTest::newRow("unknown baseline")
            << QStringList{"lineage", "explain", "toy/pocl/K02", "--baseline", "K09"};
        QTest::newRow("unknown card") << QStringList{"card", "approve", "stage-row"};
        QTest::newRow("reject without reason") << QStringList{"card", "reject", "stage-rows"};
        QTest::newRow("corpus nowhere") << QStringList{"gate", "corpus"};
        QTest::newRow("corpus of a surface") << QStringList{"gate", "corpus", "x", "--surface", "metal"};
        QTest::newRow("unknown workload to check") << QStringList{"workload", "check", "tyo"};
        QTest::newRow("no such file") << QStringList{"gate", "run", "none.cl", "--workload", "toy"};
        QTest::newRow("set") << QStringList{"gate", "tune", "K00.cl", "--workload", "toy", "--set", "TILE=a"};
        QTest::newRow("export to nowhere") << QStringList{"lineage", "export", "toy/pocl"};
        QTest::newRow("export of nothing") << QStringList{"lineage", "export", "toy/sm90", "--to", "set"};
        QTest::newRow("export in another form")
            << QStringList{"lineage", "export", "toy/pocl", "--to", "set", "--form", "onnx"};
        QTest::newRow("author's folder")
            << QStringList{"lineage", "export", "toy/pocl", "--to", "set", "--author", "../x"};
        QTest::newRow("no such batch") << QStringList{"trials", "import", "none.jsonl"};
    }

    void wrongUsageIsStatusTwo()
    {
        QFETCH(QStringList, arguments);
        const Outcome outcome = runCli(arguments, m_copy->root());
        QCOMPARE(outcome.status, 2);
        QVERIFY(!outcome.err.isEmpty());
    }

    void unknownNamesComeWithASuggestion()
    {
        const Outcome outcome = runCli({"card", "show", "stage-row", "--json"}, m_copy->root());
        QCOMPARE(outcome.status, 2);
        QVERIFY(outcome.err.contains("did you mean 'stage-rows'?"));
        QCOMPARE(outcome.json["error"].toObject()["code"].toString(), QString("not_found"));
    }

    void globalOptionsGoBeforeOrAfter()
    {
        const QString root = QString::fromStdString(m_copy->root().string());
        const Outcome before = runCli({"--workspace", root, "--json", "lineage", "list"});
        const Outcome after = runCli({"lineage", "list", "--json", "--workspace", root});
        const Outcome between = runCli({"lineage", "--json", "list", "--workspace", root});
        QCOMPARE(before.status, 0);
        QVERIFY(!before.json.isEmpty());
        QCOMPARE(after.out, before.out);
        QCOMPARE(between.out, before.out);
    }

    void noWorkspaceIsStatusThree()
    {
        QCOMPARE(runCli({"lineage", "list", "--workspace", "/proc"}).status, 3);
    }

    void workloads()
    {
        const Outcome list = runCli({"workload", "list", "--json"}, m_copy->root());
        QCOMPARE(list.json["workloads"].toArray()[0].toObject()["name"].toString(), QString("toy"));
        const Outcome show = runCli({"workload", "show", "toy", "--json"}, m_copy->root());
        QCOMPARE(show.json["tensors"].toArray().size(), 2);
        QCOMPARE(show.json["cases"].toArray()[1].toObject()["axes"].toObject()["C"].toInt(), 17);
        QVERIFY(runCli({"workload", "show", "toy"}, m_copy->root()).out.contains("timed"));
    }

    void lineageTableHasEveryNumber()
    {
        const Outcome outcome = runCli({"lineage", "table", "--json"}, m_copy->root());
        QCOMPARE(outcome.status, 0);
        const QJsonObject lineage = outcome.json["lineages"].toArray()[0].toObject();
        QCOMPARE(lineage["platform"].toString(), QString("pocl"));
        const QJsonArray states = lineage["states"].toArray();
        QCOMPARE(states.size(), 3);
        QVERIFY(states[0].toObject()["speedup_to_parent"].isNull());
        const QJsonObject best = states[2].toObject();
        QCOMPARE(best["id"].toString(), QString("K02"));
        QCOMPARE(valueOf(best["latency_ns"]), 1600.0);
        QVERIFY(best["latency_ns"].toObject().contains("low")
                && best["latency_ns"].toObject().contains("high"));
        QCOMPARE(valueOf(best["speedup_to_parent"]), 2.5);
        QCOMPARE(valueOf(best["speedup_to_k0"]), 5.0);
        QCOMPARE(valueOf(best["speedup_to_reference"]), 1.25);
        QCOMPARE(best["reference"].toString(), QString("onednn 2.6"));
        QCOMPARE(lineage["attempts"].toArray()[0].toObject()["status"].toString(), QString("wrong"));
        QCOMPARE(lineage["branches"].toArray().size(), 1);
        QCOMPARE(outcome.json["geometric_mean"].toObject()["value"].toDouble(), 1.25);
        QCOMPARE(outcome.json["geometric_mean"].toObject()["counted"].toInt(), 1);
    }

    void lineageTableIsAligned()
    {
        const QString text = QString::fromUtf8(runCli({"lineage", "table"}, m_copy->root()).out);
        const QStringList lines = text.split('\n');
        QVERIFY(lines[0].startsWith("toy/pocl"));
        const int verdictColumn = static_cast<int>(lines[1].indexOf("VERDICT"));
        for (int i = 2; i < 7; ++i)
            QVERIFY2(QString(lines[i].mid(verdictColumn)).contains(QRegularExpression("^(correct|wrong)")),
                     qPrintable(lines[i]));
        QVERIFY(text.contains(QString::fromUtf8("1.600 µs ±1.00 %")));
        QVERIFY(text.contains(QString::fromUtf8("2.500× [2.475, 2.525]")));
    }

    /// Of a lineage that ships: ranked causes, launches with what limits them, and the roofline.
    void aStepIsExplained()
    {
        const QString shipped = QString::fromStdString(klineage::test::sourcePath());
        const Outcome outcome =
            runCli({"lineage", "explain", "gemm/sm90/K08", "--json", "--workspace", shipped});
        QCOMPARE(outcome.status, 0);
        QCOMPARE(outcome.json["before"].toString(), QString("K07"));
        QVERIFY(outcome.json["paired"].toBool());
        QVERIFY(valueOf(outcome.json["speedup"]) > 1.1);
        QVERIFY(outcome.json["nothing"].isNull());
        const QJsonArray causes = outcome.json["causes"].toArray();
        QVERIFY(!causes.isEmpty() && causes.size() <= 3);
        double sum = 0;
        for (const QJsonValue &cause : causes)
            sum += cause["share_of_difference"].toDouble();
        QVERIFY(std::abs(sum - outcome.json["together"].toDouble()) < 1e-9);
        const QJsonObject launch = outcome.json["launches"]["after"].toArray()[0].toObject();
        QCOMPARE(launch["blocks_per_sm"].toInt(), 1);
        QCOMPARE(launch["limits"].toArray().first().toString(), QString("registers"));
        QCOMPARE(outcome.json["roofline"]["points"].toArray().size(), 9);
        const QString text =
            QString::fromUtf8(runCli({"lineage", "explain", "gemm/sm90/K08", "--workspace", shipped}).out);
        QVERIFY2(text.startsWith("K08 is 1.125"), qPrintable(text));
        QVERIFY(text.contains("95 % interval") && text.contains("of the difference"));
        QVERIFY(text.contains("Limited by") && text.contains("ROOFLINE"));
        const Outcome pinned = runCli(
            {"lineage", "explain", "gemm/sm90/K08", "--baseline", "K05", "--json", "--workspace", shipped});
        QVERIFY(!pinned.json["paired"].toBool(true));
    }

    /// Trials without counters: what is missing, what was kept, and no ranking.
    void withoutCountersNothingIsRanked()
    {
        const Outcome outcome = runCli({"lineage", "explain", "toy/pocl/K02", "--json"}, m_copy->root());
        QCOMPARE(outcome.status, 0);
        QVERIFY(outcome.json["causes"].toArray().isEmpty());
        QVERIFY(!outcome.json["nothing"].toString().isEmpty());
        QCOMPARE(outcome.json["kept"].toArray().size(), 2);
        QVERIFY(!outcome.json["roofline"]["missing"].toString().isEmpty());
        const QString text =
            QString::fromUtf8(runCli({"lineage", "explain", "toy/pocl/K02"}, m_copy->root()).out);
        QVERIFY(text.contains("paired rounds") && !text.contains("1. "));
    }

    void verifyTellsSoundFromDamaged()
    {
        const Outcome sound = runCli({"lineage", "verify", "--json"}, m_copy->root());
        QCOMPARE(sound.status, 0);
        QVERIFY(sound.json["ok"].toBool());
        std::ofstream(m_copy->lineage() / "K01.cl", std::ios::app) << "// changed\n";
        const Outcome damaged = runCli({"lineage", "verify", "toy/pocl", "--json"}, m_copy->root());
        QCOMPARE(damaged.status, 1);
        QVERIFY(!damaged.json["ok"].toBool(true));
        QVERIFY(!damaged.json["lineages"].toArray()[0].toObject()["findings"].toArray().isEmpty());
    }

    void lineageShowAndJobs()
    {
        const Outcome show = runCli({"lineage", "show", "toy/pocl", "--json"}, m_copy->root());
        QCOMPARE(show.json["transitions"].toArray().size(), 2);
        QCOMPARE(show.json["attempts"].toArray()[0].toObject()["parent"].toString(), QString("K00"));
        const QList<QByteArray> jobs = runCli({"lineage", "jobs"}, m_copy->root()).out.trimmed().split('\n');
        QCOMPARE(jobs.size(), 4);
        QCOMPARE(QJsonDocument::fromJson(jobs[1]).object()["id"].toString(), QString("toy/pocl/K01"));
    }

    void reviewsAndTheirUndo()
    {
        const auto review = [&] {
            const Outcome shown = runCli({"card", "show", "stage-rows", "--json"}, m_copy->root());
            return shown.json["review"].toObject();
        };
        const Outcome approved = runCli({"card", "approve", "stage-rows", "--json"}, m_copy->root());
        QCOMPARE(approved.status, 0);
        QCOMPARE(approved.json["event"].toObject()["author"].toString(), QString("Grace"));
        QCOMPARE(review()["verdict"].toString(), QString("approve"));
        QCOMPARE(runCli({"card", "reject", "stage-rows", "--reason", "too narrow", "--author", "Ada"},
                        m_copy->root())
                     .status,
                 0);
        QCOMPARE(review()["reason"].toString(), QString("too narrow"));
        QCOMPARE(runCli({"card", "undo", "stage-rows"}, m_copy->root()).status, 0);
        QCOMPARE(review()["verdict"].toString(), QString("approve"));
        QCOMPARE(runCli({"card", "redo", "stage-rows"}, m_copy->root()).status, 0);
        QCOMPARE(review()["verdict"].toString(), QString("reject"));
        QCOMPARE(runCli({"card", "redo", "stage-rows"}, m_copy->root()).status, 1);
        const Outcome shown = runCli({"card", "show", "stage-rows", "--json"}, m_copy->root());
        QCOMPARE(shown.json["reviews"].toArray().size(), 5);
        QVERIFY(runCli({"card", "list"}, m_copy->root()).out.contains("reject by Ada"));
    }

    void lintLooksUpCitations()
    {
        QCOMPARE(runCli({"card", "lint"}, m_copy->root()).status, 0);
        const std::filesystem::path path = m_copy->skills() / "stage-rows/card.toml";
        std::string text = readText(path);
        text.replace(text.find("trial:00000000000000a1"), 22, "trial:00000000000000ff");
        QVERIFY(files::writeFileAtomic(path, text).has_value());
        const Outcome outcome = runCli({"card", "lint", "stage-rows", "--json"}, m_copy->root());
        QCOMPARE(outcome.status, 1);
        QVERIFY(outcome.out.contains("names no transition, attempt or trial"));
    }

    void trialsAreImportedOnce()
    {
        const std::string k01 = readText(m_copy->lineage() / "K01.cl");
        const std::string k02 = readText(m_copy->lineage() / "K02.cl");
        const std::filesystem::path batch = m_copy->root() / "out.jsonl";
        {
            nlohmann::json withText{
                {"id", "x"}, {"trial", makeTrial("00000000000000d2", "fresh", k01)}, {"text", "fresh"}};
            std::ofstream out(batch);
            out << gate::writeTrial(makeTrial("00000000000000d1", k02, k01)) << '\n'
                << withText.dump() << '\n';
            out << gate::writeTrial(makeTrial("00000000000000a0", readText(m_copy->lineage() / "K00.cl")))
                << '\n';
        }
        const QString file = QString::fromStdString(batch.string());
        const Outcome first = runCli({"trials", "import", file, "--json", "--assign"}, m_copy->root());
        QVERIFY2(first.status == 0, first.out + first.err);
        QCOMPARE(first.json["added"].toObject()["toy/pocl"].toInt(), 2);
        QCOMPARE(first.json["duplicates"].toInt(), 1);
        QCOMPARE(first.json["assigned"].toObject()["toy/pocl"].toArray()[0].toString(), QString("K02"));
        const Outcome again = runCli({"trials", "import", file, "--json"}, m_copy->root());
        QCOMPARE(again.status, 0);
        QCOMPARE(again.json["duplicates"].toInt(), 3);

        const Result<lineage::Lineage> lineage = lineage::readLineage(m_copy->lineage());
        QVERIFY(lineage.has_value());
        QCOMPARE(lineage->states[2].trial, std::string("00000000000000d1"));
        QCOMPARE(lineage->branches.size(), std::size_t{2});
        const Outcome list = runCli({"trials", "list", "--json"}, m_copy->root());
        QCOMPARE(list.json["trials"].toArray().size(), 7);
    }

    void whatCannotBeImportedIsSaid()
    {
        const std::filesystem::path batch = m_copy->root() / "out.jsonl";
        {
            gate::Trial elsewhere = makeTrial("00000000000000d2", "x");
            elsewhere.environment.platform = "sm90";
            std::ofstream out(batch);
            out << gate::writeTrial(makeTrial("00000000000000d1", "unknown")) << '\n'
                << gate::writeTrial(elsewhere) << '\n';
            out << R"({"id":"y","error":"no device"})" << '\n'
                << "{\"id\":1}\n"
                << "{\"id\":\"to";
        }
        const Outcome outcome =
            runCli({"trials", "import", QString::fromStdString(batch.string()), "--json"}, m_copy->root());
        QCOMPARE(outcome.status, 1);
        const QJsonArray problems = outcome.json["problems"].toArray();
        QCOMPARE(problems.size(), 5);
        QVERIFY(problems[0].toString().contains("is no file of toy/pocl"));
        QVERIFY(problems[1].toString().contains("there is no lineage toy/sm90"));
        QVERIFY(problems[2].toString().contains("no device"));
        QVERIFY(problems[3].toString().contains("out.jsonl:4:"));
        QVERIFY(problems[4].toString().contains("cut short"));
    }

    void gatingJudgesAndRecords()
    {
        const QJsonArray devices = runCli({"gate", "devices", "--json"}).json["devices"].toArray();
        const bool hasOpenCl = std::any_of(devices.begin(), devices.end(), [](const QJsonValue &device) {
            return device["backend"].toString() == "opencl" && device["available"].toBool();
        });
        if (!hasOpenCl)
            QSKIP("no OpenCL device");
        const std::filesystem::path file = m_copy->root() / "mine.cl";
        std::string text = readText(m_copy->lineage() / "K00.cl");
        const std::string body =
            "    int r = get_global_id(0);\n    if (r >= R)\n        return;\n    float sum = 0, top = x[r * C];\n"
            "    for (int c = 0; c < C; ++c)\n        top = fmax(top, x[r * C + c]);\n"
            "    for (int c = 0; c < C; ++c)\n        sum += y[r * C + c] = exp(x[r * C + c] - top);\n"
            "    for (int c = 0; c < C; ++c)\n        y[r * C + c] /= sum;\n";
        text.insert(text.rfind('}'), body);
        std::ofstream(file) << text;
        const auto gateRun = [&](const QString &candidate) {
            return runCli({"gate", "run", candidate, "--workload", "toy", "--no-reference",
                           "--profile-seconds", "1", "--rounds", "4", "--record", "--json"},
                          m_copy->root());
        };
        const Outcome correct = gateRun(QString::fromStdString(file.string()));
        QVERIFY2(correct.status == 0, correct.out + correct.err);
        QCOMPARE(correct.json["status"].toString(), QString("correct"));
        QVERIFY(valueOf(correct.json["trial"]["latency_ns"]) > 0);
        QCOMPARE(correct.json["recorded"]["lineage"].toString(), QString("toy/pocl"));

        const Outcome wrong =
            gateRun(QString::fromStdString((m_copy->lineage() / "K01.cl").string())); // writes nothing
        QCOMPARE(wrong.status, 1);
        QCOMPARE(wrong.json["status"].toString(), QString("wrong"));

        const std::filesystem::path printed = m_copy->root() / "wrong.json";
        std::ofstream(printed) << wrong.out.constData();
        const auto replay = [&](const QString &trial, const QStringList &more) {
            QStringList arguments = {"gate",
                                     "run",
                                     QString::fromStdString(file.string()),
                                     "--workload",
                                     "toy",
                                     "--no-reference",
                                     "--profile-seconds",
                                     "1",
                                     "--rounds",
                                     "4",
                                     "--parent",
                                     QString::fromStdString(file.string()),
                                     "--replay",
                                     trial,
                                     "--json"};
            return runCli(arguments + more, m_copy->root());
        };
        const Outcome again = replay(QString::fromStdString(printed.string()), {});
        QVERIFY2(again.status == 0, again.out + again.err);
        QCOMPARE(again.json["trial"]["replay_of"].toString(), wrong.json["trial"]["id"].toString());
        QCOMPARE(again.json["trial"]["parent"], again.json["trial"]["candidate"]);
        QCOMPARE(replay(wrong.json["trial"]["id"].toString(), {"--record"}).status, 2);
        QCOMPARE(replay("0123456789abcdef", {}).status, 2);

        const Result<lineage::Lineage> lineage = lineage::readLineage(m_copy->lineage());
        QVERIFY(lineage.has_value());
        QCOMPARE(lineage->trials.size(), std::size_t{7});
        QVERIFY(lineage->trials[5].file.starts_with("branches/"));
        QCOMPARE(lineage->trials[6].file, std::string("K01.cl"));
    }

    void corpusIsTheGatesOwn()
    {
        // One candidate that compiles nowhere: a line and a status with a device and without.
        const std::filesystem::path folder = m_copy->root() / "corpus";
        std::filesystem::create_directories(folder);
        std::ofstream(folder / "none.cl") << "no plan";
        const auto write = [&folder](const char *expected) {
            std::ofstream(folder / "corpus.toml")
                << "workloads = [\"../workloads\"]\n[[candidate]]\nfile = \"none.cl\"\nworkload = \"toy\"\n"
                   "kind = \"broken\"\nabout = \"Has no plan.\"\nexpect = [\""
                << expected << "\"]\n";
        };
        const QStringList arguments = {"gate",      "corpus", QString::fromStdString(folder.string()),
                                       "--surface", "opencl", "--profile-seconds",
                                       "0.1"};
        write("compile_error");
        const Outcome expected = runCli(arguments);
        QVERIFY2(expected.status == 0, expected.err);
        QCOMPARE(expected.json["file"].toString(), QString("none.cl"));
        QVERIFY(expected.json["ok"].toBool());
        write("crash");
        const Outcome other = runCli(arguments);
        const bool skipped = other.json["got"].toString() == "skipped";
        QCOMPARE(other.status, skipped ? 0 : 1);
        const Outcome again = runCli(QStringList(arguments) << "--again"
                                                            << "2");
        QCOMPARE(again.status, skipped ? 0 : 1);
        QCOMPARE(again.out.count('\n'), skipped ? 1 : 2); // the second time settles it
        QCOMPARE(again.out.count("\"repeated\":true"), skipped ? 0 : 1);
        QCOMPARE(runCli(QStringList(arguments) << "--filter"
                                               << "nothing")
                     .out,
                 QByteArray());
        QCOMPARE(runCli({"gate", "corpus", "/proc/nonexistent"}).status, 2);
    }

    void workloadCheckNamesWhatTakesNoWork()
    {
        const Outcome sound = runCli({"workload", "check", "toy", "--json"}, m_copy->root());
        QVERIFY2(sound.status == 0, sound.err);
        QVERIFY(sound.json["ok"].toBool());
        const QJsonArray cases = sound.json["cases"].toArray();
        QVERIFY(cases.size() >= 2);
        QVERIFY(cases[0].toObject()["pass"].isNull());
        const std::filesystem::path file = m_copy->root() / "workloads/toy/workload.toml";
        std::string text = readText(file);
        const std::string role = "role = \"input\"\n";
        text.insert(text.find(role) + role.size(),
                    "distribution = { kind = \"uniform\", low = 0, high = 1e-9 }\n");
        std::ofstream(file) << text;
        const Outcome refused = runCli({"workload", "check", "toy"}, m_copy->root());
        QCOMPARE(refused.status, 1);
        QVERIFY2(refused.err.contains("y passes as the mean of the result everywhere"), refused.err);
        QVERIFY(refused.out.contains("timed"));
    }

    void lineagesAsDataSets()
    {
        const QStringList command = {"lineage", "export", "toy/pocl", "--to", "set"};
        const Outcome toy = runCli(command + QStringList{"--json"}, m_copy->root());
        QVERIFY2(toy.status == 0, (toy.out + toy.err).constData());
        const QJsonObject entry = toy.json["lineages"].toArray()[0].toObject();
        QCOMPARE(entry["definition"].toString(), QString("toy"));
        QCOMPARE(entry["solutions"].toInt(), 0);
        QVERIFY(QJsonDocument(entry["lost"].toArray()).toJson().contains("no language of the format"));
        QVERIFY(!toy.json["limits"].toArray().isEmpty());
        QVERIFY(std::filesystem::exists(m_copy->root() / "set/definitions/softmax_rows/toy.json"));

        const std::string set = (m_copy->root() / "set").string();
        const Outcome shipped =
            runCli({"lineage", "export", "softmax/sm90-triton", "--to", QString::fromStdString(set),
                    "--author", "ada", "--workspace", QString::fromStdString(klineage::test::sourcePath())});
        QVERIFY2(shipped.status == 0, (shipped.out + shipped.err).constData());
        QVERIFY(shipped.out.contains("1 of 1 lineages written to "));
        QVERIFY(shipped.out.contains("What FlashInfer Trace cannot say of any lineage:\n- "));
        const auto solution = nlohmann::json::parse(
            readText(set + "/solutions/ada/softmax_rows/softmax/softmax_sm90-triton_K00.json"));
        QCOMPARE(solution["spec"]["language"].get<std::string>(), std::string("triton"));
        QVERIFY(!readText(set + "/traces/ada/softmax_rows/softmax/sm90-triton.jsonl").empty());

        std::ofstream(set + "/definitions/softmax_rows/toy.json") << "{}";
        const Outcome refused = runCli(command, m_copy->root());
        QCOMPARE(refused.status, 2);
        QVERIFY2(refused.err.contains("another definition"), refused.err.constData());
    }

    void doctorReportsEveryPart()
    {
        const Outcome outcome = runCli({"doctor", "--json"}, m_copy->root());
        QVERIFY(outcome.status == 0 || outcome.status == 3);
        QStringList names;
        for (const QJsonValue &check : outcome.json["checks"].toArray()) {
            names << check.toObject()["name"].toString();
            QVERIFY(!check.toObject()["text"].toString().isEmpty());
        }
        for (const char *name : {"klineage", "gate", "cuda build", "nvidia driver", "nvrtc", "libcurl",
                                 "isolation", "workspace"})
            QVERIFY2(names.contains(name), name);
    }

private:
    std::unique_ptr<WorkspaceCopy> m_copy;
};

QTEST_GUILESS_MAIN(TestCli)
#include "tst_cli.moc"
