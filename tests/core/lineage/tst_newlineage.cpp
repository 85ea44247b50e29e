// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/lineage/newlineage.h"
#include "tests/core/trialfixture.h"

#include <QTest>

using namespace klineage;
using namespace klineage::lineage;
using namespace klineage::tests;
namespace fs = std::filesystem;

namespace {

const char *const text =
    "/*klineage\nsurface = \"opencl\"\n[[launch]]\nkernel = \"f\"\ngrid = [1]\nblock = [1]\nargs = []\n*/\n"
    "__kernel void f() {}\n";

NewLineage mine()
{
    return {"toy", "pocl", "mine", "My toy", "the first", "by hand"};
}

std::size_t foldersIn(const fs::path &folder)
{
    return static_cast<std::size_t>(std::distance(fs::directory_iterator(folder), fs::directory_iterator()));
}

} // namespace

class TestNewLineage : public QObject
{
    Q_OBJECT

private slots:
    void beginsWithItsTrial()
    {
        const WorkspaceCopy copy;
        const gate::Trial trial = makeTrial("00000000000000f1", text);
        const auto lineage = beginLineage(copy.root() / "workloads/toy", mine(), text, trial);
        QVERIFY2(lineage, lineage ? "" : lineage.error().message.c_str());
        QCOMPARE(lineage->key(), std::string("toy/pocl-mine"));
        QVERIFY2(lineage->notices.empty(), lineage->notices.empty() ? "" : lineage->notices[0].c_str());
        QCOMPARE(lineage->states.size(), std::size_t{1});
        QCOMPARE(lineage->states[0].id, std::string("K00"));
        QVERIFY(lineage->trialOf(lineage->states[0]));
        QCOMPARE(lineage->trialOf(lineage->states[0])->file, std::string("K00.cl"));
        QCOMPARE(lineage->title, std::string("My toy"));
    }

    void beginsUngated()
    {
        const WorkspaceCopy copy;
        const auto lineage = beginLineage(copy.root() / "workloads/toy", mine(), text, std::nullopt);
        QVERIFY(lineage);
        QVERIFY(!lineage->trialOf(lineage->states[0]));
        QVERIFY(lineage->notices.empty());
    }

    void refusesWhatWouldNotHold()
    {
        const WorkspaceCopy copy;
        const fs::path folder = copy.root() / "workloads/toy";
        const std::size_t before = foldersIn(folder / "lineages");
        gate::Trial wrong = makeTrial("00000000000000f1", text);
        wrong.verdict.status = gate::VerdictStatus::Wrong;
        gate::Trial elsewhere = makeTrial("00000000000000f1", text);
        elsewhere.environment.platform = "sm90";
        const gate::Trial ofAnother = makeTrial("00000000000000f1", "another");
        for (const gate::Trial &trial : {wrong, elsewhere, ofAnother})
            QVERIFY(!beginLineage(folder, mine(), text, trial));
        NewLineage taken = mine();
        taken.name.clear();
        const auto conflict = beginLineage(folder, taken, text, std::nullopt);
        QVERIFY(!conflict && conflict.error().code == ErrorCode::Conflict);
        NewLineage outside = mine();
        outside.name = "../out";
        QVERIFY(!beginLineage(folder, outside, text, std::nullopt));
        QVERIFY(!beginLineage(folder, mine(), "no plan", std::nullopt));
        QCOMPARE(foldersIn(folder / "lineages"), before);
    }
};

QTEST_GUILESS_MAIN(TestNewLineage)
#include "tst_newlineage.moc"
