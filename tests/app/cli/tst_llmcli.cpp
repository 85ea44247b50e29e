// SPDX-License-Identifier: GPL-3.0-or-later
// `llm ask` and `llm prices`, from outside.
#include "core/llm/prices.h"
#include "tests/core/llm/loopbackserver.h"
#include "tests/paths.h"
#include "tests/patience.h"

#include <QDir>
#include <QFile>
#include <QJsonArray>
#include <QJsonDocument>
#include <QJsonObject>
#include <QProcess>
#include <QTemporaryDir>
#include <QTest>

using namespace klineage;

namespace {

struct Outcome {
    int status = -1;
    QByteArray out;
    QByteArray err;
    QJsonObject json;
};

Outcome runCli(const QStringList &arguments, const QByteArray &input = {},
               const QStringList &environment = {})
{
    QProcess process;
    process.setWorkingDirectory("/");
    QProcessEnvironment variables = QProcessEnvironment::systemEnvironment();
    for (const char *name : {"ANTHROPIC_API_KEY", "OPENAI_API_KEY", "KLINEAGE_LOCAL_API_KEY"})
        variables.remove(name);
    variables.insert("XDG_CONFIG_HOME", "/proc/nonexistent");
    for (const QString &entry : environment)
        variables.insert(entry.section('=', 0, 0), entry.section('=', 1));
    process.setProcessEnvironment(variables);
    process.start(QString::fromStdString(klineage::test::programPath("/klineage-cli")), arguments);
    process.write(input);
    process.closeWriteChannel();
    if (!process.waitForFinished(4 * patienceMs))
        qFatal("klineage-cli did not end");
    Outcome outcome;
    outcome.status = process.exitStatus() == QProcess::NormalExit ? process.exitCode() : -1;
    outcome.out = process.readAllStandardOutput();
    outcome.err = process.readAllStandardError();
    outcome.json = QJsonDocument::fromJson(outcome.out).object();
    return outcome;
}

} // namespace

class TestLlmCli : public QObject
{
    Q_OBJECT

private slots:
    void asksACommandAndReplaysIt()
    {
        QTemporaryDir folder;
        const QStringList exec{"llm",      "ask",        "--provider",
                               "exec",     "--command",  "tr a-z A-Z | grep -o '\"TEXT\":\"[^\"]*\"'",
                               "--record", folder.path()};
        const Outcome asked = runCli(exec, "why");
        QCOMPARE(asked.status, 0);
        QCOMPARE(asked.out, QByteArray("\"TEXT\":\"WHY\"\n"));
        QVERIFY(asked.err.contains("$0.000000"));
        const QStringList replay{"llm",    "ask",          "--provider",
                                 "replay", "--transcript", folder.filePath("transcript.jsonl")};
        QCOMPARE(runCli(replay, "why").out, asked.out);
        const Outcome other = runCli(replay, "why not");
        QCOMPARE(other.status, 3);
        QVERIFY(other.err.contains("answered another prompt: message 1 differs at byte 4"));
    }

    void asksAServerWithinTheCap()
    {
        const llm::Usage usage{100, 0, 0, 50};
        int served = 0;
        std::string authorization;
        LoopbackServer server([&](const SeenRequest &request) {
            ++served;
            authorization = request.headers.count("authorization") ? request.headers.at("authorization") : "";
            ServerAnswer answer;
            answer.body = openAiStream("hello", usage);
            return answer;
        });
        const QStringList ask{"llm",     "ask",   "--provider", "openai",
                              "--model", "gpt-5", "--base-url", QString::fromStdString(server.url()) + "/v1",
                              "--paid",  "yes",   "--json"};
        const QStringList keys{"OPENAI_API_KEY=real-secret-key", "KLINEAGE_LOCAL_API_KEY=local-secret-key"};
        const Outcome paid = runCli(ask, "why", keys);
        QVERIFY2(paid.status == 0, paid.err);
        QCOMPARE(paid.json["text"].toString(), QString("hello"));
        QCOMPARE(paid.json["dollars"].toDouble(), 100 * 1.25e-6 + 50 * 10e-6);
        QCOMPARE(authorization, std::string("Bearer local-secret-key"));
        QVERIFY(!(paid.out + paid.err).contains("secret-key"));
        const Outcome poor = runCli(QStringList(ask) << "--cap"
                                                     << "0.001",
                                    "why", keys);
        QCOMPARE(poor.status, 3);
        QVERIFY(
            poor.json["error"].toObject()["message"].toString().startsWith("The budget of $0.001000 has"));
        QCOMPARE(served, 1);
    }

