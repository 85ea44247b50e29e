// SPDX-License-Identifier: GPL-3.0-or-later
// What a report says, by its structure: of the shipped lineages and runs, and of hostile ones.
#include "core/report/report.h"
#include "core/report/writers.h"
#include "tests/paths.h"

#include <QRegularExpression>
#include <QSet>
#include <QTest>
#include <QXmlStreamReader>

#include <algorithm>
#include <cmath>

using namespace klineage;

namespace {

const Workspace &shipped()
{
    static const Workspace workspace = openWorkspace(klineage::test::sourcePath()).value();
    return workspace;
}

report::Document reportOf(const Workspace &workspace, const std::string &name)
{
    return report::makeReport(workspace, report::findSubject(workspace, name).value());
}

QString htmlOf(const report::Document &document)
{
    return QString::fromStdString(report::asHtml(document, {}));
}

/// All tables of the page as texts, row by row; fails the test when it is no well-formed XML.
QList<QStringList> tableRows(const QString &html)
{
    QXmlStreamReader xml(html);
    QList<QStringList> rows;
    while (!xml.atEnd()) {
        xml.readNext();
        if (xml.isStartElement() && xml.name() == QLatin1String("tr"))
            rows << QStringList();
        else if (xml.isStartElement()
                 && (xml.name() == QLatin1String("td") || xml.name() == QLatin1String("th")))
            rows.last() << xml.readElementText(QXmlStreamReader::IncludeChildElements);
    }
    if (xml.hasError())
        qCritical("%s, line %lld", qPrintable(xml.errorString()), xml.lineNumber());
    return xml.hasError() ? QList<QStringList>() : rows;
}

const QStringList *rowOf(const QList<QStringList> &rows, const QString &first)
{
    for (const QStringList &row : rows) {
        if (row.value(0) == first)
            return &row;
    }
    return nullptr;
}

/// Of a line of CSV.
QStringList cellsOf(const QString &line)
{
    QStringList cells{QString()};
    bool isQuoted = false;
    for (const QChar c : line) {
        if (c == '"')
            isQuoted = !isQuoted;
        else if (c == ',' && !isQuoted)
            cells << QString();
        else
            cells.last() += c;
    }
    return cells;
}

gate::Trial timed(const std::string &id, double ns, double toParent)
{
    gate::Trial trial;
    trial.id = id;
    trial.time = "2026-01-02T03:04:05Z";
    trial.environment = {"pocl", "A <device> & more", {{"cpu", "x"}}};
    trial.verdict.status = gate::VerdictStatus::Correct;
    trial.latencyNs = {ns, ns * 0.99, ns * 1.01};
    if (toParent > 0)
        trial.verdict.comparisons.push_back(
            {"parent", "", {toParent, toParent * 0.9, toParent * 1.1}, ns * toParent, gate::Change::Gain});
    return trial;
}

Workspace hostile()
{
    lineage::Lineage lineage;
    lineage.workload = "toy";
    lineage.platform = "pocl";
    lineage.title = "</title><script>alert(1)</script> | * ` [x](http://x.invalid) \x01";
    lineage.origin = "a\n# no heading\n| no | table |";
    lineage.states = {{"K00", "K00.cl", "<b>plain</b>", "a"},
                      {"K01", "K01 $(x)'.cl", "a | b \xef\xbf\xbf", "b"}};
    lineage.transitions = {{"K00", "K01", "tiling", "loop", "Use \"tiles\" & <stuff>.", "no-such-card"}};
    lineage.attempts = {{"R00a", "K00", "R00a.cl", "wrong", "tiling", "loop", "It was wrong.", "c"}};
    lineage.trials = {timed("a", 4000, 0), timed("b", 1000, 4), timed("c", 0, 0)};
    lineage.trials.back().verdict.status = gate::VerdictStatus::Wrong;
    Workspace workspace;
    workspace.root = "/nowhere";
    workspace.lineages.push_back(lineage);
    return workspace;
}

} // namespace

