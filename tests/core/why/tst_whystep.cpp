// SPDX-License-Identifier: GPL-3.0-or-later
// Steps of a lineage that ships, from its files.
#include "core/why/codelines.h"
#include "core/why/whystep.h"
#include "tests/paths.h"

#include <QTest>

#include <algorithm>
#include <cmath>
#include <fstream>

using namespace klineage;
using namespace klineage::why;

namespace {

const std::filesystem::path workloads = std::filesystem::path(klineage::test::sourcePath()) / "workloads";

lineage::Lineage lineageOf(const char *folder)
{
    auto read = lineage::readLineage(workloads / folder);
    if (!read)
        qFatal("%s", read.error().message.c_str());
    return *read;
}

std::string lineOf(const std::filesystem::path &file, int number)
{
    std::ifstream in(file);
    std::string line;
    for (int i = 0; i < number; ++i)
        std::getline(in, line);
    return line;
}

} // namespace

class TestWhyStep : public QObject
{
    Q_OBJECT

private slots:
    void initTestCase()
    {
        m_gemm = lineageOf("gemm/lineages/sm90");
        const auto workload = workload::readWorkload(workloads / "gemm");
        QVERIFY(workload.has_value());
        m_workload = *workload;
    }

    /// Tensor cores in place of multiply-adds: the instructions that were issued are most of it.
    void tensorCoresIssueLess()
    {
        const auto question = askStep(m_gemm, "K05", {}, &m_workload);
        QVERIFY(question && question->before && question->isParent);
        const Answer out = answer(*question);
        QVERIFY(out.explanation.paired);
        QCOMPARE(out.explanation.beforeName, std::string("K04"));
        const gate::Cause &first = out.explanation.causes.front();
        QCOMPARE(first.group, std::string("issue"));
        QVERIFY(first.shareOfDifference > 0.5);
        QVERIFY(!first.lines.empty());
        for (const gate::MovedLine &line : first.lines)
            QVERIFY(line.deltaNs < 0 && line.line() > 0);
        // Of the plan, evaluated: it comes to what was recorded.
        QCOMPARE(out.after.size(), std::size_t(1));
        QVERIFY(out.after[0].grid && out.after[0].block);
        QCOMPARE(static_cast<double>((*out.after[0].grid)[0] * (*out.after[0].grid)[1]),
                 *out.after[0].blocks);
    }

    void everyRecordedStepIsAnsweredOrSaysWhyNot()
    {
        for (const char *folder : {"gemm/lineages/sm90", "fmha/lineages/sm90", "gdn/lineages/sm90",
                                   "softmax/lineages/sm90", "softmax/lineages/pocl"}) {
            const lineage::Lineage lineage = lineageOf(folder);
            for (const lineage::State &state : lineage.states) {
                const auto question = askStep(lineage, state.id, {}, nullptr);
                if (!question)
                    continue; // without a trial
                const gate::Explanation out = answer(*question).explanation;
                QVERIFY2(out.causes.empty() != out.nothing.empty(), (state.id + " of " + folder).c_str());
                for (const gate::Cause &cause : out.causes)
                    QVERIFY(std::isfinite(cause.shareOfDifference) && cause.shareOfDifference > 0);
            }
        }
    }

    /// A line that an explanation names has code, on the side that it names.
    void linesToLookAtHaveCode()
    {
        int checked = 0;
        for (const char *folder : {"gemm/lineages/sm90", "fmha/lineages/sm90", "gdn/lineages/sm90",
                                   "topk/lineages/sm90", "conv2d-f16/lineages/sm90"}) {
            const lineage::Lineage lineage = lineageOf(folder);
            for (const lineage::State &state : lineage.states) {
                const auto question = askStep(lineage, state.id, {}, nullptr);
                if (!question || !question->before)
                    continue;
                const Answer out = answer(*question);
                for (const gate::Cause &cause : out.explanation.causes) {
                    for (const gate::MovedLine &line : cause.lines) {
                        const auto &file = line.side() == 0 ? question->before->file : question->after.file;
                        const std::string text = lineOf(file, line.line());
                        const std::size_t first = text.find_first_not_of(" \t");
                        const std::string where =
                            file.string() + ':' + std::to_string(line.line()) + ": " + text;
                        QVERIFY2(first != std::string::npos && text.compare(first, 2, "//") != 0
                                     && text[first] != '#',
                                 where.c_str());
                        ++checked;
                    }
                }
            }
        }
        QVERIFY(checked > 50);
    }

