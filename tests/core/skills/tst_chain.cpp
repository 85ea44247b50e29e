// SPDX-License-Identifier: GPL-3.0-or-later
// The library that ships: its cards, and the chains of them that roots get (tests/data/retrieval/chains.toml).
#include "core/files/atomicfile.h"
#include "core/files/tomlreader.h"
#include "core/run/lift/namednumbers.h"
#include "core/skills/admission.h"
#include "core/skills/retrieval/chain.h"
#include "core/skills/retrieval/similarity.h"
#include "core/skills/retrieval/sources.h"
#include "core/skills/store.h"
#include "core/skills/vocabulary.h"
#include "core/talk/cardtext.h"
#include "tests/paths.h"

#include <QTest>

#include <algorithm>

using namespace klineage;
using namespace klineage::skills;

namespace {

namespace fs = std::filesystem;

const fs::path source = klineage::test::sourcePath();

struct Root {
    std::string workload;
    std::string folder;
    std::string state;
};

Root rootOf(const std::string &name)
{
    const std::size_t first = name.find('/');
    const std::size_t last = name.rfind('/');
    return {name.substr(0, first), name.substr(first + 1, last - first - 1), name.substr(last + 1)};
}

bool takes(const Chain &chain, const std::string &card)
{
    return std::any_of(chain.taken.begin(), chain.taken.end(),
                       [&](const Link &link) { return link.retrieved.card == card; });
}

std::string rulesOf(const Chain &chain, const std::string &card)
{
    std::string text;
    for (const Blocked &blocked : chain.blocked) {
        if (blocked.card != card)
            continue;
        for (const std::string &rule : blocked.rules)
            text += rule + "; ";
    }
    return text;
}

/// By id: those that the shipped cards' figures and probes are from.
std::map<std::string, gate::Trial> shippedTrials()
{
    std::map<std::string, gate::Trial> trials;
    for (const fs::directory_entry &workload : fs::directory_iterator(source / "workloads")) {
        std::error_code none;
        for (const fs::directory_entry &folder : fs::directory_iterator(workload.path() / "lineages", none)) {
            const Result<lineage::Lineage> lineage = lineage::readLineage(folder.path());
            for (const gate::Trial &trial : lineage ? lineage->trials : std::vector<gate::Trial>())
                trials.emplace(trial.id, trial);
        }
    }
    return trials;
}

/// Whether the trial's candidate has the value: as a tunable, or as a constant of its source.
bool isValueOf(const gate::Trial &trial, const std::string &name, double value)
{
    const fs::path file =
        source / "workloads" / trial.workload / "lineages" / trial.environment.platform / trial.file;
    const Result<std::string> text = files::readFile(file, 1 << 20);
    return text && run::namedNumbers(trial, *text)[name].count(value) != 0;
}

CardRecord verifiedRecord(int format)
{
    CardRecord record;
    record.card.name = "a";
    record.card.format = format;
    record.carrier = "code";
    return record;
}

Verification success(const CardRecord &record, const std::string &target)
{
    Verification run{"t", target, "0123456789abcdef", 1, "correct", true, true};
    run.cardHash = contentHash(record);
    return run;
}

} // namespace

class TestChain : public QObject
{
    Q_OBJECT

private slots:
    void initTestCase()
    {
        std::vector<Error> problems;
        m_library = CardStore(source / "skills").readAll(&problems);
        for (const Error &problem : problems)
            qInfo("%s", problem.message.c_str());
        QVERIFY(problems.empty());
        QVERIFY(m_library.size() >= 28);
        std::vector<lineage::Lineage> lineages;
        for (const char *key : {"gemm/lineages/sm90", "softmax/lineages/sm90", "sgemm/lineages/pocl",
                                "softmax/lineages/pocl"}) {
            Result<lineage::Lineage> lineage = lineage::readLineage(source / "workloads" / key);
            QVERIFY(lineage);
            lineages.push_back(std::move(*lineage));
        }
        m_paths = pathsOf(lineages);
    }

