// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/skills/relations.h"

#include <QTest>

using namespace klineage::skills;
using Names = std::vector<std::string>;

namespace {

CardRecord card(const std::string &name, std::vector<Feature> required, std::vector<Feature> provided,
                std::vector<Feature> conflicting = {})
{
    CardRecord record;
    record.card.name = name;
    record.card.requirements = std::move(required);
    record.card.provides = std::move(provided);
    record.card.conflicts = std::move(conflicting);
    return record;
}

/// first → second → third, and what cannot stand beside the first.
std::vector<CardRecord> chain()
{
    return {card("first", {}, {{"k-loop", "tiles"}}),
            card("second", {{"K-Loop", "tiles"}}, {{"k-loop", "ring"}}),
            card("third", {{"k-loop", "ring"}}, {}), card("against", {}, {}, {{"k-loop", "tiles"}})};
}

} // namespace

class TestRelations : public QObject
{
    Q_OBJECT

private slots:
    void contractsNameOtherCards()
    {
        const auto library = chain();
        auto relations = relationsOf(library, library[1].card);
        QCOMPARE(relations.size(), std::size_t{2});
        QVERIFY(relations[0].kind == Relation::Kind::Requires);
        QCOMPARE(relations[0].cards, Names{"first"}); // case does not matter
        QVERIFY(relations[1].kind == Relation::Kind::Provides);
        QCOMPARE(relations[1].cards, Names{"third"});
        relations = relationsOf(library, library[0].card);
        QVERIFY(relations.back().kind == Relation::Kind::ConflictedBy);
        QCOMPARE(relations.back().cards, Names{"against"});
        relations = relationsOf(library, library[3].card);
        QCOMPARE(relations.size(), std::size_t{1});
        QCOMPARE(relations[0].cards, Names{"first"});
    }

    void surroundingsGoAsFarAsTheHops()
    {
        const auto library = chain();
        Surroundings around = surroundingsOf(library, "first", 1);
        QCOMPARE(around.nodes.size(), std::size_t{2});
        around = surroundingsOf(library, "first", 2);
        QCOMPARE(around.nodes.size(), std::size_t{3});
        QCOMPARE(around.nodes[2].card, std::string("third"));
        QCOMPARE(around.nodes[2].column, 2);
        QCOMPARE(around.edges.size(), std::size_t{2});
        around = surroundingsOf(library, "third", 2);
        QCOMPARE(around.nodes[2].column, -2);
        QCOMPARE(around.nodes[around.edges[0].from].card, std::string("second"));
        QCOMPARE(around.nodes[around.edges[0].to].card, std::string("third"));
        QVERIFY(surroundingsOf(library, "nobody", 2).nodes.empty());
    }

    void aCircleEnds()
    {
        const std::vector<CardRecord> library{card("a", {{"l", "y"}}, {{"l", "x"}}),
                                              card("b", {{"l", "x"}}, {{"l", "y"}})};
        const Surroundings around = surroundingsOf(library, "a", 2);
        QCOMPARE(around.nodes.size(), std::size_t{2});
        QCOMPARE(around.edges.size(), std::size_t{1});
    }

    void aRetiredCardIsLeftOut()
    {
        auto library = chain();
        library[0].card.retired = true;
        QVERIFY(relationsOf(library, library[1].card)[0].cards.empty());
    }
};

QTEST_GUILESS_MAIN(TestRelations)
#include "tst_relations.moc"
