// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/files/atomicfile.h"
#include "core/lineage/record.h"
#include "core/lineage/verify.h"
#include "tests/core/trialfixture.h"

#include <QTest>

#include <algorithm>
#include <fstream>
#include <limits>

using namespace klineage;
using namespace klineage::lineage;
using namespace klineage::tests;

namespace {

Lineage mustRead(const std::filesystem::path &directory)
{
    Result<Lineage> lineage = readLineage(directory);
    if (!lineage)
        qFatal("%s", lineage.error().message.c_str());
    return std::move(*lineage);
}

void append(const std::filesystem::path &path, const std::string &text)
{
    std::ofstream(path, std::ios::app | std::ios::binary) << text;
}

bool anyNotice(const Lineage &lineage, const std::string &part)
{
    return std::any_of(lineage.notices.begin(), lineage.notices.end(),
                       [&](const std::string &notice) { return notice.find(part) != std::string::npos; });
}

std::string readAll(const std::filesystem::path &path)
{
    return files::readFile(path, 1 << 20).value_or(std::string());
}

} // namespace

class TestLineageStore : public QObject
{
    Q_OBJECT

private slots:
    void readsTheFixture()
    {
        const WorkspaceCopy copy;
        const Lineage lineage = mustRead(copy.lineage());
        QVERIFY2(lineage.notices.empty(), lineage.notices.empty() ? "" : lineage.notices[0].c_str());
        QCOMPARE(lineage.trials.size(), std::size_t{5});
        QCOMPARE(lineage.trialOf(lineage.states[2])->id, std::string("00000000000000a2"));
        QCOMPARE(lineage.trialOf(lineage.attempts[0])->verdict.status, gate::VerdictStatus::Wrong);
        QCOMPARE(lineage.branches.size(), std::size_t{1});
        QCOMPARE(lineage.branches[0].parent, std::string("K01"));
        QVERIFY(std::filesystem::exists(copy.lineage() / lineage.branches[0].file));
    }

    void aRederivedFileIsNoBranchAndIsChecked()
    {
        const WorkspaceCopy copy;
        const std::string before = readAll(copy.lineage() / "K00.cl");
        const std::string after = readAll(copy.lineage() / "K01.cl");
        const std::string text = after + "// derived again\n";
        std::filesystem::create_directory(copy.lineage() / "rederived");
        append(copy.lineage() / "rederived/K01.cl", text);
        QVERIFY(appendTrial(copy.lineage(), makeTrial("00000000000000e0", text, before)).has_value());
        QVERIFY(appendTrial(copy.lineage(), makeTrial("00000000000000e1", text, after)).has_value());
        Lineage lineage = mustRead(copy.lineage());
        QCOMPARE(lineage.branches.size(), std::size_t{3}); // of K00 and of K01: nobody has named it yet
        const std::size_t findings = verifyLineage(lineage).findings.size();

        lineage.transitions[0].rederived = "rederived/K01.cl";
        lineage.transitions[0].rederivedTrial = "00000000000000e0";
        lineage.transitions[0].rederivedMatch = "00000000000000e1";
        QVERIFY(files::writeFileAtomic(copy.lineage() / "lineage.toml", writeLineage(lineage)).has_value());
        const Lineage named = mustRead(copy.lineage());
        QCOMPARE(named.branches.size(), std::size_t{1});
        QCOMPARE(verifyLineage(named).findings.size(), findings);

        lineage.transitions[0].rederivedMatch = "00000000000000e0"; // compared with K00, not with K01
        QVERIFY(files::writeFileAtomic(copy.lineage() / "lineage.toml", writeLineage(lineage)).has_value());
        QCOMPARE(verifyLineage(mustRead(copy.lineage())).findings.size(), findings + 1);
    }

    void aNamedLineageHasItsOwnFolder()
    {
        const WorkspaceCopy copy;
        Lineage lineage = mustRead(copy.lineage());
        lineage.name = "walked";
        QVERIFY(files::writeFileAtomic(copy.lineage() / "lineage.toml", writeLineage(lineage)).has_value());
        QVERIFY(anyNotice(mustRead(copy.lineage()), "expected 'pocl-walked'"));
        const std::filesystem::path moved = copy.lineage().parent_path() / "pocl-walked";
        std::filesystem::rename(copy.lineage(), moved);
        const Lineage found = mustRead(moved);
        QVERIFY(found.notices.empty());
        QCOMPARE(found.key(), std::string("toy/pocl-walked"));
    }

    void aTornLastLineIsDroppedAndSaid()
    {
        const WorkspaceCopy copy;
        append(copy.lineage() / "trials.jsonl", "{\"id\":\"00000000000000d");
        const Lineage lineage = mustRead(copy.lineage());
        QCOMPARE(lineage.trials.size(), std::size_t{5});
        QVERIFY(anyNotice(lineage, "Line 6 of trials.jsonl was cut short"));
    }

