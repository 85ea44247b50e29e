// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/lineage/lineage.h"

#include <QTest>

using namespace klineage;
using namespace klineage::lineage;

namespace {

const std::string head = R"(workload = "w"
platform = "p"
surface = "opencl"
title = "t"
)";
const std::string twoStates = head + R"(
[[state]]
id = "K00"
file = "K00.cl"
title = "naive"

[[state]]
id = "K01"
file = "K01.cl"
title = "tiles"
trial = "0123456789abcdef"
)";
const std::string step = R"(
[[transition]]
from = "K00"
to = "K01"
category = "tiling"
locus = "loop"
summary = "s"
)";
const std::string attempt = R"(
[[attempt]]
id = "R01a"
parent = "K00"
file = "R01a.cl"
title = "x"
reason = "slower"
)";

std::string replaced(std::string text, const std::string &what, const std::string &with)
{
    text.replace(text.find(what), what.size(), with);
    return text;
}

} // namespace

class TestLineageFile : public QObject
{
    Q_OBJECT

private slots:
    void readsAllParts()
    {
        const Result<Lineage> lineage = parseLineage(twoStates + step + attempt, "lineage.toml");
        QVERIFY2(lineage.has_value(), lineage ? "" : lineage.error().message.c_str());
        QCOMPARE(lineage->key(), std::string("w/p"));
        QCOMPARE(lineage->states.size(), std::size_t{2});
        QCOMPARE(lineage->states[1].trial, std::string("0123456789abcdef"));
        QCOMPARE(lineage->transitionTo("K01")->category, std::string("tiling"));
        QVERIFY(lineage->transitionTo("K00") == nullptr);
        QCOMPARE(lineage->attempts[0].parent, std::string("K00"));
        QCOMPARE(lineage->termination, std::string("unknown"));
    }

    void writingRoundTrips()
    {
        Result<Lineage> lineage = parseLineage(twoStates + step + attempt, "lineage.toml");
        QVERIFY(lineage.has_value());
        lineage->origin = "From \"there\",\nGPL.";
        lineage->reason = "µ";
        const std::string text = writeLineage(*lineage);
        const Result<Lineage> again = parseLineage(text, "again.toml");
        QVERIFY2(again.has_value(), again ? "" : again.error().message.c_str());
        QCOMPARE(writeLineage(*again), text);
        QCOMPARE(again->origin, lineage->origin);
        QCOMPARE(again->attempts[0].reason, std::string("slower"));
    }

    void aLineageOfARunNamesItsFolderAndWhatWasRederived()
    {
        const std::string text =
            replaced(twoStates, "title = \"t\"", "title = \"t\"\nname = \"walked\"\nrun = \"r-1\"") + step
            + "rederived = \"rederived/K01.cl\"\nrederived_trial = \"0123456789abcdef\"\n"
              "rederived_match = \"fedcba9876543210\"\n";
        const Result<Lineage> lineage = parseLineage(text, "f");
        QVERIFY2(lineage.has_value(), lineage ? "" : lineage.error().message.c_str());
        QCOMPARE(lineage->key(), std::string("w/p-walked"));
        QCOMPARE(lineage->run, std::string("r-1"));
        QCOMPARE(lineage->transitions[0].rederived, std::string("rederived/K01.cl"));
        QCOMPARE(lineage->transitions[0].rederivedMatch, std::string("fedcba9876543210"));
        const Result<Lineage> again = parseLineage(writeLineage(*lineage), "again");
        QVERIFY2(again.has_value(), again ? "" : again.error().message.c_str());
        QCOMPARE(writeLineage(*again), writeLineage(*lineage));
        QCOMPARE(again->key(), lineage->key());
        QCOMPARE(again->transitions[0].rederivedTrial, lineage->transitions[0].rederivedTrial);
    }

    void refusals_data()
    {
        QTest::addColumn<QString>("text");
        QTest::addColumn<QString>("message");
        const auto row = [](const char *name, const std::string &text, const std::string &message) {
            QTest::newRow(name) << QString::fromStdString(text) << QString::fromStdString(message);
        };
        row("unknown key", twoStates + step + replaced(attempt, "reason", "raeson"),
            "did you mean 'reason'?");
        row("duplicate id", replaced(twoStates, "id = \"K01\"", "id = \"K00\"") + step,
            "f:12:6: the id 'K00' is used twice");
        row("bad id", replaced(twoStates, "id = \"K01\"", "id = \"K 1\"") + step, "'K 1' is no id");
        row("path leads out", replaced(twoStates, "K01.cl", "../K01.cl") + step,
            "'../K01.cl' is no file of this folder");
        row("absolute path", replaced(twoStates, "K01.cl", "/K01.cl") + step,
            "'/K01.cl' is no file of this folder");
        row("bad trial id", replaced(twoStates, "0123456789abcdef", "latest") + step,
            "'latest' is no trial id");
        row("no states", head, "the key 'state' is missing");
        row("missing transition", twoStates, "f: there are 2 states and 0 transitions");
        row("too many transitions", twoStates + step + step, "there are more transitions than steps");
        row("unchained", twoStates + replaced(step, "to = \"K01\"", "to = \"K02\""), "expected 'K01'");
        row("attempt from nowhere",
            twoStates + step + replaced(attempt, "parent = \"K00\"", "parent = \"K07\""),
            "'K07' is no state of this lineage");
        row("surface", replaced(twoStates, "opencl", "opnecl") + step, "did you mean 'opencl'?");
        row("bad name", replaced(twoStates, "title = \"t\"", "title = \"t\"\nname = \"a/b\"") + step,
            "'a/b' is no name");
        row("re-derived elsewhere", twoStates + step + "rederived = \"../K01.cl\"\n",
            "'../K01.cl' is no file of this folder");
        row("trial of nothing re-derived", twoStates + step + "rederived_trial = \"0123456789abcdef\"\n",
            "expected 'rederived'");
        row("termination",
            replaced(twoStates + step, "title = \"t\"", "title = \"t\"\ntermination = \"done\""),
            "'termination' is 'done'; expected");
    }

    void refusals()
    {
        QFETCH(QString, text);
        QFETCH(QString, message);
        const Result<Lineage> lineage = parseLineage(text.toStdString(), "f");
        QVERIFY(!lineage.has_value());
        const QString found = QString::fromStdString(lineage.error().message);
        QVERIFY2(found.contains(message), qPrintable(found));
        QVERIFY2(found.startsWith("f:"), qPrintable(found));
    }
};

QTEST_GUILESS_MAIN(TestLineageFile)
#include "tst_lineagefile.moc"