class TestReport : public QObject
{
    Q_OBJECT

private slots:
    void everyShippedLineageIsWhole_data()
    {
        QTest::addColumn<QString>("key");
        for (const std::string &key : shipped().lineageKeys())
            QTest::newRow(key.c_str()) << QString::fromStdString(key);
    }

    void everyShippedLineageIsWhole()
    {
        QFETCH(QString, key);
        const lineage::Lineage &lineage = *shipped().findLineage(key.toStdString());
        const report::Document document = reportOf(shipped(), key.toStdString());
        const QString html = htmlOf(document);
        const QList<QStringList> rows = tableRows(html);
        QVERIFY(!rows.isEmpty());
        for (const lineage::State &state : lineage.states) {
            const QStringList *row = rowOf(rows, QString::fromStdString(state.id));
            QVERIFY2(row, state.id.c_str());
            QCOMPARE(row->at(1), QString::fromStdString(state.title));
        }
        for (const lineage::Transition &step : lineage.transitions) {
            const QStringList *row =
                rowOf(rows, QString::fromStdString(step.from) + " → " + QString::fromStdString(step.to));
            QVERIFY(row);
            QVERIFY(row->contains(QString::fromStdString(step.summary)));
            QVERIFY2(row->join(' ').contains(QRegularExpression("\\+\\d+ −\\d+")),
                     qPrintable(row->join('|')));
        }
        for (const lineage::Attempt &attempt : lineage.attempts) {
            const QStringList *row = rowOf(rows, QString::fromStdString(attempt.id));
            QVERIFY(row);
            QCOMPARE(row->last(), QString::fromStdString(attempt.reason));
        }
        for (const lineage::Transition &step : lineage.transitions)
            QVERIFY(step.card.empty() || rowOf(rows, QString::fromStdString(step.card)));
        const QString markdown = QString::fromStdString(report::asMarkdown(document));
        for (const lineage::State &state : lineage.states)
            QVERIFY(markdown.contains(QString::fromStdString("\n| " + state.id + " |")));
    }

    void numbersSayAgainstWhatAndHowSure()
    {
        const lineage::Lineage &lineage = *shipped().findLineage("gemm/sm90");
        const gate::Trial &best = *lineage.trialOf(lineage.states.back());
        const QList<QStringList> rows = tableRows(htmlOf(reportOf(shipped(), "gemm/sm90")));
        const QStringList *head = rowOf(rows, "State");
        const QStringList *row = rowOf(rows, QString::fromStdString(lineage.states.back().id));
        QVERIFY(head && row);
        const auto columnOf = [&](const char *name) {
            return static_cast<int>(head->indexOf(QLatin1String(name)));
        };
        const QRegularExpression interval("^[\\d.]+× \\([\\d.]+–[\\d.]+\\)$");
        for (const char *name : {"Against parent", "Against K00, not paired", "Against cublas"}) {
            QVERIFY2(columnOf(name) > 0, name);
            QVERIFY2(interval.match(row->at(columnOf(name))).hasMatch(), qPrintable(row->at(columnOf(name))));
        }
        QVERIFY(row->at(columnOf("Latency")).contains(" ± "));
        const double speedup = row->at(columnOf("Against cublas")).section(QChar(0xd7), 0, 0).toDouble();
        QVERIFY(std::abs(speedup / best.comparison("cublas")->speedup.value - 1) < 1e-3);
    }

