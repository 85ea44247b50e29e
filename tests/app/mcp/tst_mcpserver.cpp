// SPDX-License-Identifier: GPL-3.0-or-later
// `klineage-cli mcp` from outside: lines in, lines out, and nothing else on stdout.
#include "tests/paths.h"
#include "tests/patience.h"

#include <QElapsedTimer>
#include <QJsonArray>
#include <QJsonDocument>
#include <QJsonObject>
#include <QProcess>
#include <QTemporaryDir>
#include <QTest>

#include <filesystem>
#include <memory>

namespace {

const QByteArray initialize =
    R"({"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"tst","version":"1"}}})";

/// The program on a copy of the test workspace.
class Server
{
public:
    explicit Server(const QStringList &more = {})
    {
        std::filesystem::copy(std::filesystem::path(klineage::test::sourcePath()) / "tests/data/workspace",
                              m_folder.path().toStdString(),
                              std::filesystem::copy_options::recursive
                                  | std::filesystem::copy_options::overwrite_existing);
        start(more);
    }
    void start(const QStringList &more)
    {
        m_process = std::make_unique<QProcess>();
        m_process->start(QString::fromStdString(klineage::test::programPath("/klineage-cli")),
                         QStringList{"mcp", "--workspace", m_folder.path()} + more);
    }
    void write(const QByteArray &line) { m_process->write(line + '\n'); }
    QJsonObject next()
    {
        QElapsedTimer elapsed;
        elapsed.start();
        while (!m_process->canReadLine() && elapsed.elapsed() < 4 * patienceMs
               && m_process->state() != QProcess::NotRunning)
            m_process->waitForReadyRead(200);
        const QByteArray line = m_process->readLine();
        QJsonParseError problem;
        const QJsonObject object = QJsonDocument::fromJson(line, &problem).object();
        if (problem.error != QJsonParseError::NoError)
            qFatal("no JSON on stdout: '%s'", line.constData());
        return object;
    }
    QJsonObject ask(const QByteArray &line)
    {
        write(line);
        return next();
    }
    QJsonObject call(const QByteArray &tool, const QByteArray &arguments = "{}")
    {
        return ask(R"({"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":")" + tool
                   + R"(","arguments":)" + arguments + "}}")
            .value("result")
            .toObject();
    }
    int end()
    {
        m_process->closeWriteChannel();
        if (!m_process->waitForFinished(4 * patienceMs))
            qFatal("the server did not end with its input");
        return m_process->exitStatus() == QProcess::NormalExit ? m_process->exitCode() : -1;
    }
    QProcess &process() { return *m_process; }
    QString folder() const { return m_folder.path(); }

private:
    QTemporaryDir m_folder;
    std::unique_ptr<QProcess> m_process;
};

QString text(const QJsonObject &result)
{
    return result.value("content").toArray().at(0).toObject().value("text").toString();
}

} // namespace

class TestMcpServer : public QObject
{
    Q_OBJECT

private slots:
    void itServesAndEndsWithItsInput()
    {
        Server server;
        QCOMPARE(server.ask(initialize).value("result").toObject().value("protocolVersion").toString(),
                 QString("2025-06-18"));
        server.write(R"({"jsonrpc":"2.0","method":"notifications/initialized"})");
        const QJsonArray tools = server.ask(R"({"jsonrpc":"2.0","id":1,"method":"tools/list"})")
                                     .value("result")
                                     .toObject()
                                     .value("tools")
                                     .toArray();
        QCOMPARE(tools.size(), 7);
        for (const QJsonValue &tool : tools)
            QCOMPARE(tool.toObject().value("inputSchema").toObject().value("additionalProperties"),
                     QJsonValue(false));
        server.write("{\"jsonrpc\":\"2.0\",\"id\":2,\"method\""); // torn
        QCOMPARE(server.end(), 0);
    }

