// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/gate/selftest/corpusfile.h"

#include "core/kernel/candidate.h"
#include "tests/paths.h"

#include <QTemporaryDir>
#include <QTest>

#include <fstream>
#include <set>

using namespace klineage;
using namespace klineage::gate;

namespace {

const std::string entryText = R"(workloads = ["workloads"]

[[candidate]]
file = "opencl/zeros.cl"
workload = "small"
kind = "hostile"
about = "Writes zeros."
expect = ["wrong", "unsafe"]
stages = ["correctness"]
hides = ["secret"]
deadline_s = 2
)";

const std::string cheatText = R"(workloads = ["workloads"]

[[candidate]]
file = "cache.cl"
workload = "small"
kind = "hostile"
about = "Keeps its result."
expect = ["wrong", "correct"]
stages = ["profile"]
parent = "plain.cl"
changes = ["no_gain", "loss"]
harmless = "It does the work again."
)";

std::string replaced(std::string text, const std::string &what, const std::string &with)
{
    const std::size_t at = text.find(what);
    return at == std::string::npos ? "not there: " + what : text.replace(at, what.size(), with);
}

CorpusEntry onlyEntry(const std::string &text)
{
    const Result<Corpus> corpus = parseCorpus(text, "corpus.toml");
    return corpus && corpus->entries.size() == 1 ? corpus->entries.front() : CorpusEntry{};
}

Verdict verdictOf(VerdictStatus status, Stage stage)
{
    Verdict verdict;
    verdict.status = status;
    verdict.stage = stage;
    return verdict;
}

std::filesystem::path shippedCorpus()
{
    return std::filesystem::path(klineage::test::sourcePath()) / "tests/gate/corpus";
}

} // namespace

class TestCorpusFile : public QObject
{
    Q_OBJECT

private slots:
    void readsEveryKey()
    {
        const CorpusEntry entry = onlyEntry(entryText);
        QCOMPARE(entry.file, std::string("opencl/zeros.cl"));
        QCOMPARE(entry.workload, std::string("small"));
        QVERIFY(entry.kind == CandidateKind::Hostile);
        QVERIFY(entry.surface == kernel::Surface::OpenCl);
        QVERIFY((entry.expected == std::vector{VerdictStatus::Wrong, VerdictStatus::Unsafe}));
        QVERIFY(entry.stages == std::vector{Stage::Correctness});
        QVERIFY(entry.hides == std::vector<std::string>{"secret"});
        QCOMPARE(entry.deadlineSeconds, 2.0);
        const CorpusEntry cheat = onlyEntry(cheatText);
        QCOMPARE(cheat.parent, std::string("plain.cl"));
        QVERIFY((cheat.changes == std::vector{Change::NoGain, Change::Loss}));
        QVERIFY(!cheat.harmless.empty());
        QVERIFY(onlyEntry(replaced(entryText, "zeros.cl", "zeros.cu")).surface == kernel::Surface::Cuda);
    }

    void refuses_data()
    {
        QTest::addColumn<QString>("base");
        QTest::addColumn<QString>("what");
        QTest::addColumn<QString>("with");
        QTest::addColumn<QString>("where");
        QTest::addColumn<QString>("message");
        const QString entry = QString::fromStdString(entryText);
        const QString cheat = QString::fromStdString(cheatText);
        const auto row = [](const char *name, const QString &base, const char *what, const char *with,
                            const char *where, const char *message) {
            QTest::newRow(name) << base << what << with << where << message;
        };
        row("unknown key", entry, "about", "abuot", ":7:1:", "did you mean");
        row("missing workloads", entry, "workloads = [\"workloads\"]", "", ":1:1:", "'workloads'");
        row("unknown kind", entry, "\"hostile\"", "\"evil\"", ":6:8:", "'evil'");
        row("unknown status", entry, "\"unsafe\"", "\"unsave\"", ":8:20:", "'unsave' in 'expect'");
        row("unknown stage", entry, "[\"correctness\"]", "[\"correct\"]", ":9:11:", "'correct' in 'stages'");
        row("no status", entry, "[\"wrong\", \"unsafe\"]", "[]", ":8:10:", "'expect' is empty");
        row("absolute file", entry, "opencl/zeros.cl", "/etc/zeros.cl", ":4:8:", "no file of this folder");
        row("file above", entry, "opencl/zeros.cl", "../zeros.cl", ":4:8:", "no file of this folder");
        row("no candidate", entry, "zeros.cl", "zeros.txt", ":4:8:", "'.cl', '.cu' or '.py'");
        row("deadline", entry, "deadline_s = 2", "deadline_s = 0", ":11:14:", "out of range");
        row("honest but refused", entry, "\"hostile\"", "\"honest\"", ":8:10:", "must be accepted");
        row("cheat may pass", entry, "\"unsafe\"", "\"correct\"", ":8:10:", "needs a reason");
        row("needless reason", entry, "hides", "harmless = \"x\"\nhides", ":10:12:", "'harmless'");
        row("no changes", cheat, "changes = [\"no_gain\", \"loss\"]", "", ":10:10:", "belong together");
        row("no parent", cheat, "parent = \"plain.cl\"", "", ":11:11:", "belong together");
        row("parent elsewhere", cheat, "plain.cl", "plain.cu", ":10:10:", "another surface");
        QTest::newRow("twice") << entry + entry.mid(entry.indexOf("[[")) << "workloads"
                               << "workloads"
                               << ":13:8:"
                               << "is there twice";
    }
    void refuses()
    {
        QFETCH(QString, base);
        QFETCH(QString, what);
        QFETCH(QString, with);
        const std::string text = replaced(base.toStdString(), what.toStdString(), with.toStdString());
        const Result<Corpus> corpus = parseCorpus(text, "corpus.toml");
        QVERIFY(!corpus.has_value());
        const QString error = QString::fromStdString(corpus.error().message);
        QFETCH(QString, where);
        QFETCH(QString, message);
        QVERIFY2(error.startsWith("corpus.toml" + where), qPrintable(error));
        QVERIFY2(error.contains(message), qPrintable(error));
    }