    void saysWhatItMustComputeAndHowToLookAgain()
    {
        const lineage::Lineage &lineage = *shipped().findLineage("gemm/sm90");
        const report::Document document = reportOf(shipped(), "gemm/sm90");
        const QString html = htmlOf(document);
        const QList<QStringList> rows = tableRows(html);
        const auto fact = [&rows](const char *name) {
            const QStringList *row = rowOf(rows, name);
            return row ? row->value(1) : QString();
        };
        QCOMPARE(fact("Inputs"), "x: bf16 [M, K]; weight: bf16 [N, K]");
        QCOMPARE(fact("Outputs"), "y: bf16 [M, N]");
        QVERIFY2(fact("Timed case").startsWith("M = 4096, N = 4096, K = 4096; 137.4 GFLOP a run"),
                 qPrintable(fact("Timed case")));
        QVERIFY(fact("Checked cases").contains("to the last bit: bits, integers"));
        QVERIFY(fact("Error allowed").contains("0.003"));
        for (const lineage::State &state : lineage.states) {
            const gate::Trial &trial = *lineage.trialOf(state);
            const QStringList *row = rowOf(rows, QString::fromStdString(trial.id));
            QVERIFY(row);
            QCOMPARE(row->at(1), QString::fromStdString(state.id));
            QVERIFY(row->at(4).startsWith(QString::number(trial.seeds.front())));
            QVERIFY(QString::fromStdString(trial.candidate).startsWith(row->last()));
        }
        QVERIFY(html.contains("<pre>klineage-cli lineage verify gemm/sm90</pre>"));
        const std::string &last = lineage.states.back().id;
        const std::string &before = lineage.states[lineage.states.size() - 2].id;
        QVERIFY(html.contains(
            QString::fromStdString("<pre>klineage-cli gate run workloads/gemm/lineages/sm90/" + last
                                   + ".cu --workload gemm --parent " + before + " --precise</pre>")));
        QVERIFY(QString::fromStdString(report::asMarkdown(document))
                    .contains(
                        "\n    klineage-cli lineage jobs gemm/sm90 > jobs.jsonl\n    klineage-gate batch "));
    }

    void everyFigureOfTheTablesIsTheRecordedOne()
    {
        const lineage::Lineage &lineage = *shipped().findLineage("gemm/sm90");
        const QList<QStringList> rows = tableRows(htmlOf(reportOf(shipped(), "gemm/sm90")));
        const QStringList *head = rowOf(rows, "State");
        QVERIFY(head);
        const QRegularExpression figure("^([\\d.]+)× \\(([\\d.]+)–([\\d.]+)\\)$");
        int compared = 0;
        for (const lineage::State &state : lineage.states) {
            const QStringList *row = rowOf(rows, QString::fromStdString(state.id));
            QVERIFY(row);
            for (const gate::Comparison &comparison : lineage.trialOf(state)->verdict.comparisons) {
                const auto at =
                    static_cast<int>(head->indexOf(QString::fromStdString("Against " + comparison.against)));
                QVERIFY2(at > 0, comparison.against.c_str());
                const auto match = figure.match(row->at(at));
                QVERIFY2(match.hasMatch(), qPrintable(row->at(at)));
                const double recorded[] = {comparison.speedup.value, comparison.speedup.low,
                                           comparison.speedup.high};
                for (int i = 0; i < 3; ++i)
                    QVERIFY(std::abs(match.captured(i + 1).toDouble() / recorded[i] - 1) < 1e-3);
                ++compared;
            }
        }
        QVERIFY(compared > 20);
    }

    void manyReferencesHaveATableOfTheirOwn()
    {
        Workspace workspace = hostile();
        gate::Trial &best = workspace.lineages.front().trials[1];
        for (const char *name : {"a", "b", "c", "d"})
            best.verdict.comparisons.push_back(
                {name, std::string(name) + " 1.0", {0.5, 0.4, 0.6}, 500, gate::Change::Loss});
        const QList<QStringList> rows = tableRows(htmlOf(reportOf(workspace, "toy/pocl")));
        QCOMPARE(rowOf(rows, "State")->filter("Against ").size(), 3); // parent, K00 and the headline
        for (const char *name : {"a", "b", "c", "d"})
            QVERIFY(rows.contains(QStringList({"K01", name, QString(name) + " 1.0", "500.0 ns",
                                               QString::fromUtf8("0.5000× (0.4000–0.6000)")})));
    }

