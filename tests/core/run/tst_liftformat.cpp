// SPDX-License-Identifier: GPL-3.0-or-later
// What a lift writes since format 2 of the card: capability, triggers, parameters, figures of trials, a building block.
#include "core/skills/admission.h"
#include "tests/core/run/liftfixture.h"

#include <QTest>

#include <cmath>

using namespace klineage;
using namespace klineage::run;
using namespace klineage::tests;

namespace {

std::string firstTrial(const std::string &prompt)
{
    const std::size_t begin = prompt.find("\ntrial:") + 7;
    return prompt.substr(begin, prompt.find(':', begin) - begin);
}

/// A whole card of format 2; the trial that its effect and its parameter name, a feature that it needs, and a value that it says was tried.
std::string reply2(const llm::Request &request, const std::string &trial, const std::string &feature = "cpu",
                   const std::string &tried = "1")
{
    const std::string evidence = "\nevidence = [\"" + firstCitation(request.messages[0].text) + "\"]\n";
    return block(
        "name = \"add-a\"\nlocus = \"inner loop\"\ncarrier = '''\n+ int opt = 1;\n'''\n"
        "building_block = '''\nint opt(int x) { return x + 1; }\n'''\n"
        "[intent]\ntext = \"Add the optimization to the loop.\""
            + evidence + "[anchor]\ntext = \"Any loop.\"\nwords = [\"barrier\"]" + evidence
            + "[capability]\nfeatures = [\"" + feature + "\"]\ndtypes = [\"f32\"]\n"
            + "[[precondition]]\ntext = \"Rows are whole.\"\nwhen = \"row_elements % 4 == 0\"" + evidence
            + "[[trigger]]\ntext = \"There is much to do.\"\nwhen = \"flops > 1000\"" + evidence
            + "[[effect]]\ntext = \"It brings 2.0×.\"\ntrial = \"" + trial + "\"" + evidence
            + "[[parameter]]\nname = \"opt_a\"\ntext = \"How much of it.\"\nvalues = [1, 2]\ndefault = 1\n"
            + "[[parameter.tried]]\nvalue = " + tried + "\ntrial = \"" + trial + "\"\n"
            + "[[risk]]\nid = \"no-loop\"\ntext = \"Where there is none, nothing comes of it.\"" + evidence,
        "toml");
}

} // namespace

class TestLiftFormat : public QObject
{
    Q_OBJECT

private slots:
    void figuresAreThoseOfTheTrialThatIsNamed()
    {
        LiftWorld world;
        world.settings.options["card_format"] = "2";
        world.addLineage("toy", {{"opt_a", "inner loop"}});
        std::string asked;
        BrainProvider author([&](const llm::Request &request) {
            asked = request.messages[0].text;
            return reply2(request, firstTrial(asked));
        });
        QCOMPARE(codeOf(world.perform(lift, author)), std::string("complete"));
        QCOMPARE(world.story(), std::string("lift:stored"));
        for (const char *shown :
             {"# The stronger kernel of the first transition", "opt_a", "'avx512'", "'selection'"})
            QVERIFY2(asked.find(shown) != std::string::npos, shown);

        const std::vector<skills::CardRecord> cards = world.cards();
        QCOMPARE(cards.size(), std::size_t{1});
        const skills::Card &card = cards[0].card;
        QCOMPARE(card.format, 2);
        QCOMPARE(card.buildingBlockFile, std::string("building_block.cl"));
        QCOMPARE(cards[0].buildingBlock, std::string("int opt(int x) { return x + 1; }\n"));
        QVERIFY((card.capability.features == std::vector<std::string>{"cpu"}));
        QVERIFY((card.anchorWords == std::vector<std::string>{"barrier"}));
        QCOMPARE(card.preconditions[0].when, std::string("row_elements % 4 == 0"));
        QCOMPARE(card.triggers.size(), std::size_t{1});
        QCOMPARE(card.risks[0].id, std::string("no-loop"));
        QVERIFY(card.effects[0].measured.has_value());
        const skills::Measured &measured = *card.effects[0].measured;
        QCOMPARE(measured.trial, firstTrial(asked));
        QCOMPARE(measured.against, std::string("parent"));
        QVERIFY(std::abs(measured.factor - 2) < 0.01 && measured.low <= measured.factor);
        QVERIFY(card.parameters[0].tried[0].measured == measured);
    }

