// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/files/atomicfile.h"
#include "core/llm/prices.h"
#include "tests/core/llm/scriptedprovider.h"
#include "tests/paths.h"

#include <QTemporaryDir>
#include <QTest>

using namespace klineage;
using namespace klineage::llm;

namespace {

const std::string head = "date = \"2026-11-21\"\nsource = \"made up\"\n";

std::string entry(const std::string &name, const std::string &rest = "input = 1\noutput = 2\n")
{
    return "[[model]]\nname = \"" + name + "\"\n" + rest;
}

} // namespace

class TestPrices : public QObject
{
    Q_OBJECT

private slots:
    void shippedTableIsBuiltIn()
    {
        qputenv("XDG_CONFIG_HOME", "/proc/nonexistent");
        const auto table = loadPrices({});
        QVERIFY2(table, table ? "" : table.error().message.c_str());
        QCOMPARE(table->date, std::string("2026-11-21"));
        QVERIFY(table->prices.size() >= 20);
        const auto file = files::readFile(klineage::test::sourcePath("/resources/prices.toml"), 1 << 20);
        QCOMPARE(parsePrices(*file, "prices.toml")->prices, table->prices);
        for (const Price &price : table->prices) { // reading the cache is cheaper, output dearer than input
            QVERIFY2(price.input > 0 && price.output > price.input, price.model.c_str());
            QVERIFY2(price.cacheRead < price.input && price.cacheWrite >= price.input, price.model.c_str());
        }
    }

    void ownTablesComeFirst()
    {
        QTemporaryDir folder;
        const std::filesystem::path root = folder.path().toStdString();
        std::filesystem::create_directories(root / "config/klineage");
        qputenv("XDG_CONFIG_HOME", QByteArray::fromStdString((root / "config").string()));
        QVERIFY(files::writeFileAtomic(root / "config/klineage/prices.toml", head + entry("of-user")));
        QVERIFY(loadPrices({})->find("of-user"));
        QVERIFY(files::writeFileAtomic(root / "prices.toml", head + entry("of-workspace")));
        const auto table = loadPrices(root);
        QVERIFY(table->find("of-workspace") && !table->find("of-user"));
        QCOMPARE(table->file, (root / "prices.toml").string());
        QVERIFY(files::writeFileAtomic(root / "prices.toml", "date = 1"));
        QVERIFY(!loadPrices(root));
    }

    void longestBeginningWins_data()
    {
        QTest::addColumn<QString>("model");
        QTest::addColumn<QString>("found");
        QTest::newRow("exact") << "gpt-5"
                               << "gpt-5";
        QTest::newRow("beginning") << "gpt-5-2025-08-07"
                                   << "gpt-5-*";
        QTest::newRow("longer beginning") << "gpt-5-mini-2025"
                                          << "gpt-5-mini*";
        QTest::newRow("the beginning itself") << "gpt-5-mini"
                                              << "gpt-5-mini*";
        QTest::newRow("none") << "gpt-4"
                              << "";
        QTest::newRow("case") << "GPT-5"
                              << "";
        QTest::newRow("empty") << ""
                               << "";
    }
    void longestBeginningWins()
    {
        QFETCH(QString, model);
        const auto table =
            parsePrices(head + entry("gpt-5-*") + entry("gpt-5-mini*") + entry("gpt-5"), "prices.toml");
        const Price *price = table->find(model.toStdString());
        QTEST(price ? QString::fromStdString(price->model) : QString(), "found");
    }