    void namesAreNoMarkup()
    {
        const Workspace workspace = hostile();
        const report::Document document = reportOf(workspace, "toy/pocl");
        const QString html = htmlOf(document);
        const QList<QStringList> rows = tableRows(html);
        QVERIFY(!html.contains("<script"));
        QVERIFY(rowOf(rows, "K00"));
        QCOMPARE(rowOf(rows, "K00")->at(1), "<b>plain</b>");
        QCOMPARE(rowOf(rows, "K01")->at(1), "a | b ");
        QCOMPARE(rowOf(rows, "R00a")->at(4), "wrong");
        QVERIFY(rowOf(rows, "no-such-card")->contains("not in this workspace"));
        QVERIFY(html.contains("lineages/pocl/K01 $(x)'\\''.cl' --workload toy")); // one word of the shell
        const QStringList lines = QString::fromStdString(report::asMarkdown(document)).split('\n');
        QCOMPARE(lines.filter(QRegularExpression("^# ")).size(), 1);
        QVERIFY(lines.filter("no heading").value(0).startsWith("- **Origin:** a \\# no heading"));
        for (const QString &line : lines.filter(QRegularExpression("^\\| K0\\d \\|")))
            QCOMPARE(QString(line).remove("\\|").count('|'), lines.filter("| State |").value(0).count('|'));
    }

    void needsNoOtherFile()
    {
        for (const char *name : {"gemm/sm90", "softmax/pocl-walked"}) {
            const QString html = htmlOf(reportOf(shipped(), name));
            QVERIFY(!html.contains(QRegularExpression("(src|href)\\s*=|url\\(|@import|<script|<link")));
        }
    }

    /// The three that gained most, most first, each with its causes; where counters are missing it says so and ranks nothing.
    void theLargestStepsAreExplained()
    {
        const report::Document document = reportOf(shipped(), "gemm/sm90");
        const QString text = QString::fromStdString(report::asMarkdown(document));
        QVERIFY(text.contains("\n## Why the largest steps are faster\n"));
        const auto first = text.indexOf("K01 is 14.6");
        const auto second = text.indexOf("K05 is 10.1");
        const auto third = text.indexOf("K02 is 3.74");
        QVERIFY2(first > 0 && first < second && second < third,
                 qPrintable(text.mid(text.indexOf("## Why"), 900)));
        const QList<QStringList> rows = tableRows(htmlOf(document));
        QCOMPARE(
            std::count_if(rows.begin(), rows.end(), [](const auto &row) { return row.value(0) == "Cause"; }),
            3);
        const QString bare = QString::fromStdString(report::asMarkdown(reportOf(hostile(), "toy/pocl")));
        QVERIFY(bare.contains("## Why the largest steps are faster"));
        QVERIFY(!bare.contains("| Cause |"));
    }

    void theRooflineIsAPictureAndATable()
    {
        const report::Document document = reportOf(shipped(), "gemm/sm90");
        const QString last = QString::fromStdString(shipped().findLineage("gemm/sm90")->states.back().id);
        const QList<QStringList> rows = tableRows(htmlOf(document));
        const auto head = std::find_if(rows.begin(), rows.end(),
                                       [](const QStringList &row) { return row.value(1) == "FLOP/B"; });
        QVERIFY(head != rows.end());
        QVERIFY((head + 1)->at(3).endsWith(" %"));
        QVERIFY(rowOf(rows, "bf16"));
        // Findings count the fewest bytes: both figures stand beside the picture and in what the profiles say.
        const auto best =
            std::find_if(head, rows.end(), [&](const QStringList &row) { return row.value(0) == last; });
        QVERIFY(best != rows.end());
        const QString counted = best->at(1);
        const QString text = QString::fromStdString(report::asMarkdown(document));
        QVERIFY(text.count("by the bytes that were counted in device memory " + counted + " FLOP/B") >= 1);
        QVERIFY(text.contains("1365 FLOP/B against a measured ridge"));
        QVERIFY(text.contains("By the fewest bytes that the workload needs it has 1365 FLOP/B"));
        QVERIFY(!QString::fromStdString(report::asMarkdown(reportOf(hostile(), "toy/pocl")))
                     .contains("Roofline"));
    }

