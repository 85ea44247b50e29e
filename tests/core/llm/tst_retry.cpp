// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/llm/network/retry.h"
#include "core/llm/network/secrets.h"
#include "tests/patience.h"

#include <QElapsedTimer>
#include <QTest>

#include <thread>

using namespace klineage;
using namespace klineage::llm;

class TestRetry : public QObject
{
    Q_OBJECT

private slots:
    void delaysDoubleUpToTheLongest()
    {
        const RetryPolicy policy{8, 1, 10, 600};
        std::mt19937_64 random(1);
        for (int attempt = 1; attempt < 100; ++attempt) {
            const double whole = attempt < 5 ? std::pow(2.0, attempt - 1) : 10;
            const double delay = retryDelay(policy, attempt, 0, random);
            QVERIFY2(delay >= whole / 2 && delay <= whole, qPrintable(QString::number(delay)));
        }
        QVERIFY(retryDelay(policy, 1, 0, random) != retryDelay(policy, 1, 0, random)); // jitter
    }

    void honoursTheServerUpToTheLongest()
    {
        const RetryPolicy policy{8, 1, 10, 600};
        std::mt19937_64 random(1);
        QCOMPARE(retryDelay(policy, 1, 7.0, random), 7.0);
        QCOMPARE(retryDelay(policy, 1, 86400.0, random), 10.0);
        QVERIFY(retryDelay(policy, 1, 0.0, random) >= 0.5);
    }

    void sleepEndsAtOnceWhenStopped()
    {
        QVERIFY(sleepFor(0.01, {}));
        std::stop_source stop;
        std::jthread stopper([&] {
            std::this_thread::sleep_for(std::chrono::milliseconds(50));
            stop.request_stop();
        });
        QElapsedTimer timer;
        timer.start();
        QVERIFY(!sleepFor(600, stop.get_token()));
        QVERIFY(timer.elapsed() < patienceMs);
    }

    void scrubsKeys_data()
    {
        QTest::addColumn<QString>("text");
        QTest::addColumn<QString>("scrubbedText");
        QTest::newRow("key") << "bad key secret-1234!"
                             << "bad key [key]!";
        QTest::newRow("twice") << "secret-1234secret-1234"
                               << "[key][key]";
        QTest::newRow("looks like one") << "provided: sk-ant-api03-abcdefgh."
                                        << "provided: [key]";
        QTest::newRow("starred") << "provided: sk-proj-****abcd"
                                 << "provided: [key]";
        QTest::newRow("a word") << "a task-force, disk-drive, sk-1"
                                << "a task-force, disk-drive, sk-1";
        QTest::newRow("nothing") << "no key here"
                                 << "no key here";
    }
    void scrubsKeys()
    {
        QFETCH(QString, text);
        const Error error{ErrorCode::Unavailable, text.toStdString(), text.toStdString()};
        const Error clean = scrubbed(error, "secret-1234");
        QTEST(QString::fromStdString(clean.message), "scrubbedText");
        QTEST(QString::fromStdString(clean.detail), "scrubbedText");
    }

    void findsKeys()
    {
        qputenv("ANTHROPIC_API_KEY", "from-anthropic");
        qputenv("OPENAI_API_KEY", "from-openai");
        qunsetenv("KLINEAGE_LOCAL_API_KEY");
        QCOMPARE(*findKey("anthropic", false, {}), std::string("from-anthropic"));
        QCOMPARE(*findKey("openai", false, {}), std::string("from-openai"));
        QCOMPARE(*findKey("openai", true, {}), std::string()); // whoever listens there does not get the key
        const KeyCallback chain = [](std::string_view name) { return "chain-" + std::string(name); };
        QCOMPARE(*findKey("openai", false, chain), std::string("chain-openai"));
        QCOMPARE(*findKey("openai", false, [](std::string_view) { return std::string(); }),
                 std::string("from-openai"));
        const auto split =
            findKey("openai", false, [](std::string_view) { return std::string("a\r\nX: secret"); });
        QVERIFY(!split);
        QVERIFY((split.error().message + split.error().detail).find("secret") == std::string::npos);
    }
};

QTEST_GUILESS_MAIN(TestRetry)
#include "tst_retry.moc"
