// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/files/atomicfile.h"
#include "core/skills/card.h"
#include "core/skills/store.h"
#include "tests/paths.h"

#include <QTest>

using namespace klineage;
using namespace klineage::skills;

namespace {

const std::filesystem::path fixture =
    std::filesystem::path(klineage::test::sourcePath()) / "tests/data/workspace/skills/stage-rows";

std::string fixtureText(const char *name)
{
    return files::readFile(fixture / name, 1 << 20).value_or(std::string());
}

Card fixtureCard()
{
    Result<Card> card = parseCard(fixtureText("card.toml"), "card.toml");
    if (!card)
        qFatal("%s", card.error().message.c_str());
    return std::move(*card);
}

} // namespace

class TestCard : public QObject
{
    Q_OBJECT

private slots:
    void readsAllParts()
    {
        const Card card = fixtureCard();
        QCOMPARE(card.revision, 2);
        QCOMPARE(card.preconditions.size(), std::size_t{2});
        QCOMPARE(card.preconditions[1].evidence, std::vector<std::string>{"toy/pocl/R01a"});
        QCOMPARE(card.provides[0].name, std::string("staged_row"));
        QCOMPARE(card.scope.languages, std::vector<std::string>{"opencl"});
        QVERIFY(!card.retired);
    }

    void writingRoundTrips()
    {
        Card card = fixtureCard();
        card.retired = true;
        card.requirements = {{"k-loop", "a \"quoted\" name"}};
        card.risks.push_back({"Two\nlines, µ and \\.", {}});
        const Result<Card> again = parseCard(writeCard(card), "again.toml");
        QVERIFY2(again.has_value(), again ? "" : again.error().message.c_str());
        QVERIFY(*again == card);
        QCOMPARE(writeCard(*again), writeCard(card));
    }

    void refusals_data()
    {
        QTest::addColumn<QString>("what");
        QTest::addColumn<QString>("with");
        QTest::addColumn<QString>("message");
        QTest::newRow("unknown key") << "locus = \"row load\"\ncarrier"
                                     << "lokus = \"row load\"\ncarrier"
                                     << "locus";
        QTest::newRow("unknown table") << "[[effect]]"
                                       << "[[efect]]"
                                       << "did you mean 'effect'?";
        QTest::newRow("name") << "\"stage-rows\""
                              << "\"Stage Rows\""
                              << "f:1:8: 'Stage Rows' is no card name";
        QTest::newRow("revision") << "revision = 2"
                                  << "revision = 0"
                                  << "f:2:12: the revision is 0";
        QTest::newRow("carrier") << "carrier.cl"
                                 << "../../x.cl"
                                 << "'../../x.cl' is no carrier";
        QTest::newRow("type") << "cases = [\"toy\"]"
                              << "cases = \"toy\""
                              << "'cases' is a string; expected a list";
        QTest::newRow("no intent") << "[intent]"
                                   << "[[risk]]"
                                   << "the key 'intent' is missing";
    }

    void refusals()
    {
        QFETCH(QString, what);
        QFETCH(QString, with);
        QFETCH(QString, message);
        QString text = QString::fromStdString(fixtureText("card.toml"));
        QVERIFY(text.contains(what));
        text.replace(what, with);
        const Result<Card> card = parseCard(text.toStdString(), "f");
        QVERIFY(!card.has_value());
        QVERIFY2(card.error().message.find(message.toStdString()) != std::string::npos,
                 card.error().message.c_str());
    }

    void skillMarkdownIsTheGoldenFile()
    {
        const Result<CardRecord> record = CardStore(fixture.parent_path()).read("stage-rows");
        QVERIFY(record.has_value());
        QVERIFY2(record->notices.empty(), record->notices.empty() ? "" : record->notices[0].c_str());
        QCOMPARE(QString::fromStdString(writeSkillMarkdown(*record)),
                 QString::fromStdString(fixtureText("SKILL.md")));
    }

    void skillMarkdownKeepsTheStandardsLimits()
    {
        CardRecord record;
        record.card = fixtureCard();
        record.card.intent.text = std::string("\"quoted\": ") + std::string(3000, 'x');
        for (int i = 0; i < 600; ++i)
            record.card.preconditions.push_back({"µ", {}});
        record.carrier = "a\n`````\nb";
        const std::string text = writeSkillMarkdown(record);
        const std::size_t begin = text.find("description: \"") + 13;
        const std::string description = text.substr(begin, text.find('\n', begin) - begin);
        QVERIFY(description.size() <= 1024 + 2 + 4); // two quotes around it and two escaped inside
        QVERIFY(QString::fromUtf8(description.c_str()).contains(QChar(0x2026)));
        QVERIFY(!QString::fromUtf8(text.c_str()).contains(QChar::ReplacementCharacter));
        QVERIFY(text.find("\n``````opencl\n") != std::string::npos);
    }

