// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/files/atomicfile.h"
#include "core/llm/modelsettings.h"

#include <QDir>
#include <QTemporaryDir>
#include <QTest>

using namespace klineage;
using namespace klineage::llm;

class TestModelSettings : public QObject
{
    Q_OBJECT

private slots:
    void reads()
    {
        const auto own = parseModels("own_hosts = [\"gpu1.lab\", \"[fd00::1]\"]\n"
                                     "[[model]]\nname = \"qwen*\"\ntemperature = 0.6\n"
                                     "[[model]]\nname = \"qwen-coder*\"\neffort = \"high\"\n"
                                     "[[model]]\nname = \"qwen-coder-1\"\nextra_body = '{ \"top_k\": 20 }'\n",
                                     "models.toml");
        QVERIFY2(own, own ? "" : own.error().message.c_str());
        QCOMPARE(own->ownHosts.size(), std::size_t{2});
        QCOMPARE(own->find("qwen3")->temperature, std::optional(0.6));
        QCOMPARE(own->find("qwen-coder-2")->effort, std::string("high"));
        QVERIFY(!own->find("qwen-coder-1")->extraBody.empty());
        QVERIFY(!own->find("llama"));
        std::map<std::string, std::string> author{{"temperature", "1"}};
        addModelSettings(*own, "qwen3", author);
        QCOMPARE(author, (std::map<std::string, std::string>{{"temperature", "1"}}));
        addModelSettings(*own, "qwen-coder-1", author);
        Request request;
        QVERIFY(applyAuthorKeys(author, request));
        QCOMPARE(request.temperature, std::optional(1.0));
        QCOMPARE(request.extraBody, std::string(R"({"top_k":20})"));
    }

    void refuses_data()
    {
        QTest::addColumn<QString>("text");
        QTest::addColumn<QString>("expected");
        QTest::newRow("a URL") << "own_hosts = [\"http://gpu1.lab\"]"
                               << "is no host";
        QTest::newRow("capitals") << "own_hosts = [\"GPU1\"]"
                                  << "lower case";
        QTest::newRow("no name") << "[[model]]\neffort = \"low\""
                                 << "name";
        QTest::newRow("twice") << "[[model]]\nname = \"a\"\n[[model]]\nname = \"a\""
                               << "two entries for 'a'";
        QTest::newRow("star") << "[[model]]\nname = \"a*b\""
                              << "a '*' that is not its end";
        QTest::newRow("hot") << "[[model]]\nname = \"a\"\ntemperature = 3"
                             << "not between 0 and 2";
        QTest::newRow("effort") << "[[model]]\nname = \"a\"\neffort = \"a lot\""
                                << "the effort is no word";
        QTest::newRow("no object") << "[[model]]\nname = \"a\"\nextra_body = \"[1]\""
                                   << "no JSON object";
        QTest::newRow("deep") << "[[model]]\nname = \"a\"\nextra_body = '{\"a\":" + QString(300, '[') + "'"
                              << "no JSON object";
        QTest::newRow("ours") << "[[model]]\nname = \"a\"\nextra_body = '{\"n\":4}'"
                              << "has 'n'";
        QTest::newRow("unknown key") << "[[model]]\nname = \"a\"\nefort = \"low\""
                                     << "effort";
    }
    void refuses()
    {
        QFETCH(QString, text);
        QFETCH(QString, expected);
        const auto own = parseModels(text.toStdString(), "models.toml");
        QVERIFY(!own);
        const QString message = QString::fromStdString(own.error().message);
        QVERIFY2(message.startsWith("models.toml:") && message.contains(expected), qPrintable(message));
    }

    void keysOfARun()
    {
        Request request;
        QVERIFY(applyAuthorKeys({{"command", "true"}}, request));
        QVERIFY(!request.temperature && request.effort.empty() && request.extraBody.empty());
        for (const auto &[key, value] : {std::pair{"temperature", "warm"},
                                         {"temperature", "0.5x"},
                                         {"temperature", "-1"},
                                         {"effort", "Very"},
                                         {"extra_body", "{"}}) {
            const Status applied = applyAuthorKeys({{key, value}}, request);
            QVERIFY2(!applied && applied.error().code == ErrorCode::InvalidInput, value);
        }
    }

    void isAPersonsOwn()
    {
        QTemporaryDir folder;
        qputenv("XDG_CONFIG_HOME", folder.path().toUtf8());
        QVERIFY(loadModels() && loadModels()->models.empty());
        QVERIFY(QDir(folder.path()).mkpath("klineage"));
        QVERIFY(files::writeFileAtomic(ownModelsFile(), "[[model]]\nname = \"a\"\n"));
        QCOMPARE(loadModels()->models.size(), std::size_t{1});
        QVERIFY(files::writeFileAtomic(ownModelsFile(), "[[model]"));
        QVERIFY(!loadModels());
    }
};

QTEST_GUILESS_MAIN(TestModelSettings)
#include "tst_modelsettings.moc"