    void codeLinesAreThoseWithCode()
    {
        const std::vector<bool> lines = codeLines(
            "/* a\n   plan */ int x;\n\n// why\n#pragma unroll\nx = 1; // so\n", kernel::Surface::Cuda);
        QCOMPARE(lines, (std::vector<bool>{false, false, true, false, false, false, true}));
        QCOMPARE(nearestCode(lines, 2), 2);
        QCOMPARE(nearestCode(lines, 3), 2);
        QCOMPARE(nearestCode(lines, 4), 6); // the later one of two
        QCOMPARE(nearestCode(lines, 7), 0); // from a header
        QCOMPARE(nearestCode({false, false}, 1), 0);
        QCOMPARE(codeLines("# why\nx = 1\n\n", kernel::Surface::Triton),
                 (std::vector<bool>{false, false, true, false}));
    }

    void theFirstStateHasNothingBeforeIt()
    {
        const auto question = askStep(m_gemm, "K00", {}, &m_workload);
        QVERIFY(question && !question->before);
        const Answer out = answer(*question);
        QVERIFY(out.explanation.nothing.find("nothing before it") != std::string::npos);
        QVERIFY(out.before.empty() && !out.after.empty());
        QVERIFY(!askStep(m_gemm, "K99", {}, nullptr));
    }

    /// Rounds are paired with the parent alone.
    void aBaselineIsNotPaired()
    {
        const auto question = askStep(m_gemm, "K08", "K05", &m_workload);
        QVERIFY(question && !question->isParent);
        QVERIFY(!answer(*question).explanation.paired);
    }

    /// Figures of two devices do not explain a step; the later one's launches are told all the same.
    void anotherDeviceIsNotCompared()
    {
        lineage::Lineage moved = m_gemm;
        const lineage::State *parent = moved.findState("K04");
        QVERIFY(parent);
        const auto trial = std::find_if(moved.trials.begin(), moved.trials.end(),
                                        [&](const gate::Trial &one) { return one.id == parent->trial; });
        QVERIFY(trial != moved.trials.end());
        trial->environment.device = "NVIDIA B200";
        const auto question = askStep(moved, "K05", {}, &m_workload);
        QVERIFY(question && !question->before);
        const Answer out = answer(*question);
        QVERIFY(out.explanation.causes.empty() && out.before.empty() && !out.after.empty());
        QCOMPARE(out.explanation.nothing, "K04 was recorded on NVIDIA B200 and K05 on "
                                              + question->after.trial.environment.device
                                              + ": figures of two devices do not explain a step.");
    }

    /// Files that cannot be read take lines and extents away, nothing else.
    void withoutFilesThereAreNoLines()
    {
        auto question = askStep(m_gemm, "K05", {}, &m_workload);
        question->before->file = question->after.file = "/nowhere/K05.cu";
        const Answer out = answer(*question);
        QVERIFY(!out.explanation.causes.empty());
        QVERIFY(out.explanation.causes.front().lines.empty());
        QVERIFY(!out.after[0].grid && out.after[0].blocks);
    }

    void theChainEndsAtTheRow()
    {
        const Chain chain = chainTo(m_gemm, "K03");
        QCOMPARE(chain.length, std::size_t(4));
        QCOMPARE(chain.states.size(), m_gemm.states.size());
        QCOMPARE(chain.states[3].id, std::string("K03"));
        // An attempt stands after the state that it was tried from.
        const Chain attempt = chainTo(m_gemm, "R05a");
        QCOMPARE(attempt.length, std::size_t(7));
        QCOMPARE(attempt.states[5].id, std::string("K05"));
        QCOMPARE(attempt.states[6].id, std::string("R05a"));
        QCOMPARE(attempt.states.size(), m_gemm.states.size() + 1);
    }

private:
    lineage::Lineage m_gemm;
    workload::Workload m_workload;
};

QTEST_GUILESS_MAIN(TestWhyStep)
#include "tst_whystep.moc"