    void cardsAreOfTheSecondFormat()
    {
        std::size_t risks = 0;
        std::size_t probed = 0;
        for (const CardRecord &record : m_library) {
            QCOMPARE(record.card.format, 2);
            for (const LintFinding &finding : lintCard(record.card, record.carrier, record.buildingBlock)) {
                const std::string text = record.card.name + ": " + finding.field + ": " + finding.message;
                QVERIFY2(finding.severity != LintFinding::Severity::Error, text.c_str());
            }
            for (const std::string &notice : record.notices)
                QVERIFY2(notice.empty(), (record.card.name + ": " + notice).c_str());
            for (const Claim &risk : record.card.risks)
                probed += standingOf(record.card, risk) == RiskStanding::Probed ? 1 : 0;
            risks += record.card.risks.size();
        }
        qInfo("%zu of %zu risks probed or shown by a rejected attempt, the others say believed", probed,
              risks);
        QVERIFY(risks >= 124);
    }

    void figuresAreThoseOfTheTrials()
    {
        const std::map<std::string, gate::Trial> trials = shippedTrials();
        const auto check = [&](const std::string &card, const Measured &measured) {
            const auto trial = trials.find(measured.trial);
            QVERIFY2(trial != trials.end(), (card + " " + measured.trial).c_str());
            const gate::Comparison *comparison = trial->second.comparison(measured.against);
            QVERIFY2(comparison, (card + " " + measured.trial).c_str());
            QCOMPARE(measured.factor, comparison->speedup.value);
            QCOMPARE(measured.low, comparison->speedup.low);
            QCOMPARE(measured.high, comparison->speedup.high);
        };
        for (const CardRecord &record : m_library) {
            for (const Claim &effect : record.card.effects) {
                if (effect.measured)
                    check(record.card.name, *effect.measured);
            }
            for (const Parameter &parameter : record.card.parameters) {
                for (const TriedValue &tried : parameter.tried) {
                    check(record.card.name, tried.measured);
                    QVERIFY2(isValueOf(trials.at(tried.measured.trial), parameter.name, tried.value),
                             (record.card.name + ": " + parameter.name).c_str());
                }
            }
        }
    }

    void probesAreWhatTheGateSaid()
    {
        const std::map<std::string, gate::Trial> trials = shippedTrials();
        std::size_t probes = 0;
        for (const CardRecord &record : m_library) {
            for (const Probe &probe : record.card.probes) {
                const std::string name = record.card.name + ": " + probe.risk;
                const auto trial = trials.find(probe.trial);
                QVERIFY2(trial != trials.end(), name.c_str());
                const gate::Comparison *comparison = trial->second.comparison("parent");
                const bool isCorrect = trial->second.verdict.status == gate::VerdictStatus::Correct;
                const std::string said = isCorrect && comparison
                                             ? gate::toString(comparison->change)
                                             : gate::toString(trial->second.verdict.status);
                QVERIFY2(probe.verdict == said, name.c_str());
                QVERIFY2(!probe.refutes || isCorrect, name.c_str());
                const auto stored = source / "workloads" / trial->second.workload / "lineages"
                                    / trial->second.environment.platform / trial->second.file;
                QVERIFY2(fs::exists(stored), name.c_str());
                ++probes;
            }
        }
        QVERIFY(probes > 0);
    }

    void theIndexIsShort()
    {
        std::string index;
        for (const CardRecord &record : m_library)
            index += policy::indexLine(record);
        qInfo("index: %zu bytes for %zu cards", index.size(), m_library.size());
        QVERIFY(index.size() <= 6 * 1024);
    }

