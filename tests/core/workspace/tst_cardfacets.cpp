// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/files/utctime.h"
#include "core/workspace/cardfacets.h"

#include <QTest>

using namespace klineage;
using Words = std::vector<std::string>;

namespace {

skills::CardRecord sample()
{
    skills::CardRecord record;
    record.card.name = "a-card";
    record.card.scope.cases = {"gemm"};
    record.card.scope.platforms = {"sm90"};
    record.card.capability.features = {"TMA", "warps"};
    record.card.capability.families = {"attention"};
    return record;
}

void review(skills::CardRecord &record, skills::ReviewVerdict verdict, const std::string &author,
            const std::string &time)
{
    skills::Review event;
    event.id = std::to_string(record.reviews.size());
    event.time = time;
    event.author = author;
    event.cardRevision = record.card.revision;
    event.verdict = verdict;
    record.reviews.push_back(event);
}

} // namespace

class TestCardFacets : public QObject
{
    Q_OBJECT

private slots:
    void namesComeBack()
    {
        for (const Facet facet : allFacets)
            QVERIFY(facetFromString(toString(facet)) == facet);
        QVERIFY(!facetFromString("lfe"));
    }

    void aCardHasItsWords()
    {
        skills::CardRecord record = sample();
        const Workspace workspace;
        CardFacets facets = facetsOf(workspace, record);
        QCOMPARE(facets.of(Facet::Life), Words{"hypothesis"});
        QCOMPARE(facets.of(Facet::Lint), Words{"error"}); // it says nothing
        QCOMPARE(facets.of(Facet::Verdict), Words{"none"});
        QCOMPARE(facets.of(Facet::Needs), (Words{"tma", "warps"}));
        QCOMPARE(facets.of(Facet::Family), Words{"attention"});
        QVERIFY(facets.of(Facet::By).empty() && facets.newest.empty());

        record.card.imported = skills::Imported{};
        record.verifications.push_back(
            {"2026-01-03T00:00:00Z", "softmax/pocl/K02", "0123456789abcdef", 1, "correct", true, true});
        review(record, skills::ReviewVerdict::Reject, "Ada Lovelace", "2026-01-02T00:00:00Z");
        facets = facetsOf(workspace, record);
        QCOMPARE(facets.of(Facet::Life), (Words{"admitted", "imported", "rejected"}));
        QCOMPARE(facets.of(Facet::Verdict), Words{"rejected"});
        QCOMPARE(facets.of(Facet::Platform), (Words{"sm90", "pocl"}));
        QCOMPARE(facets.of(Facet::By), Words{"ada-lovelace"});
        QCOMPARE(facets.newest, std::string("2026-01-03T00:00:00Z"));
    }

    void ageIsSeenFromNow()
    {
        const auto now = std::chrono::system_clock::now();
        const auto ago = [&](int hours) { return files::formatUtc(now - std::chrono::hours(hours)); };
        QCOMPARE(ageWord(ago(23), now), std::string("today"));
        QCOMPARE(ageWord(ago(25), now), std::string("week"));
        QCOMPARE(ageWord(ago(24 * 8), now), std::string("month"));
        QCOMPARE(ageWord(ago(24 * 40), now), std::string("older"));
        QCOMPARE(ageWord({}, now), std::string("undated"));
    }

    void aQueryIsWordsAndFacets()
    {
        const CardQuery query =
            parseCardQuery("  row Life:hypo,admitted  LINT:errors by:Ada lfe:x registers age:");
        QCOMPARE(query.text, std::string("row lfe:x registers"));
        QCOMPARE(query.unknown, Words{"lfe:x"});
        QCOMPARE(query.of(Facet::Life), (Words{"hypo", "admitted"}));
        QVERIFY(query.of(Facet::Age).empty());
        QVERIFY(query.hasFacets());
        QVERIFY(!parseCardQuery("row life:").hasFacets());
    }

    void facetsAreAndedTheirWordsOred_data()
    {
        QTest::addColumn<QByteArray>("text");
        QTest::addColumn<bool>("accepted");
        QTest::newRow("nothing wanted") << QByteArray() << true;
        QTest::newRow("a beginning") << QByteArray("life:hypo") << true;
        QTest::newRow("plural") << QByteArray("lint:errors") << true;
        QTest::newRow("one of two") << QByteArray("life:admitted,hypo") << true;
        QTest::newRow("said twice") << QByteArray("life:admitted life:hypo") << true;
        QTest::newRow("both facets") << QByteArray("life:hypo platform:sm90 needs:tma family:att") << true;
        QTest::newRow("one facet does not fit") << QByteArray("life:hypo platform:pocl") << false;
        QTest::newRow("more than the word") << QByteArray("platform:sm90a") << false;
        QTest::newRow("no word of its own") << QByteArray("by:lift") << false;
    }

    void facetsAreAndedTheirWordsOred()
    {
        QFETCH(QByteArray, text);
        QFETCH(bool, accepted);
        QCOMPARE(parseCardQuery(text.toStdString()).accepts(facetsOf({}, sample())), accepted);
    }

    void aWordIsPutInAndTakenOut()
    {
        std::string text = toggled("row", Facet::Life, "hypothesis");
        QCOMPARE(text, std::string("row life:hypothesis"));
        text = toggled(text, Facet::Life, "admitted");
        QCOMPARE(text, std::string("row life:hypothesis,admitted"));
        text = toggled(text, Facet::Lint, "error");
        QCOMPARE(text, std::string("row life:hypothesis,admitted lint:error"));
        text = toggled(text, Facet::Life, "hypothesis");
        QCOMPARE(text, std::string("row lint:error life:admitted"));
        text = toggled(text, Facet::Life, "admitted");
        QCOMPARE(toggled(text, Facet::Lint, "error"), std::string("row"));
    }
};

QTEST_GUILESS_MAIN(TestCardFacets)
#include "tst_cardfacets.moc"
