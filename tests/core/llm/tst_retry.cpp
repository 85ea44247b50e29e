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
            const double delay = retryDelay(policy, attempt, {}, random);
            QVERIFY2(delay >= whole / 2 && delay <= whole, qPrintable(QString::number(delay)));
        }
        QVERIFY(retryDelay(policy, 1, {}, random) != retryDelay(policy, 1, {}, random)); // jitter
    }

    void honoursTheServerUpToTheLongest()
    {
        const RetryPolicy policy{8, 1, 10, 600};
        std::mt19937_64 random(1);
        QCOMPARE(retryDelay(policy, 1, 7.0, random), 7.0);
        QCOMPARE(retryDelay(policy, 1, 86400.0, random), 10.0);
        QVERIFY(retryDelay(policy, 1, 0.0, random) >= 0.5);
    }

    void readsRetryAfter_data()
    {
        QTest::addColumn<QString>("value");
        QTest::addColumn<double>("seconds"); // negative: none
        QTest::newRow("seconds") << "12" << 12.0;
        QTest::newRow("parts") << "0.25" << 0.25;
        QTest::newRow("blanks") << " 3 " << 3.0;
        QTest::newRow("negative") << "-5" << 0.0;
        QTest::newRow("date") << "Sun, 06 Nov 1994 08:50:37 GMT" << 60.0;
        QTest::newRow("past") << "Sun, 06 Nov 1994 08:00:00 GMT" << 0.0;
        QTest::newRow("another year") << "Mon, 06 Nov 1995 08:49:37 GMT" << 365.0 * 86400;
        QTest::newRow("empty") << "" << -1.0;
        QTest::newRow("word") << "soon" << -1.0;
        QTest::newRow("infinite") << "inf" << -1.0;
        QTest::newRow("not a number") << "nan" << -1.0;
        QTest::newRow("month") << "Sun, 06 Nox 1994 08:50:37 GMT" << -1.0;
        QTest::newRow("short") << "Sun, 06 Nov 1994 08:50" << -1.0;
        QTest::newRow("signs") << "Sun, -6 Nov 1994 08:50:37 GMT" << -1.0;
        QTest::newRow("hour") << "Sun, 06 Nov 1994 28:50:37 GMT" << -1.0;
    }
    void readsRetryAfter()
    {
        QFETCH(QString, value);
        constexpr std::int64_t now = 784111777; // Sun, 06 Nov 1994 08:49:37 GMT
        QTEST(parseRetryAfter(value.toStdString(), now).value_or(-1), "seconds");
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