    void whatCannotBeJudgedIsSentBack_data()
    {
        QTest::addColumn<QString>("trial");
        QTest::addColumn<QString>("feature");
        QTest::addColumn<QString>("tried");
        QTest::newRow("a trial that was not shown") << "0123456789abcdef"
                                                    << "cpu"
                                                    << "1";
        QTest::newRow("a feature without a name in the vocabulary") << QString() << "quantum"
                                                                    << "1";
        QTest::newRow("a value that the trial's kernel has not") << QString() << "cpu"
                                                                 << "2";
    }

    void whatCannotBeJudgedIsSentBack()
    {
        QFETCH(QString, trial);
        QFETCH(QString, feature);
        QFETCH(QString, tried);
        LiftWorld world;
        world.settings.options["card_format"] = "2";
        world.addLineage("toy", {{"opt_a", "inner loop"}});
        BrainProvider author([&](const llm::Request &request) {
            const std::string named =
                trial.isEmpty() ? firstTrial(request.messages[0].text) : trial.toStdString();
            return reply2(request, named, feature.toStdString(), tried.toStdString());
        });
        QCOMPARE(codeOf(world.perform(lift, author)), std::string("complete"));
        QCOMPARE(world.story(), std::string("lift:failed"));
        QVERIFY(world.cards().empty());
    }

    /// Values are kept as doubles: what they do not hold would come back as another number.
    void valuesAreThoseThatADoubleHolds()
    {
        LiftWorld world;
        world.settings.options["card_format"] = "2";
        world.addLineage("toy", {{"opt_a", "inner loop"}});
        BrainProvider author([&](const llm::Request &request) {
            return reply2(request, firstTrial(request.messages[0].text));
        });
        QCOMPARE(codeOf(world.perform(lift, author)), std::string("complete"));
        std::string text = skills::writeCard(world.cards().front().card);
        text.replace(text.find("values = [1, 2]"), 15, "values = [1, 9223372036854775807]");
        const Result<skills::Card> card = skills::parseCard(text, "card.toml");
        QVERIFY(!card);
        QVERIFY2(card.error().message.find("out of range") != std::string::npos,
                 card.error().message.c_str());
    }

    void aMergeAddsWhatOnlyFormat2Has()
    {
        skills::CardRecord kept;
        kept.card.format = 2;
        kept.card.parameters = {{"TILE", "Side.", {8, 16}, 16, {}}};
        skills::Card added = kept.card;
        const skills::Measured measured{"0123456789abcdef", "parent", 2, 1.9, 2.1};
        added.parameters = {{"TILE", "Side.", {16, 32}, 32, {{32, measured}}},
                            {"STAGES", "Slabs.", {2}, 2, {}}};
        added.triggers = {{"Much to do.", {"toy/pocl/K01"}, "flops > 1000", {}, {}}};
        added.effects = {{"It brings 2.0×.", {"toy/pocl/K01"}, {}, measured, {}}};
        const skills::Card card = merged(kept, added);
        QCOMPARE(card.parameters.size(), std::size_t{2});
        QVERIFY((card.parameters[0].values == std::vector<double>{8, 16, 32}));
        QCOMPARE(card.parameters[0].preset, 16.0);
        QCOMPARE(card.parameters[0].tried.size(), std::size_t{1});
        QCOMPARE(card.triggers.size(), std::size_t{1});
        QVERIFY(card.effects[0].measured.has_value());

        // An admitted card says what it said, and has the new evidence.
        kept.card.effects = {{"It brings 2.0×.", {}, {}, measured, {}}};
        const std::string hash = skills::contentHash(kept);
        for (const char *target : {"one/pocl/K00", "other/pocl/K00"}) {
            skills::Verification line{"t", target, "0123456789abcdef", 1, "correct", true, true};
            line.cardHash = hash;
            kept.verifications.push_back(line);
        }
        QCOMPARE(kept.life(), skills::Life::Admitted);
        skills::CardRecord after = kept;
        after.card = merged(kept, added);
        QCOMPARE(after.life(), skills::Life::Admitted);
        QVERIFY((after.card.effects[0].evidence == std::vector<std::string>{"toy/pocl/K01"}));
        QVERIFY(after.card.triggers.empty());
        QVERIFY((after.card.parameters[0].values == std::vector<double>{8, 16}));
        after.card.effects[0].text = "It brings 3.0×.";
        QCOMPARE(after.life(), skills::Life::Hypothesis);
        kept.verifications.clear();

        kept.card.format = 1;
        QVERIFY(!merged(kept, added).effects[0].measured.has_value());
    }
};

QTEST_GUILESS_MAIN(TestLiftFormat)
#include "tst_liftformat.moc"