    void comparesStatusAndStage()
    {
        const CorpusEntry entry = onlyEntry(entryText);
        QCOMPARE(mismatch(entry, verdictOf(VerdictStatus::Wrong, Stage::Correctness)), std::string());
        QVERIFY(mismatch(entry, verdictOf(VerdictStatus::Correct, Stage::Profile)).find("'wrong' or 'unsafe'")
                != std::string::npos);
        QVERIFY(mismatch(entry, verdictOf(VerdictStatus::Wrong, Stage::Profile)).find("'correctness'")
                != std::string::npos);
    }

    void looksForWhatMustBeHidden()
    {
        const CorpusEntry entry = onlyEntry(entryText);
        const Verdict clean = verdictOf(VerdictStatus::Wrong, Stage::Correctness);
        for (int part = 0; part < 4; ++part) {
            Verdict verdict = clean;
            const std::string leak = "line 1: secret";
            if (part == 0)
                verdict.message = leak;
            else if (part == 1)
                verdict.hint = leak;
            else if (part == 2)
                verdict.log = leak;
            else
                verdict.evidence.push_back({"detail", leak});
            QVERIFY(mismatch(entry, verdict).find("secret") != std::string::npos);
        }
    }

    void aCheatMayPassOnlyWithoutAGain()
    {
        const CorpusEntry entry = onlyEntry(cheatText);
        Verdict verdict = verdictOf(VerdictStatus::Correct, Stage::Profile);
        QVERIFY(mismatch(entry, verdict).find("not compared") != std::string::npos);
        verdict.comparisons.push_back({"openblas", "", {}, 0, Change::Gain});
        verdict.comparisons.push_back({"parent", "", {}, 0, Change::NoGain});
        QCOMPARE(mismatch(entry, verdict), std::string());
        verdict.comparisons.back().change = Change::Gain;
        QVERIFY(mismatch(entry, verdict).find("'gain'") != std::string::npos);
    }

    void theShippedCorpusIsSound()
    {
        const Result<Corpus> corpus = readCorpus(shippedCorpus());
        QVERIFY2(corpus.has_value(), corpus ? "" : corpus.error().message.c_str());
        int refused[2] = {};
        int honest[2] = {};
        std::set<std::string> named;
        for (const CorpusEntry &entry : corpus->entries) {
            ++(entry.kind == CandidateKind::Honest ? honest
                                                   : refused)[static_cast<int>(entry.surface->device)];
            named.insert(entry.file);
            if (!entry.parent.empty())
                named.insert(entry.parent);
        }
        QVERIFY(refused[static_cast<int>(kernel::DeviceKind::OpenCl)] >= 30);
        QVERIFY(refused[static_cast<int>(kernel::DeviceKind::Cuda)] >= 10);
        QVERIFY(honest[static_cast<int>(kernel::DeviceKind::OpenCl)] >= 9);
        QVERIFY(honest[static_cast<int>(kernel::DeviceKind::Cuda)] >= 6);
        for (const char *folder : {"opencl", "cuda"}) {
            for (const auto &file : std::filesystem::directory_iterator(shippedCorpus() / folder)) {
                const std::string name = std::string(folder) + "/" + file.path().filename().string();
                QVERIFY2(named.count(name) == 1,
                         qPrintable("not in corpus.toml: " + QString::fromStdString(name)));
            }
        }
    }

    void honestCandidatesHavePlans()
    {
        const Result<Corpus> corpus = readCorpus(shippedCorpus());
        QVERIFY(corpus.has_value());
        for (const CorpusEntry &entry : corpus->entries) {
            if (entry.kind != CandidateKind::Honest)
                continue;
            const auto candidate = kernel::readCandidate(corpus->directory / entry.file);
            QVERIFY2(candidate.has_value(), candidate ? "" : candidate.error().message.c_str());
            QVERIFY(candidate->surface == entry.surface);
        }
    }

    void missingFilesAreNamed()
    {
        const Result<Corpus> none = readCorpus(shippedCorpus() / "workloads");
        QVERIFY(!none.has_value());
        QVERIFY(none.error().code == ErrorCode::NotFound);
        Result<Corpus> corpus = readCorpus(shippedCorpus());
        QVERIFY(corpus.has_value());
        const auto workload = corpus->workloadDirectory("no-such-workload");
        QVERIFY(!workload.has_value());
        QVERIFY(workload.error().message.find("no-such-workload") != std::string::npos);
    }

    /// Whose candidates would be judged by whichever was found first.
    void twoWorkloadsOfOneName()
    {
        QTemporaryDir folder;
        const std::filesystem::path path = folder.path().toStdString();
        Corpus corpus;
        corpus.directory = path;
        corpus.workloadFolders = {"a", "b", "a"};
        const auto write = [&](const char *name) {
            std::filesystem::create_directories(path / name / "small");
            std::ofstream(path / name / "small" / "workload.toml") << "name = \"small\"\n";
        };
        write("a");
        QCOMPARE(corpus.workloadDirectory("small").value(), path / "a" / "small");
        write("b");
        const auto two = corpus.workloadDirectory("small");
        QVERIFY(!two && two.error().message.find("two workloads small") != std::string::npos);
    }
};

QTEST_GUILESS_MAIN(TestCorpusFile)
#include "tst_corpusfile.moc"
