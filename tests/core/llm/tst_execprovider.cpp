// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/llm/providers/execprovider.h"
#include "tests/core/llm/scriptedprovider.h"
#include "tests/patience.h"

#include <QElapsedTimer>
#include <QTest>

#include <csignal>
#include <thread>

using namespace klineage;
using namespace klineage::llm;

class TestExecProvider : public QObject
{
    Q_OBJECT

private:
    static ExecOptions shell(const std::string &script)
    {
        ExecOptions options;
        options.command = {"/bin/sh", "-c", script};
        return options;
    }
    static tl::expected<Reply, ProviderFailure> ask(const ExecOptions &options,
                                                    const Request &request = question("q"))
    {
        return ExecProvider(options).ask(request, {});
    }

private slots:
    void answers_data()
    {
        QTest::addColumn<QString>("script");
        QTest::addColumn<QString>("text");
        QTest::addColumn<bool>("usageKnown");
        QTest::newRow("plain text") << "cat >/dev/null; echo hello"
                                    << "hello\n"
                                    << false;
        QTest::newRow("input unread") << "echo hello"
                                      << "hello\n"
                                      << false;
        QTest::newRow("code that begins with a brace") << "echo '{ int x; }'"
                                                       << "{ int x; }\n"
                                                       << false;
        QTest::newRow("JSON without text") << "echo '{\"a\":1}'"
                                           << "{\"a\":1}\n"
                                           << false;
        QTest::newRow("JSON") << "echo '{\"text\":\"hi\",\"model\":\"m\",\"stop\":\"max_tokens\"}'"
                              << "hi" << false;
        QTest::newRow("JSON with usage")
            << "echo '{\"text\":\"hi\",\"usage\":{\"input\":3,\"cache_read\":0,\"cache_write\":0,\"output\":2}}'"
            << "hi" << true;
        QTest::newRow("the prompt comes back") << "grep -o '\"text\":\"q\"'"
                                               << "\"text\":\"q\"\n"
                                               << false;
    }
    void answers()
    {
        QFETCH(QString, script);
        const auto reply = ask(shell(script.toStdString()));
        QVERIFY2(reply, reply ? "" : reply.error().error.message.c_str());
        QTEST(QString::fromStdString(reply->text), "text");
        QTEST(reply->usageKnown, "usageKnown");
    }

    void failures_data()
    {
        QTest::addColumn<QString>("script");
        QTest::addColumn<int>("code");
        QTest::addColumn<QString>("message");
        QTest::addColumn<QString>("detail");
        const int protocol = static_cast<int>(ErrorCode::Protocol);
        QTest::newRow("exit code") << "echo why >&2; exit 3" << protocol << "ended with exit code 3."
                                   << "why\n";
        QTest::newRow("signal") << "kill -SEGV $$" << protocol << "SIGSEGV"
                                << "";
        QTest::newRow("nothing") << "true" << protocol << "wrote nothing."
                                 << "";
        QTest::newRow("blank") << "echo" << protocol << "wrote nothing."
                               << "";
        QTest::newRow("flood") << "head -c 8000000 /dev/zero" << protocol << "wrote more than 6 MiB."
                               << "";
        QTest::newRow("wrong usage") << "echo '{\"text\":\"x\",\"usage\":{\"input\":-1}}'" << protocol
                                     << "'usage.input' is -1"
                                     << "";
        QTest::newRow("unknown key") << "echo '{\"text\":\"x\",\"usages\":1}'" << protocol
                                     << "did you mean 'usage'"
                                     << "";
        QTest::newRow("hangs") << "sleep 60" << static_cast<int>(ErrorCode::Timeout)
                               << "did not answer in time."
                               << "";
    }
    void failures()
    {
        QFETCH(QString, script);
        QFETCH(QString, message);
        ExecOptions options = shell(script.toStdString());
        options.timeoutSeconds = 2;
        if (script.startsWith("sleep"))
            options.timeoutSeconds = 0.1;
        options.paid = true;
        const auto reply = ask(options);
        QVERIFY(!reply);
        QTEST(static_cast<int>(reply.error().error.code), "code");
        QVERIFY2(reply.error().error.message.find(message.toStdString()) != std::string::npos,
                 reply.error().error.message.c_str());
        QFETCH(QString, detail);
        QVERIFY(QString::fromStdString(reply.error().error.detail).contains(detail));
        QVERIFY(reply.error().mayBeCharged);
    }

    void aProgramThatIsNotThereCostsNothing()
    {
        ExecOptions options;
        options.command = {QTemporaryDir().filePath("author").toStdString()};
        options.paid = true;
        QVERIFY(!ask(options).error().mayBeCharged);
        options.command.clear();
        QCOMPARE(ask(options).error().error.code, ErrorCode::InvalidInput);
    }

    void stopsAtOnceWithItsChildren()
    {
        std::stop_source stop;
        std::jthread stopper([&] {
            std::this_thread::sleep_for(std::chrono::milliseconds(100));
            stop.request_stop();
        });
        QElapsedTimer timer;
        timer.start();
        ExecProvider provider(shell("sleep 600 & sleep 600"));
        const auto reply = provider.ask(question("q"), stop.get_token());
        QCOMPARE(reply.error().error.code, ErrorCode::Cancelled);
        QVERIFY(timer.elapsed() < patienceMs);
    }

    void aLargePromptArrivesWhole()
    {
        Request request = question(std::string(3'000'000, 'x'));
        const auto reply = ask(shell("wc -c"), request);
        QVERIFY(reply);
        QVERIFY(std::stoi(reply->text) > 3'000'000);
    }

    void aClosedInputEndsNobody()
    {
        std::signal(SIGPIPE, SIG_DFL);
        Request request = question(std::string(3'000'000, 'x'));
        const auto reply = ask(shell("exec <&-; sleep 0.1; echo done"), request);
        QVERIFY(reply);
        QCOMPARE(reply->text, std::string("done\n"));
    }
};

QTEST_GUILESS_MAIN(TestExecProvider)
#include "tst_execprovider.moc"