    void streams()
    {
        std::int64_t written = 4096;
        LoopbackServer server([&](const SeenRequest &request) {
            ServerAnswer answer;
            answer.body = openAiStream("hello", {100, 0, 0, written}, "length");
            answer.body.replace(answer.body.find("hel"), 3,
                                request.body.value("top_k", 0) == 20 ? "HEL" : "hel");
            answer.pieceBytes = 7;
            return answer;
        });
        const QStringList ask{
            "llm",     "ask",     "--provider", "openai",
            "--model", "local-1", "--base-url", QString::fromStdString(server.url()) + "/v1"};
        const Outcome whole = runCli(ask, "why");
        QVERIFY2(whole.status == 0, whole.err);
        QCOMPARE(whole.out, QByteArray("hello\n"));
        QVERIFY(whole.err.contains("cut off at 4096 tokens; allow more with --max-tokens"));
        written = 5;
        const Outcome full = runCli(ask, "why");
        QVERIFY2(full.err.contains("cut off after 5 tokens, before the limit of 4096"), full.err);
        QCOMPARE(runCli(ask + QStringList{"--stream"}, "why").out, whole.out);
        QTemporaryDir folder;
        QVERIFY(QDir(folder.path()).mkpath("klineage"));
        QFile settings(folder.filePath("klineage/models.toml"));
        QVERIFY(settings.open(QIODevice::WriteOnly));
        settings.write("[[model]]\nname = \"local-*\"\nextra_body = '{\"top_k\": 20}'\n");
        settings.close();
        QCOMPARE(runCli(ask, "why", {"XDG_CONFIG_HOME=" + folder.path()}).out, QByteArray("HELlo\n"));
        QCOMPARE(runCli(ask + QStringList{"--extra-body", "{\"n\": 2}"}, "why").status, 2);
    }

    /// What a run says before it starts: nothing to pay on this machine, although no table has a price.
    void aFreeServerNeedsNoPrice()
    {
        const QStringList start{"run",    "start",   "softmax/pocl/K00", "--estimate", "--provider",
                                "openai", "--model", "unheard-of",       "--base-url"};
        const Outcome local = runCli(start + QStringList{"http://127.0.0.1:9/v1"});
        QVERIFY2(local.status == 0, local.err);
        QVERIFY(local.err.contains("cost nothing"));
        QCOMPARE(runCli(start + QStringList{"https://example.com/v1"}).status, 3);
    }

    void wrongUsage_data()
    {
        QTest::addColumn<QStringList>("arguments");
        QTest::addColumn<int>("status");
        QTest::newRow("no provider") << QStringList{} << 2;
        QTest::newRow("unknown provider") << QStringList{"--provider", "oracle"} << 2;
        QTest::newRow("no model") << QStringList{"--provider", "anthropic"} << 2;
        QTest::newRow("no command") << QStringList{"--provider", "exec"} << 2;
        QTest::newRow("empty prompt")
            << QStringList{"--provider", "exec", "--command", "true", "/dev/null"} << 2;
        QTest::newRow("no such prompt")
            << QStringList{"--provider", "exec", "--command", "true", "/none"} << 2;
        QTest::newRow("plain http") << QStringList{"--provider", "openai",     "--model",
                                                   "m",          "--base-url", "http://example.com"}
                                    << 2;
        QTest::newRow("no key") << QStringList{"--provider", "anthropic", "--model", "claude-opus-5-5"} << 3;
        QTest::newRow("no price") << QStringList{"--provider", "anthropic", "--model", "unheard-of"} << 3;
    }
    void wrongUsage()
    {
        QFETCH(QStringList, arguments);
        QFETCH(int, status);
        const Outcome outcome = runCli(QStringList{"llm", "ask"} + arguments, "why");
        QCOMPARE(outcome.status, status);
        QVERIFY(!outcome.err.isEmpty() || !outcome.out.isEmpty());
    }

    void estimates()
    {
        const Outcome outcome = runCli(
            {"llm", "ask", "--provider", "anthropic", "--model", "claude-opus-5-5", "--estimate", "--json"},
            "why");
        QCOMPARE(outcome.status, 0);
        QVERIFY(outcome.json["likely_dollars"].toDouble() > 0);
        QVERIFY(outcome.json["most_dollars"].toDouble() > outcome.json["likely_dollars"].toDouble());
    }

    void listsPrices()
    {
        const Outcome list = runCli({"llm", "prices", "--json"});
        QCOMPARE(list.json["date"].toString(), QString("2026-11-21"));
        QVERIFY(list.json["models"].toArray().size() >= 20);
        const Outcome toml = runCli({"llm", "prices", "--toml"});
        const auto table = llm::parsePrices(toml.out.toStdString(), "printed");
        QVERIFY(table);
        QCOMPARE(static_cast<int>(table->prices.size()),
                 static_cast<int>(list.json["models"].toArray().size()));
    }

    void doctorTellsOfKeysNotWhichTheyAre()
    {
        const Outcome outcome = runCli({"doctor", "--json"}, {}, {"OPENAI_API_KEY=real-secret-key"});
        QVERIFY(!(outcome.out + outcome.err).contains("real-secret-key"));
        QStringList said;
        for (const QJsonValue &check : outcome.json["checks"].toArray())
            said << check.toObject()["name"].toString() + ": " + check.toObject()["status"].toString();
        QVERIFY(said.contains("openai key: ok"));
        QVERIFY(said.contains("anthropic key: missing"));
        QVERIFY(said.contains("prices: ok"));
    }
};

QTEST_GUILESS_MAIN(TestLlmCli)
#include "tst_llmcli.moc"
