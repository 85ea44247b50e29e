// SPDX-License-Identifier: GPL-3.0-or-later
// A step of a lineage derived again through the program itself, with the gate on a real OpenCL device. Which way the comparison of two
// equal kernels goes is the machine's affair; that each outcome has its consequences is not. And a card's risk that is probed there.
#include "core/lineage/lineage.h"
#include "core/lineage/verify.h"
#include "tests/app/cli/rows.h"
#include "tests/core/run/runfixture.h"
#include "tests/paths.h"

#include <QJsonArray>
#include <QJsonObject>
#include <QProcess>
#include <QTest>

using namespace klineage::tests;
namespace fs = std::filesystem;
namespace lineage = klineage::lineage;

namespace {

const char *const lineageText = R"(workload = "rows"
platform = "pocl"
surface = "opencl"
title = "rows"

[[state]]
id = "K00"
file = "K00.cl"
title = "one sum"

[[state]]
id = "K01"
file = "K01.cl"
title = "four sums"

[[transition]]
from = "K00"
to = "K01"
category = "instruction_parallelism"
locus = "accumulator"
summary = "Keep four sums instead of one."
)";

const std::string simpler = rowsKernel("    volatile float s = 0;\n"
                                       "    for (int i = 0; i < C; ++i) s += x[i];\n"
                                       "    y[get_global_id(0)] = s;\n");
const std::string loop = "    float s[4] = {0, 0, 0, 0};\n    int i = 0;\n"
                         "    for (; i + 3 < C; i += 4) for (int j = 0; j < 4; ++j) s[j] += x[i + j];\n"
                         "    for (; i < C; ++i) s[0] += x[i];\n";
const std::string stronger = rowsKernel(loop + "    y[get_global_id(0)] = (s[0] + s[1]) + (s[2] + s[3]);\n");
const std::string again = rowsKernel(loop + "    y[get_global_id(0)] = s[0] + s[1] + s[2] + s[3];\n");
const std::string wrong = rowsKernel(loop + "    y[get_global_id(0)] = s[0] + s[1] + s[2];\n");

const char *const cardText = R"(format = 2
name = "four-sums"
revision = 1
category = "instruction_parallelism"
locus = "accumulator"
carrier = "carrier.cl"
evidence = ["rows/pocl/K01"]

[intent]
text = "Keep four sums instead of one."
evidence = ["rows/pocl/K01"]

[anchor]
text = "A loop that adds to one number."
evidence = ["rows/pocl/K01"]

[[precondition]]
text = "All sums are added at the end."
evidence = ["rows/pocl/K01"]

[[risk]]
text = "A sum that is left out at the end makes the result wrong."
evidence = []

[scope]
cases = ["rows"]
languages = ["opencl"]
platforms = ["pocl"]
prior_actions = []
)";

std::string replyOf(const std::string &text)
{
    return "Four sums.\n\n```c\n" + text + "```\n";
}

} // namespace

class TestRederiveCli : public QObject
{
    Q_OBJECT

private slots:
    void initTestCase()
    {
        fs::create_directories(folder());
        fs::create_directories(root() / "skills/four-sums");
        writeAll(root() / "skills/four-sums/card.toml", cardText);
        writeAll(root() / "skills/four-sums/carrier.cl", "float s[4];\n");
        writeAll(root() / "left-out.cl", wrong);
        writeAll(root() / "again.cl", again);
        writeAll(root() / "broken.cl", rowsKernel("    y[get_global_id(0)] = no_such_name;\n"));
        writeAll(root() / "workloads/rows/workload.toml",
                 std::string("# A comment that is not for authors.\n") + rowsWorkload);
        writeAll(folder() / "lineage.toml", lineageText);
        writeAll(folder() / "K00.cl", simpler);
        writeAll(folder() / "K01.cl", stronger);
        bool found = false;
        for (const QJsonValue &device : cli({"gate", "devices", "--json"}).json.value("devices").toArray())
            found |= device.toObject().value("backend") == "opencl"
                     && device.toObject().value("available").toBool();
        if (!found)
            QSKIP("There is no OpenCL device.");
    }

    void oneStepFromPromptToVerdict()
    {
        const Outcome asked = rederive({"--ask", "d"});
        QCOMPARE(transitionOf(asked), QString("asked"));
        const std::string prompt = readAll(root() / "d/rows-pocl-K01.prompt.md");
        QVERIFY(prompt.find(simpler) != std::string::npos);
        QVERIFY(prompt.find("Keep four sums instead of one.") != std::string::npos);
        QVERIFY(prompt.find("s[4]") == std::string::npos);
        QVERIFY(prompt.find("not for authors") == std::string::npos);

        writeAll(root() / "d/rows-pocl-K01.reply.md", replyOf(wrong));
        QCOMPARE(transitionOf(batch("one")), QString("rejected"));
        QVERIFY(readAll(root() / "d/rows-pocl-K01.repair1.prompt.md").find("Verdict: wrong")
                != std::string::npos);

        writeAll(root() / "d/rows-pocl-K01.repair1.reply.md", replyOf(again));
        const Outcome judged = batch("two");
        const QString outcome = transitionOf(judged);
        const auto read = lineage::readLineage(folder());
        QVERIFY(read.has_value());
        QVERIFY2(read->notices.empty(), read->notices.empty() ? "" : read->notices[0].c_str());
        QCOMPARE(read->trials.size(), std::size_t{4});
        QCOMPARE(judged.status, outcome == "accepted" ? 0 : 1);
        QCOMPARE(read->transitions[0].rederived.empty(), outcome != "accepted");
        const QStringList possible{"accepted", "rejected", "stronger", "unsteady"};
        QVERIFY2(possible.contains(outcome), judged.out.constData());
        const Outcome shown = cli({"lineage", "show", "rows/pocl", "--json"});
        QCOMPARE(shown.json.value("rederived").toObject().value("recorded").toInt(),
                 outcome == "accepted" ? 1 : 0);
    }