    void chainsArriveWhole_data()
    {
        QTest::addColumn<QString>("root");
        QTest::addColumn<QString>("platform");
        QTest::addColumn<QStringList>("sound");
        QTest::addColumn<QStringList>("foreign");
        QTest::addColumn<QStringList>("blocked");
        const Result<std::string> text =
            files::readFile(source / "tests/data/retrieval/chains.toml", 1 << 20);
        QVERIFY(text);
        const Result<files::TomlDocument> document = files::TomlDocument::parse(*text, "chains.toml");
        QVERIFY(document);
        const auto list = [](const files::TomlTable &table, const char *key) {
            QStringList out;
            for (const std::string &one : table.strings(key))
                out << QString::fromStdString(one);
            return out;
        };
        for (const files::TomlTable &table : document->root().tables("chain")) {
            const QString root = QString::fromStdString(table.string("root"));
            const QString platform = QString::fromStdString(table.string("platform", ""));
            QTest::newRow(qPrintable(root + ' ' + platform))
                << root << platform << list(table, "sound") << list(table, "foreign")
                << list(table, "blocked");
        }
        QVERIFY(document->finish());
    }

    void chainsArriveWhole()
    {
        QFETCH(QString, root);
        QFETCH(QString, platform);
        QFETCH(QStringList, sound);
        QFETCH(QStringList, foreign);
        QFETCH(QStringList, blocked);
        const Root name = rootOf(root.toStdString());
        const fs::path folder = source / "workloads" / name.workload;
        const Result<workload::Workload> workload = workload::readWorkload(folder);
        QVERIFY(workload);
        const Result<lineage::Lineage> lineage = lineage::readLineage(folder / "lineages" / name.folder);
        QVERIFY(lineage);
        std::optional<Target> target = targetAt(*lineage, name.state, m_library);
        QVERIFY(target);
        describe(*target, *workload);
        if (!platform.isEmpty())
            target->platform = platform.toStdString();
        const RetrievalIndex index(m_library, m_paths, {tagsOf(*workload)});
        RetrievalOptions options;
        options.hypotheses = true;
        options.mostBlocked = 64;
        const Chain chain = retrieveChain(index, m_library, *target, options, 100);

        std::string text;
        for (const Link &link : chain.taken)
            text += std::to_string(link.round) + ' ' + link.retrieved.card + ", ";
        qInfo("%s", text.c_str());
        for (const QString &card : sound)
            QVERIFY2(takes(chain, card.toStdString()),
                     (card.toStdString() + " is missing: " + rulesOf(chain, card.toStdString())).c_str());
        for (const QString &card : foreign)
            QVERIFY2(!takes(chain, card.toStdString()), qPrintable(card + " is foreign"));
        for (const QString &entry : blocked) {
            const QStringList parts = entry.split(QStringLiteral(": "));
            const std::string rules = rulesOf(chain, parts[0].toStdString());
            QVERIFY2(rules.find(parts[1].toStdString()) != std::string::npos,
                     (parts[0].toStdString() + ": " + rules).c_str());
        }
    }

    /// What comes before a card stands before it.
    void orderIsApplicable()
    {
        Target target;
        target.workload = "gemm";
        target.platform = "sm90";
        target.language = "cuda";
        RetrievalOptions options;
        options.hypotheses = true;
        const Chain chain =
            retrieveChain(RetrievalIndex(m_library, m_paths), m_library, target, options, 100);
        QVERIFY(!chain.taken.empty());
        for (std::size_t i = 0; i < chain.taken.size(); ++i) {
            for (const std::string &before : chain.taken[i].after)
                QVERIFY(std::any_of(chain.taken.begin(), chain.taken.begin() + static_cast<std::ptrdiff_t>(i),
                                    [&](const Link &link) { return link.retrieved.card == before; }));
        }
        QCOMPARE(retrieveChain(RetrievalIndex(m_library), m_library, target, options, 3).taken.size(),
                 std::size_t{3});
    }