    void lifeFollowsTheVerifications()
    {
        CardRecord record;
        QCOMPARE(record.life(), Life::Hypothesis);
        record.verifications.push_back({"", "t", "", 1, "correct", true, false});
        record.verifications.push_back({"", "t", "", 1, "correct", false, true});
        record.verifications.push_back({"", "t", "", 1, "wrong", true, true});
        QCOMPARE(record.life(), Life::Hypothesis);
        record.verifications.push_back({"", "t", "", 1, "correct", true, true});
        QCOMPARE(record.life(), Life::Admitted);
        record.card.retired = true;
        QCOMPARE(record.life(), Life::Retired);
    }

    void citations_data()
    {
        QTest::addColumn<QString>("citation");
        QTest::addColumn<bool>("wellFormed");
        QTest::newRow("transition") << "gemm/sm90/K03" << true;
        QTest::newRow("trial") << "trial:0123456789abcdef" << true;
        QTest::newRow("short trial") << "trial:0123" << false;
        QTest::newRow("two parts") << "gemm/K03" << false;
        QTest::newRow("empty part") << "gemm//K03" << false;
        QTest::newRow("four parts") << "a/b/c/d" << false;
        QTest::newRow("blank") << "a/b/c d" << false;
        QTest::newRow("trailing slash") << "a/b/" << false;
    }

    void citations()
    {
        QFETCH(QString, citation);
        QFETCH(bool, wellFormed);
        QCOMPARE(isCitation(citation.toStdString()), wellFormed);
    }

    void lintRules_data()
    {
        QTest::addColumn<QString>("field");
        QTest::addColumn<QString>("message");
        QTest::addColumn<bool>("isError");
        QTest::newRow("name") << "name"
                              << "is no card name" << true;
        QTest::newRow("category") << "category"
                                  << "is missing" << true;
        QTest::newRow("locus") << "locus"
                               << "is missing" << false;
        QTest::newRow("intent") << "intent"
                                << "is empty" << true;
        QTest::newRow("anchor") << "anchor"
                                << "cites no evidence" << false;
        QTest::newRow("precondition") << "precondition"
                                      << "has none" << true;
        QTest::newRow("effect citation") << "effect[0]"
                                         << "is no citation" << true;
        QTest::newRow("effect unlisted") << "effect[1]"
                                         << "own evidence does not list" << false;
        QTest::newRow("effect repeated") << "effect[2]"
                                         << "word for word" << false;
        QTest::newRow("risk") << "risk"
                              << "has none" << false;
        QTest::newRow("scope") << "scope.cases"
                               << "is empty" << false;
        QTest::newRow("language") << "scope.languages"
                                  << "'rust' is no language" << true;
        QTest::newRow("feature") << "provides"
                                 << "both a locus and a name" << true;
        QTest::newRow("contradiction") << "conflicts"
                                       << "required and in conflict" << true;
        QTest::newRow("provided again") << "provides"
                                        << "is required already" << false;
        QTest::newRow("evidence") << "evidence"
                                  << "names no transition" << true;
        QTest::newRow("carrier") << "carrier"
                                 << "missing or empty" << true;
        QTest::newRow("carrier language") << "carrier"
                                          << "none of the scope's languages" << false;
    }

    void lintRules()
    {
        QFETCH(QString, field);
        QFETCH(QString, message);
        QFETCH(bool, isError);
        Card bad = fixtureCard();
        bad.name = "Bad Name";
        bad.category.clear();
        bad.locus.clear();
        bad.intent.text = "  ";
        bad.anchor.evidence.clear();
        bad.preconditions.clear();
        bad.effects = {{"a", {"nonsense"}}, {"b", {"other/pocl/K01"}}, {"b", {}}};
        bad.risks.clear();
        bad.scope = {{}, {"rust"}, {"pocl"}, {}};
        bad.provides = {{"", "x"}, {"l", "n"}};
        bad.requirements = {{"l", "n"}};
        bad.conflicts = {{"l", "n"}};
        bad.evidence.clear();
        const std::vector<LintFinding> findings = lintCard(bad, " \n");
        const auto found = std::find_if(findings.begin(), findings.end(), [&](const LintFinding &finding) {
            return finding.field == field.toStdString()
                   && finding.message.find(message.toStdString()) != std::string::npos;
        });
        QVERIFY(found != findings.end());
        QCOMPARE(found->severity == LintFinding::Severity::Error, isError);
    }

    void aSoundCardHasNoFindings()
    {
        const std::vector<LintFinding> findings = lintCard(fixtureCard(), fixtureText("carrier.cl"));
        QVERIFY2(findings.empty(), findings.empty() ? "" : findings[0].message.c_str());
    }
};

QTEST_GUILESS_MAIN(TestCard)
#include "tst_card.moc"

#include <algorithm>