    void lookupsAnswer_data()
    {
        QTest::addColumn<QByteArray>("tool");
        QTest::addColumn<QByteArray>("arguments");
        QTest::addColumn<bool>("isError");
        QTest::addColumn<QString>("part");
        QTest::newRow("workloads") << QByteArray("list_workloads") << QByteArray("{}") << false << "toy";
        QTest::newRow("workload") << QByteArray("get_workload") << QByteArray(R"({"workload":"toy"})")
                                  << false << "softmax_rows";
        QTest::newRow("no workload") << QByteArray("get_workload") << QByteArray(R"({"workload":"../toy"})")
                                     << true << "There is no workload '../toy'";
        QTest::newRow("lineage") << QByteArray("get_lineage") << QByteArray(R"({"lineage":"toy/pocl"})")
                                 << false << "R01a";
        QTest::newRow("state") << QByteArray("get_lineage")
                               << QByteArray(R"({"lineage":"toy/pocl","state":"K01"})") << false
                               << "staged rows";
        QTest::newRow("attempt") << QByteArray("get_lineage")
                                 << QByteArray(R"({"lineage":"toy/pocl","state":"R01a"})") << false
                                 << "/*klineage";
        QTest::newRow("no state") << QByteArray("get_lineage")
                                  << QByteArray(R"({"lineage":"toy/pocl","state":"K77"})") << true << "K77";
        QTest::newRow("card") << QByteArray("get_card") << QByteArray(R"({"card":"stage-rows"})") << false
                              << "carrier";
        QTest::newRow("no card") << QByteArray("get_card") << QByteArray(R"({"card":"stage-row"})") << true
                                 << "did you mean 'stage-rows'";
        QTest::newRow("retrieve") << QByteArray("retrieve_cards")
                                  << QByteArray(R"({"state":"toy/pocl/K00","hypotheses":true})") << false
                                  << "stage-rows";
        QTest::newRow("retrieve for code")
            << QByteArray("retrieve_cards")
            << QByteArray(
                   R"({"workload":"toy","platform":"pocl","code":"kernel void f() {}","hypotheses":true})")
            << false << "stage-rows";
        QTest::newRow("retrieve nothing")
            << QByteArray("retrieve_cards") << QByteArray("{}") << true << "needs a workload and a platform";
        QTest::newRow("a bad feature") << QByteArray("retrieve_cards")
                                       << QByteArray(R"({"state":"toy/pocl/K00","features":[{"name":"x"}]})")
                                       << true << "features[0].locus is missing.";
        QTest::newRow("no candidate")
            << QByteArray("gate") << QByteArray(R"({"workload":"toy"})") << true << "candidate is missing.";
        QTest::newRow("gate no workload")
            << QByteArray("gate") << QByteArray(R"({"workload":"nope","candidate":"x"})") << true
            << "There is no workload 'nope'";
        QTest::newRow("two parents")
            << QByteArray("gate")
            << QByteArray(R"({"workload":"toy","candidate":"x","parent":"y","parent_state":"toy/pocl/K00"})")
            << true << "not by both";
    }
    void lookupsAnswer()
    {
        QFETCH(QByteArray, tool);
        QFETCH(QByteArray, arguments);
        QFETCH(bool, isError);
        QFETCH(QString, part);
        Server server;
        static_cast<void>(server.ask(initialize));
        const QJsonObject result = server.call(tool, arguments);
        QCOMPARE(result.value("isError").toBool(), isError);
        QVERIFY2(text(result).contains(part), qPrintable(text(result)));
        QCOMPARE(result.contains("structuredContent"), !isError);
        QCOMPARE(server.end(), 0);
    }

    void anEndlessLineIsRefusedAndTheSessionGoesOn()
    {
        Server server;
        server.write(QByteArray(20 << 20, 'x'));
        QCOMPARE(server.next().value("error").toObject().value("code").toInt(), -32700);
        QCOMPARE(server.ask(R"({"jsonrpc":"2.0","id":5,"method":"ping"})").value("id").toInt(), 5);
        QCOMPARE(server.end(), 0);
    }

    void theGateJudgesWhatIsNoCandidate()
    {
        Server server;
        static_cast<void>(server.ask(initialize));
        const QJsonObject result = server.call("gate", R"({"workload":"toy","candidate":"no","seeds":1})");
        QVERIFY2(!result.value("isError").toBool(), qPrintable(text(result)));
        QCOMPARE(result.value("structuredContent")
                     .toObject()
                     .value("verdict")
                     .toObject()
                     .value("status")
                     .toString(),
                 QString("compile_error"));
        QVERIFY(text(result).startsWith("Verdict: compile_error"));
        QCOMPARE(server.end(), 0);
    }