    void aRiskIsProbed()
    {
        const auto probe = [this](const QStringList &arguments) {
            return cli(QStringList{"card", "probe", "four-sums", "--json", "--text",
                                   "The last of four sums is left out.", "--expect", "wrong"}
                       + arguments); // an expectation takes one word, whatever follows
        };
        const auto standing = [this] {
            return cli({"card", "show", "four-sums"}).out.contains("left out. (`trial:");
        };
        const Outcome broken = probe({"1", "broken.cl", "--workload", "rows"});
        QCOMPARE(broken.status, 1);
        QVERIFY(broken.err.contains("fails in another way"));
        QVERIFY(!standing());

        const Outcome shown = probe({"1", "left-out.cl", "--workload", "rows"});
        QCOMPARE(shown.status, 0);
        QCOMPARE(shown.json.value("verdict").toString(), QString("wrong"));
        QCOMPARE(shown.json.value("standing").toString(), QString("probed"));
        const QString risk = shown.json.value("risk").toString();
        QCOMPARE(risk, QString("a-sum-that-is-left-out-at-the-end-makes"));

        // A candidate that is right all the same refutes the risk, and the risk is kept.
        const Outcome refuted = probe({risk, "again.cl", "--workload", "rows"});
        QCOMPARE(refuted.json.value("standing").toString(), QString("refuted"));
        const Outcome again =
            probe({risk, "--trial", shown.json.value("trial").toString()}); // the newest decides
        QCOMPARE(again.json.value("standing").toString(), QString("probed"));
        const Outcome card = cli({"card", "show", "four-sums", "--json"});
        QVERIFY2(card.out.contains(shown.json.value("trial").toString().toUtf8()), card.out.constData());
        QVERIFY2(!cli({"card", "lint", "four-sums"}).out.contains("probe["), "a probe's trial is unknown");

        QCOMPARE(probe({"2", "left-out.cl", "--workload", "rows"}).status, 2);
        QCOMPARE(probe({"1"}).status, 2);
        QCOMPARE(probe({"1", "--trial", "0123456789abcdef"}).status, 2);
    }

    void wrongUsageIsStatusTwo()
    {
        QCOMPARE(rederive({}).status, 2);
        QCOMPARE(rederive({"--ask", "d", "--jobs", "d"}).status, 2);
        QCOMPARE(rederive({"--import", "missing.jsonl", "d"}).status, 2);
        QCOMPARE(cli({"lineage", "rederive", "rows/none", "--ask", "d"}).status, 2);
    }

private:
    [[nodiscard]] fs::path root() const { return m_folder.path(); }
    [[nodiscard]] fs::path folder() const { return root() / "workloads/rows/lineages/pocl"; }
    [[nodiscard]] Outcome run(const QString &program, const QStringList &arguments) const
    {
        QProcess process;
        process.setWorkingDirectory(QString::fromStdString(root().string()));
        process.start(QString::fromStdString(klineage::test::programPath("/")) + program, arguments);
        return outcomeOf(process);
    }
    [[nodiscard]] Outcome cli(const QStringList &arguments) const { return run("klineage-cli", arguments); }
    [[nodiscard]] Outcome rederive(const QStringList &arguments) const
    {
        return cli(QStringList{"lineage", "rederive", "rows/pocl", "--json"} + arguments);
    }
    static QString transitionOf(const Outcome &outcome)
    {
        return outcome.json.value("transitions").toArray().at(0).toObject().value("outcome").toString();
    }
    /// Jobs, the gate, and what came of it.
    [[nodiscard]] Outcome batch(const QString &name) const
    {
        const QString in = name + ".in";
        const QString out = name + ".out";
        const Outcome jobs = cli({"lineage", "rederive", "rows/pocl", "--jobs", "d"});
        writeAll(root() / in.toStdString(), jobs.out.toStdString());
        const Outcome gated =
            run("klineage-gate", {"batch", in, "--out", out, "--profile-seconds", "1", "--seeds", "1"});
        if (gated.status != 0)
            qWarning("%s", gated.err.constData());
        return rederive({"--import", out, "d"});
    }

    MemoryFolder m_folder;
};

QTEST_GUILESS_MAIN(TestRederiveCli)
#include "tst_rederivecli.moc"