    void conditionsAndWordsBlock()
    {
        CardRecord record = verifiedRecord(2);
        record.card.category = "tiling";
        record.card.scope = {{"w"}, {"cuda"}, {"sm90"}, {}};
        record.card.preconditions = {{"p", {}, "K % 8 == 0"}};
        record.card.triggers = {{"t", {}, "dram_throughput > 50"}};
        record.card.anchorWords = {"expf"};
        record.card.capability.dtypes = {"bf16"};
        RetrievalOptions options;
        options.hypotheses = true;
        const RetrievalIndex index({record});
        Target target;
        target.workload = "w";
        target.platform = "sm90";
        target.language = "cuda";
        QCOMPARE(index.find(target, options).taken.size(), std::size_t{1}); // nothing is known to be missing
        const auto blocked = [&](const Target &of, const char *rule) {
            const Retrieval found = index.find(of, options);
            return found.taken.empty() && found.blocked.size() == 1
                   && found.blocked[0].rules.front().find(rule) != std::string::npos;
        };
        target.values = {{"K", 16}, {"dram_throughput", 60.5}};
        target.words = {"expf"};
        target.dtypes = {"bf16"};
        QCOMPARE(index.find(target, options).taken.size(), std::size_t{1});
        Target other = target;
        other.values["K"] = 12;
        QVERIFY(blocked(other, "is sound when K % 8 == 0"));
        other = target;
        other.values["dram_throughput"] = 12.5;
        QVERIFY(blocked(other, "pays when dram_throughput > 50"));
        other = target;
        other.words = {"sum"};
        QVERIFY(blocked(other, "acts on expf"));
        other = target;
        other.dtypes = {"f32"};
        QVERIFY(blocked(other, "needs an input of type bf16"));
        other = target;
        other.language = "opencl";
        QVERIFY(blocked(other, "is written in cuda"));
    }

    void twoPlacesAdmitTheTextAsItStands()
    {
        CardRecord record = verifiedRecord(2);
        record.verifications = {success(record, "a/sm90/K00")};
        QCOMPARE(record.life(), Life::Hypothesis);
        record.verifications.push_back(success(record, "a/sm90/K01")); // the same lineage: counts once
        QCOMPARE(record.life(), Life::Hypothesis);
        record.verifications.push_back(success(record, "b/sm90/K00"));
        QCOMPARE(record.life(), Life::Admitted);
        QCOMPARE(verifiedScope(record).cases.size(), std::size_t{2});

        CardRecord edited = record;
        edited.carrier += " changed";
        QCOMPARE(edited.life(), Life::Hypothesis);
        QVERIFY(admissionOf(edited).reason.find("another text") != std::string::npos
                || admissionOf(edited).reason.find("other texts") != std::string::npos);
        QVERIFY(verifiedScope(edited).cases.empty());
        edited = record;
        edited.card.revision = 7; // says nothing by itself
        QCOMPARE(edited.life(), Life::Admitted);
        edited.card.intent.text = "other";
        QCOMPARE(edited.life(), Life::Hypothesis);

        CardRecord first = verifiedRecord(1);
        first.verifications = {{"t", "a/sm90/K00", "0123456789abcdef", 1, "correct", true, true}};
        QCOMPARE(first.life(), Life::Admitted); // by the rule of its time
    }

    void wordsMeet()
    {
        const Vocabulary &words = Vocabulary::instance();
        using Kind = Vocabulary::Kind;
        QCOMPARE(words.canonical(Kind::Category, "Async_Pipeline"), std::string("software_pipelining"));
        QCOMPARE(words.canonical(Kind::Category, "of my own"), std::string("of my own"));
        QVERIFY(words.ability("sm90", "wgmma") == Vocabulary::Ability::Has);
        QVERIFY(words.ability("sm80", "sm_90a") == Vocabulary::Ability::Lacks);
        QVERIFY(words.ability("sm120", "tma") == Vocabulary::Ability::Has);
        QVERIFY(words.ability("pocl", "avx512") == Vocabulary::Ability::Unknown);
        QVERIFY(words.ability("pocl", "cpu") == Vocabulary::Ability::Has);
        QVERIFY(words.ability("sm90", "cpu") == Vocabulary::Ability::Lacks);
        QCOMPARE(words.familiesOf({"attention_varlen"}),
                 (std::vector<std::string>{"attention", "contraction"}));
        QCOMPARE(words.familiesOf({"conv2d_nhwc"}), (std::vector<std::string>{"contraction"}));
        QVERIFY(words.familiesOf({"unknown"}).empty());
    }

private:
    std::vector<CardRecord> m_library;
    std::vector<LineagePath> m_paths;
};

QTEST_GUILESS_MAIN(TestChain)
#include "tst_chain.moc"
