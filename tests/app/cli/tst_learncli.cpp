// SPDX-License-Identifier: GPL-3.0-or-later
// The verbs that start deoptimization, lift and admission: what they refuse before a run is made, and a lift with a command as author.
#include "tests/core/trialfixture.h"
#include "tests/paths.h"
#include "tests/patience.h"

#include <QJsonDocument>
#include <QJsonObject>
#include <QProcess>
#include <QTest>

using namespace klineage::tests;

namespace {

struct Outcome {
    int status = -1;
    QString out;
    QString err;
};

Outcome cli(const WorkspaceCopy &workspace, QStringList arguments)
{
    arguments << QStringLiteral("--workspace") << QString::fromStdString(workspace.root().string());
    QProcess process;
    process.start(QString::fromStdString(klineage::test::programPath("/klineage-cli")), arguments);
    if (!process.waitForFinished(4 * patienceMs))
        qFatal("klineage-cli did not end");
    return {process.exitCode(), QString::fromUtf8(process.readAllStandardOutput()),
            QString::fromUtf8(process.readAllStandardError())};
}

} // namespace

class TestLearnCli : public QObject
{
    Q_OBJECT

private slots:
    void refusals_data()
    {
        QTest::addColumn<QStringList>("arguments");
        QTest::addColumn<QString>("message");
        const QStringList author{"--provider", "exec", "--command", "true"};
        QTest::newRow("no provider") << QStringList{"lineage", "deoptimize", "toy/pocl"} << "--provider";
        QTest::newRow("unknown lineage")
            << QStringList{"lineage", "deoptimize", "toy/pcol"} + author << "did you mean 'toy/pocl'?";
        QTest::newRow("unknown state")
            << QStringList{"lineage", "deoptimize", "toy/pocl/K09"} + author << "K09";
        QTest::newRow("lift of nothing")
            << QStringList{"card", "lift", "toy/pcol"} + author << "did you mean 'toy/pocl'?";
        QTest::newRow("unknown card")
            << QStringList{"card", "admit", "stage-row", "--target", "toy/pocl"} + author
            << "did you mean 'stage-rows'?";
        QTest::newRow("no target") << QStringList{"card", "admit", "stage-rows"} + author << "--target";
        QTest::newRow("target nowhere")
            << QStringList{"card", "admit", "stage-rows", "--target", "nowhere"} + author
            << "is no state of a lineage";
    }

    void refusals()
    {
        QFETCH(QStringList, arguments);
        QFETCH(QString, message);
        const WorkspaceCopy workspace;
        const Outcome outcome = cli(workspace, arguments);
        QCOMPARE(outcome.status, 2);
        QVERIFY2((outcome.err + outcome.out).contains(message), qPrintable(outcome.err + outcome.out));
        QVERIFY(!std::filesystem::exists(workspace.root() / "runs"));
    }

    void aLiftThatTheAuthorDeclines()
    {
        const WorkspaceCopy workspace;
        const QString decline =
            QStringLiteral("printf '```toml\\ndeclined = \"It fits this kernel only.\"\\n```\\n'");
        const Outcome outcome = cli(workspace, {"card", "lift", "toy/pocl", "--again", "--provider", "exec",
                                                "--command", decline, "--id", "lift-1"});
        QVERIFY2(outcome.status == 0, qPrintable(outcome.err));
        QVERIFY2(outcome.err.contains("lift: declined"), qPrintable(outcome.err));
        QVERIFY2(outcome.out.contains("2 groups of transitions: 0 cards stored"), qPrintable(outcome.out));
        const Outcome replayed = cli(workspace, {"run", "replay", "lift-1"});
        QVERIFY2(replayed.status == 0, qPrintable(replayed.out + replayed.err));
        QVERIFY(replayed.out.startsWith("2 steps came out the same"));
    }
};

QTEST_GUILESS_MAIN(TestLearnCli)
#include "tst_learncli.moc"