    /// Each table of a page can be saved from it, with all digits where there are numbers.
    void tablesAreData()
    {
        QCOMPARE(report::asCsv({{{"a"}, {"b, c"}}, {{"x\"y", "two\nlines"}, {"", "plain"}}}),
                 std::string("a,\"b, c\"\r\n\"x\"\"y\",\"two\nlines\"\r\n,plain\r\n"));
        report::HtmlParts parts;
        parts.hasData = true;
        const QString html = QString::fromStdString(report::asHtml(reportOf(shipped(), "gemm/sm90"), parts));
        const QRegularExpression link(
            "<a download=\"([a-z0-9-]+\\.csv)\" href=\"data:text/csv;charset=utf-8;base64,([A-Za-z0-9+/=]+)\">");
        QStringList names;
        QString states;
        for (auto it = link.globalMatch(html); it.hasNext();) {
            const auto match = it.next();
            names << match.captured(1);
            if (names.last() == "states.csv")
                states = QString::fromUtf8(QByteArray::fromBase64(match.captured(2).toLatin1()));
        }
        QCOMPARE(QSet<QString>(names.begin(), names.end()).size(), names.size());
        QCOMPARE(names.size(), html.count("</thead>"));
        const QStringList lines = states.split("\r\n");
        const QStringList head = cellsOf(lines.value(0));
        const lineage::Lineage &lineage = *shipped().findLineage("gemm/sm90");
        const gate::Trial &best = *lineage.trialOf(lineage.states.back());
        const QStringList last = cellsOf(lines.value(static_cast<int>(lineage.states.size())));
        QCOMPARE(last.size(), head.size());
        QCOMPARE(last.value(static_cast<int>(head.indexOf("latency_ns"))).toDouble(), best.latencyNs.value);
        QCOMPARE(last.value(static_cast<int>(head.indexOf("speedup_to_parent_low"))).toDouble(),
                 best.comparison("parent")->speedup.low);
        QVERIFY(
            !QString::fromStdString(report::asHtml(reportOf(shipped(), "gemm/sm90"), {})).contains("href"));
    }

    void figuresAreAskedForByName()
    {
        QStringList asked;
        report::HtmlParts parts;
        parts.drawn = [&asked](const report::Figure &figure) {
            asked << QString::fromStdString(figure.name);
            return figure.name == report::chainFigure ? std::string("<svg/>") : std::string();
        };
        const std::string html = report::asHtml(reportOf(hostile(), "toy/pocl"), parts);
        QCOMPARE(asked, QStringList({"chain", "trials"}));
        QCOMPARE(QString::fromStdString(html).count("<figure>"),
                 1); // the one that could not be drawn leaves no gap
    }

    void lineageWithoutStates()
    {
        Workspace workspace = hostile();
        workspace.lineages.front().states.clear();
        workspace.lineages.front().transitions.clear();
        workspace.lineages.front().attempts.clear();
        const report::Document document = reportOf(workspace, "toy/pocl");
        QVERIFY(htmlOf(document).contains("no states yet"));
        QVERIFY(!tableRows(htmlOf(document)).isEmpty());
        QVERIFY(report::asMarkdown(document).find("no states yet") != std::string::npos);
    }

    void lineageThatWasNotGated()
    {
        Workspace workspace = hostile();
        workspace.lineages.front().trials.clear();
        const QList<QStringList> rows = tableRows(htmlOf(reportOf(workspace, "toy/pocl")));
        QCOMPARE(rowOf(rows, "K01")->at(3), "not gated");
        QCOMPARE(rowOf(rows, "K01")->at(4), "–");
    }