    void appendingAfterATornLineLosesNothingElse()
    {
        const WorkspaceCopy copy;
        append(copy.lineage() / "trials.jsonl", "{\"id\":\"00000000000000d");
        const gate::Trial trial = makeTrial("00000000000000d1", "a", readAll(copy.lineage() / "K00.cl"));
        QVERIFY(appendTrial(copy.lineage(), trial).has_value());
        const Lineage lineage = mustRead(copy.lineage());
        QCOMPARE(lineage.trials.size(), std::size_t{6});
        QVERIFY(lineage.notices.empty());
    }

    void aDamagedLineInTheMiddleIsLeftOut()
    {
        const WorkspaceCopy copy;
        append(copy.lineage() / "trials.jsonl", "{\"id\":oops}\n");
        const gate::Trial trial = makeTrial("00000000000000d1", "a");
        QVERIFY(appendTrial(copy.lineage(), trial).has_value());
        const Lineage lineage = mustRead(copy.lineage());
        QCOMPARE(lineage.trials.size(), std::size_t{6});
        QVERIFY(anyNotice(lineage, "trials.jsonl:6:"));
    }

    void inconsistenciesAreNotices()
    {
        const WorkspaceCopy copy;
        append(copy.lineage() / "K02.cl", "// changed after it was measured\n");
        std::filesystem::remove(copy.lineage() / "R01a.cl");
        gate::Trial foreign = makeTrial("00000000000000d1", readAll(copy.lineage() / "K00.cl"));
        foreign.workload = "other";
        foreign.environment.platform = "sm90";
        QVERIFY(appendTrial(copy.lineage(), foreign).has_value());
        QVERIFY(appendTrial(copy.lineage(), foreign).has_value());
        std::string toml = readAll(copy.lineage() / "lineage.toml");
        toml.replace(toml.find("00000000000000a0"), 16, "00000000000000d1");
        toml.replace(toml.find("00000000000000a1"), 16, "00000000000000ff");
        QVERIFY(files::writeFileAtomic(copy.lineage() / "lineage.toml", toml).has_value());

        const Lineage lineage = mustRead(copy.lineage());
        QVERIFY(
            anyNotice(lineage, "State K02: K02.cl is not the file that its trial 00000000000000a2 measured"));
        QVERIFY(anyNotice(lineage, "Attempt R01a: "));
        QVERIFY(anyNotice(lineage, "belongs to the workload 'other'"));
        QVERIFY(anyNotice(lineage, "was recorded on the platform 'sm90'"));
        QVERIFY(anyNotice(lineage, "its trial 00000000000000ff is not in trials.jsonl"));
        QVERIFY(anyNotice(lineage, "repeats trial 00000000000000d1"));
    }

    void aTrialThatCannotBeReadAgainIsRefused()
    {
        const WorkspaceCopy copy;
        gate::Trial trial = makeTrial("00000000000000d1", "a");
        trial.latencyNs.value = std::numeric_limits<double>::quiet_NaN();
        const Status status = appendTrial(copy.lineage(), trial);
        QVERIFY(!status.has_value());
        QCOMPARE(mustRead(copy.lineage()).trials.size(), std::size_t{5});
    }

    void aBranchIsStoredOnceAndShown()
    {
        const WorkspaceCopy copy;
        const std::string text = "/*klineage\n*/ new";
        const Result<std::string> first = storeBranch(copy.lineage(), text, kernel::Surface::OpenCl);
        QVERIFY(first.has_value());
        QCOMPARE(*first, "branches/" + files::sha256Hex(text).substr(0, 12) + ".cl");
        QCOMPARE(*storeBranch(copy.lineage(), text, kernel::Surface::OpenCl), *first);
        QCOMPARE(readAll(copy.lineage() / *first), text);

        const std::string k01 = readAll(copy.lineage() / "K01.cl");
        QVERIFY(appendTrial(copy.lineage(), makeTrial("00000000000000d1", text, k01)).has_value());
        QVERIFY(appendTrial(copy.lineage(), makeTrial("00000000000000d2", text, k01)).has_value());
        // A state measured again is no branch.
        QVERIFY(appendTrial(copy.lineage(),
                            makeTrial("00000000000000d3", k01, readAll(copy.lineage() / "K00.cl")))
                    .has_value());
        const Lineage lineage = mustRead(copy.lineage());
        QCOMPARE(lineage.branches.size(), std::size_t{2});
        QCOMPARE(lineage.branches[1].trial, std::string("00000000000000d2")); // the newer of the two
        QCOMPARE(lineage.branches[1].file, *first);
        // On another device it is another branch: neither stands for the other.
        gate::Trial elsewhere = makeTrial("00000000000000d4", text, k01);
        elsewhere.environment.device = "another device";
        QVERIFY(appendTrial(copy.lineage(), elsewhere).has_value());
        const Lineage both = mustRead(copy.lineage());
        QCOMPARE(both.branches.size(), std::size_t{3});
        QCOMPARE(both.branches[1].trial, std::string("00000000000000d2"));
    }