    void runsAreCreatedAndGoneOnWith()
    {
        Server server({"--run", "agent-1", "--workload", "toy", "--platform", "pocl", "--max-steps", "2"});
        static_cast<void>(server.ask(initialize));
        const QJsonObject first = server.call("submit_to_run", R"({"candidate":"no","seeds":1,"dollars":9})");
        QVERIFY2(!first.value("isError").toBool(), qPrintable(text(first)));
        QCOMPARE(first.value("structuredContent").toObject().value("step").toInt(), 1);
        const QJsonObject dear =
            server.call("submit_to_run", R"({"candidate":"no","seeds":1,"dollars":1.5})");
        QVERIFY2(text(dear).startsWith("The budget"), qPrintable(text(dear)));
        QCOMPARE(server.end(), 0);

        server.start({"--run", "agent-1"});
        static_cast<void>(server.ask(initialize));
        const QJsonObject second = server.call("submit_to_run", R"({"candidate":"no, again","seeds":1})");
        QCOMPARE(second.value("structuredContent").toObject().value("step").toInt(), 2);
        QVERIFY(
            second.value("structuredContent").toObject().value("ending").toString().startsWith("step_limit"));
        QVERIFY(text(server.call("submit_to_run", R"({"candidate":"no","seeds":1})")).contains("has ended"));
        QCOMPARE(server.end(), 0);
    }

    void theCommandLineRetrievesToo_data()
    {
        QTest::addColumn<QStringList>("arguments");
        QTest::addColumn<int>("status");
        QTest::addColumn<QString>("part");
        const QStringList state{"--state", "toy/pocl/K00", "--hypotheses"};
        QTest::newRow("a state") << state << 0 << "Taken, best first:\n  stage-rows";
        QTest::newRow("words") << QStringList{"--workload", "other", "--platform", "pocl", "--prior", "a,b"}
                               << 0 << "blocked: is a hypothesis";
        const QString file = QString::fromStdString(
            klineage::test::sourcePath("/tests/data/workspace/workloads/toy/lineages/pocl/K00.cl"));
        QTest::newRow("a file") << QStringList{"--file",     file,   "--workload",  "toy",
                                               "--platform", "pocl", "--hypotheses"}
                                << 0 << "stage-rows";
        QTest::newRow("no file") << state + QStringList{"--file", "/nowhere.cl"} << 2 << "nowhere.cl";
        QTest::newRow("nothing") << QStringList{} << 2 << "needs a workload and a platform";
        QTest::newRow("no state") << QStringList{"--state", "toy/pocl/K77"} << 2 << "has no state 'K77'";
        QTest::newRow("no lineage") << QStringList{"--state", "x"} << 2 << "names no state of a lineage";
        QTest::newRow("no feature") << state + QStringList{"--feature", "tile"} << 2 << "expected LOCUS:NAME";
        QTest::newRow("no language") << QStringList{"--workload", "w", "--platform", "mystery"} << 2
                                     << "does not say the language";
    }
    void theCommandLineRetrievesToo()
    {
        QFETCH(QStringList, arguments);
        QFETCH(int, status);
        QFETCH(QString, part);
        QProcess process;
        process.setProcessChannelMode(QProcess::MergedChannels);
        process.start(QString::fromStdString(klineage::test::programPath("/klineage-cli")),
                      QStringList{"card", "retrieve", "--workspace",
                                  QString::fromStdString(klineage::test::sourcePath("/tests/data/workspace"))}
                          + arguments);
        QVERIFY(process.waitForFinished(4 * patienceMs));
        const QString said = QString::fromUtf8(process.readAll());
        QVERIFY2(said.contains(part), qPrintable(said));
        QCOMPARE(process.exitCode(), status);
    }

    void aRunThatIsNotThereNeedsAWorkload()
    {
        Server server({"--run", "nothing"});
        QVERIFY(server.process().waitForFinished(4 * patienceMs));
        QCOMPARE(server.process().exitCode(), 3);
        QVERIFY(server.process().readAllStandardError().contains("--workload and --platform"));
    }
};

QTEST_GUILESS_MAIN(TestMcpServer)
#include "tst_mcpserver.moc"