    void unknownNamesAreAnsweredWithTheNearest_data()
    {
        QTest::addColumn<QString>("name");
        QTest::addColumn<QString>("near");
        QTest::newRow("lineage") << "gem/sm90"
                                 << "'gemm/sm90'";
        QTest::newRow("path of a lineage's workload") << "softmax/pcl"
                                                      << "'softmax/pocl'";
        QTest::newRow("empty") << ""
                               << "There is no lineage, run or experiment ''";
        QTest::newRow("run") << "run:none-such"
                             << "'run:none-such'";
        QTest::newRow("experiment") << "experiment:.."
                                    << "'experiment:..'";
    }

    void unknownNamesAreAnsweredWithTheNearest()
    {
        QFETCH(QString, name);
        QFETCH(QString, near);
        const auto subject = report::findSubject(shipped(), name.toStdString());
        QVERIFY(!subject);
        QCOMPARE(subject.error().code, ErrorCode::NotFound);
        QVERIFY2(QString::fromStdString(subject.error().message).contains(near),
                 subject.error().message.c_str());
    }

    void runsAndExperiments()
    {
        const std::string folder = klineage::test::sourcePath("/tests/data/experiments/cards-against-none");
        const auto experiment = report::findSubject(shipped(), folder);
        QVERIFY(experiment && experiment->experiment);
        const QList<QStringList> rows = tableRows(htmlOf(report::makeReport(shipped(), *experiment)));
        // Two policies on two roots and on both; twelve runs, each with an interval or the word that it was not paired.
        QCOMPARE(
            std::count_if(rows.begin(), rows.end(), [](const QStringList &row) { return row.size() == 8; }),
            1 + 6);
        int runs = 0;
        for (const QStringList &row : rows) {
            if (row.size() != 12 || row.first() == "Root")
                continue;
            ++runs;
            QVERIFY2(row.at(6).contains("–") || row.at(6).contains("not paired"), qPrintable(row.join('|')));
        }
        QCOMPARE(runs, 12);
        // Side by side: two roots, three seeds, a column a policy, each with its interval or why it has none.
        const auto beside = [](const QStringList &row) { return row.size() == 4; };
        QCOMPARE(std::count_if(rows.begin(), rows.end(), beside), 1 + 6);
        for (const QStringList &row : rows) {
            for (int i = 2; beside(row) && row.first() != "Root" && i < 4; ++i)
                QVERIFY2(row.at(i).contains("–") || row.at(i).contains("not paired")
                             || row.at(i) == "failure",
                         qPrintable(row.join('|')));
        }

        const auto run =
            report::findSubject(shipped(), "run:" + folder + "/runs/conv2d-pocl-k00-klineage-s1");
        QVERIFY(run && run->run);
        const report::Document document = report::makeReport(shipped(), *run);
        const QList<QStringList> steps = tableRows(htmlOf(document));
        for (const run::StepRecord &step : run->run->steps) {
            const QStringList *row = rowOf(steps, QString::number(step.number));
            QVERIFY(row);
            QCOMPARE(row->last(), QString::fromStdString(step.reason).replace('\n', ' '));
        }
        QVERIFY(rowOf(steps, "Budget") && rowOf(steps, "Device"));
    }

    void runsWithoutTrials_data()
    {
        QTest::addColumn<QString>("id");
        for (const char *id : {"lift-sm90", "lift-pocl"})
            QTest::newRow(id) << id;
    }

    void runsWithoutTrials()
    {
        QFETCH(QString, id);
        const auto run = report::findSubject(shipped(), klineage::test::sourcePath("/tests/data/runs/")
                                                            + id.toStdString());
        QVERIFY2(run && run->run, run ? "" : run.error().message.c_str());
        const QList<QStringList> rows = tableRows(htmlOf(report::makeReport(shipped(), *run)));
        QVERIFY(rowOf(rows, QString::number(run->run->steps.back().number)));
    }
};

QTEST_GUILESS_MAIN(TestReport)
#include "tst_report.moc"