    void recordingFindsTheFileOrStoresABranch()
    {
        const WorkspaceCopy copy;
        const Lineage lineage = mustRead(copy.lineage());
        const std::string k02 = readAll(copy.lineage() / "K02.cl");
        QCOMPARE(*recordTrial(lineage, makeTrial("00000000000000d1", k02)), RecordOutcome::Added);
        QCOMPARE(*recordTrial(lineage, makeTrial("00000000000000a2", k02)), RecordOutcome::Duplicate);
        QCOMPARE(*recordTrial(lineage, makeTrial("00000000000000d2", "unknown")),
                 RecordOutcome::UnknownCandidate);
        QCOMPARE(*recordTrial(lineage, makeTrial("00000000000000d3", "new"), "new"), RecordOutcome::Added);
        QVERIFY(
            !recordTrial(lineage, makeTrial("00000000000000d4", "new"), "not what was measured").has_value());
        gate::Trial foreign = makeTrial("00000000000000d5", k02);
        foreign.environment.platform = "sm90";
        QVERIFY(!recordTrial(lineage, foreign).has_value());

        const Lineage after = mustRead(copy.lineage());
        QCOMPARE(after.findTrial("00000000000000d1")->file, std::string("K02.cl"));
        QVERIFY(after.findTrial("00000000000000d3")->file.starts_with("branches/"));
        QCOMPARE(after.trials.size(), std::size_t{7});
    }

    void assigningTakesOnlyTrialsThatCanStand()
    {
        const WorkspaceCopy copy;
        const std::string k01 = readAll(copy.lineage() / "K01.cl");
        const std::string k02 = readAll(copy.lineage() / "K02.cl");
        gate::Trial wrong = makeTrial("00000000000000d2", k02, k01);
        wrong.verdict.status = gate::VerdictStatus::Wrong;
        QVERIFY(appendTrial(copy.lineage(), makeTrial("00000000000000d1", k02))
                    .has_value()); // without its parent
        QVERIFY(appendTrial(copy.lineage(), wrong).has_value());
        QCOMPARE(assignTrials(copy.lineage(), {"00000000000000d1", "00000000000000d2"})->size(),
                 std::size_t{0});

        QVERIFY(appendTrial(copy.lineage(), makeTrial("00000000000000d3", k02, k01)).has_value());
        QCOMPARE(*assignTrials(copy.lineage(), {"00000000000000d3"}), std::vector<std::string>{"K02"});
        QCOMPARE(mustRead(copy.lineage()).states[2].trial, std::string("00000000000000d3"));
    }

    /// What a newer program wrote into the files is said, and is there after this one has rewritten lineage.toml.
    void keysOfANewerFormatAreKept()
    {
        const WorkspaceCopy copy;
        const std::filesystem::path path = copy.lineage() / "lineage.toml";
        std::string text = readAll(path);
        const std::size_t state = text.find("id = \"K02\"");
        QVERIFY(state != std::string::npos);
        text.insert(state, "mood = { sky = \"blue\" }\n");
        QVERIFY(files::writeFileAtomic(path, "format = \"1.4\"\nseason = \"autumn\"\n" + text));
        const std::string k01 = readAll(copy.lineage() / "K01.cl");
        const std::string k02 = readAll(copy.lineage() / "K02.cl");
        std::string line = gate::writeTrial(makeTrial("00000000000000d3", k02, k01));
        line.insert(1, "\"format\":\"1.2\",\"moon\":[1],");
        append(copy.lineage() / "trials.jsonl", line + '\n');

        const Lineage lineage = mustRead(copy.lineage());
        QVERIFY(anyNotice(
            lineage,
            "lineage.toml is of format 1.4, which is newer than this program: its keys 'season' and 'state[2].mood' are kept"));
        QVERIFY(anyNotice(
            lineage,
            "trials.jsonl is of format 1.2, which is newer than this program: its key 'moon' is kept"));
        QCOMPARE(*assignTrials(copy.lineage(), {"00000000000000d3"}), std::vector<std::string>{"K02"});
        const std::string after = readAll(path);
        QVERIFY(after.starts_with("format = \"1.4\"\nseason = \"autumn\"\nworkload = "));
        QVERIFY2(after.find("[[state]]\nmood = { sky = \"blue\" }\nid = \"K02\"") != std::string::npos,
                 after.c_str());
        QVERIFY(after.find("trial = \"00000000000000d3\"") != std::string::npos);
        QCOMPARE(mustRead(copy.lineage()).notices, lineage.notices);
    }

    void aNewerMajorFormatIsRefused()
    {
        const WorkspaceCopy copy;
        const std::filesystem::path path = copy.lineage() / "lineage.toml";
        QVERIFY(files::writeFileAtomic(path, "format = 2\n" + readAll(path)));
        const Result<Lineage> lineage = readLineage(copy.lineage());
        QVERIFY(!lineage);
        QVERIFY2(lineage.error().message.ends_with(
                     "lineage.toml:1:10: the format is 2; this program reads 1, a newer one is needed."),
                 lineage.error().message.c_str());
        QVERIFY(!assignTrials(copy.lineage(), {}));
    }
};

QTEST_GUILESS_MAIN(TestLineageStore)
#include "tst_lineagestore.moc"