    void refusesWhatIsNoTable_data()
    {
        QTest::addColumn<QString>("text");
        QTest::addColumn<QString>("message");
        const auto text = [](const std::string &value) { return QString::fromStdString(value); };
        QTest::newRow("empty") << ""
                               << "date";
        QTest::newRow("no source") << "date = \"2026-11-21\""
                                   << "source";
        QTest::newRow("date") << "date = \"21.11.2026\"\nsource = \"\""
                              << "expected a day such as";
        QTest::newRow("negative") << text(head + entry("m", "input = -1\noutput = 2\n"))
                                  << "'input' is not between";
        QTest::newRow("no output") << text(head + entry("m", "input = 1\n")) << "output";
        QTest::newRow("twice") << text(head + entry("m") + entry("m")) << "there are two prices for 'm'.";
        QTest::newRow("star") << text(head + entry("m*n")) << "that is not its end.";
        QTest::newRow("unknown key") << text(head + entry("m") + "outptu = 3") << "did you mean 'output'?";
        QTest::newRow("infinite") << text(head + entry("m", "input = inf\noutput = 2\n")) << "input";
    }
    void refusesWhatIsNoTable()
    {
        QFETCH(QString, text);
        QFETCH(QString, message);
        const auto table = parsePrices(text.toStdString(), "prices.toml");
        QVERIFY(!table);
        QVERIFY(table.error().message.starts_with("prices.toml:"));
        QVERIFY2(table.error().message.find(message.toStdString()) != std::string::npos,
                 table.error().message.c_str());
    }

    void writesWhatItReads()
    {
        const auto table = parsePrices(head + entry("m", "input = 1\ncache_read = 0.1\noutput = 2.5\n"), "p");
        const auto again = parsePrices(writePrices(*table), "p");
        QVERIFY(again);
        QCOMPARE(again->prices, table->prices);
        QCOMPARE(again->prices[0].cacheWrite, 1.0); // the input price when it is left out
        QCOMPARE(writePrices(*again), writePrices(*table));
        const auto shipped = parsePrices(
            *files::readFile(klineage::test::sourcePath("/resources/prices.toml"), 1 << 20), "prices.toml");
        QCOMPARE(parsePrices(writePrices(*shipped), "p")->prices, shipped->prices);
    }

    void longPromptsHaveAPriceOfTheirOwn()
    {
        const auto table = parsePrices(
            head
                + entry("m",
                        "input = 1\noutput = 2\nlong_prompt = { above = 1000, input = 5, output = 10 }\n"),
            "p");
        QVERIFY(table);
        const Price &price = table->prices[0];
        QCOMPARE(dollars(price, {400, 300, 300, 10}), 1020e-6);
        QCOMPARE(dollars(price, {401, 300, 300, 10}), 5105e-6); // all tokens, not those above only
        Request request = question(std::string(2000, 'x'));
        QVERIFY(mostDollars(price, request) >= dollars(price, {mostInputTokens(request), 0, 0, 1000}));
        request = question("x");
        QCOMPARE(mostDollars(price, request), static_cast<double>(mostInputTokens(request)) * 1e-6 + 2000e-6);
        QVERIFY(!parsePrices(head + entry("m", "input = 1\noutput = 2\nlong_prompt = { above = 0 }\n"), "p"));
    }

    void pricesUsage()
    {
        const Price price{"m", 3, 0.3, 3.75, 15};
        QCOMPARE(dollars(price, {1'000'000, 0, 0, 0}), 3.0);
        QCOMPARE(dollars(price, {0, 1'000'000, 0, 0}), 0.3);
        QCOMPARE(dollars(price, {0, 0, 1'000'000, 0}), 3.75);
        QCOMPARE(dollars(price, {1000, 1000, 1000, 1000}), 0.003 + 0.0003 + 0.00375 + 0.015);
    }

    void theMostIsABound()
    {
        const Price price{"m", 3, 0.3, 3.75, 15};
        const Request request = question(std::string(10'000, 'x'));
        const double most = mostDollars(price, request);
        const std::int64_t input = mostInputTokens(request);
        QVERIFY(input > 10'000 + 500);
        for (const Usage &usage :
             {Usage{input, 0, 0, 1000}, Usage{0, 0, input, 1000}, Usage{0, input, 0, 1000}})
            QVERIFY(dollars(price, usage) <= most);
        QVERIFY(likelyDollars(price, request, 500) < most);
        QVERIFY(likelyDollars(price, request, 500) > dollars(price, {2000, 0, 0, 500}));
        QCOMPARE(likelyDollars(price, request, 5000), likelyDollars(price, request, 1000));
    }
};

QTEST_GUILESS_MAIN(TestPrices)
#include "tst_prices.moc"
