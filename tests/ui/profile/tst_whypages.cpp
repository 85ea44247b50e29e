// SPDX-License-Identifier: GPL-3.0-or-later
// The pages that say why a step changed the time: links, marks, and what is said without figures.
#include "tests/ui/common/modal.h"
#include "tests/ui/common/uitest.h"
#include "ui/profile/why/explainhtml.h"
#include "ui/profile/why/explainpage.h"
#include "ui/profile/why/launchmodel.h"
#include "ui/profile/why/launchpage.h"

#include <QAbstractItemModelTester>
#include <QSignalSpy>
#include <QTableView>
#include <QTest>

using namespace klineage;
using namespace klineage::ui;

namespace {

gate::Explanation planted()
{
    gate::Explanation out;
    out.beforeName = "K07";
    out.afterName = "K08<b>";
    out.paired = true;
    out.beforeNs = 200e3;
    out.afterNs = 100e3;
    out.speedup = {2, 1.9, 2.1};
    gate::Cause cause;
    cause.group = "barriers";
    cause.title = "Waiting at barriers";
    cause.before = 0.6;
    cause.after = 0.2;
    cause.beforeNs = 120e3;
    cause.afterNs = 20e3;
    cause.shareOfDifference = 1;
    cause.reason = "barrier";
    cause.metric = "stall_barrier";
    cause.kernel = "gemm<4>";
    cause.figures = {{"stall_barrier", "%", 60, 20}};
    cause.lines = {{136, 141, -80e3, "gemm<4>"}, {20, 0, -20e3, "gemm<4>"}};
    out.causes = {cause};
    out.together = 1;
    return out;
}

gate::LaunchNumbers numbers(double registers, const char *kernel = "gemm")
{
    gate::LaunchNumbers one;
    one.kernel = kernel;
    one.blocks = 132;
    one.threads = 384;
    one.registers = registers;
    one.dynamicShared = 230400;
    one.limitText = "Registers (168 a thread) allow no more than 1 block on a multiprocessor.";
    return one;
}

QString cell(const LaunchModel &model, const QString &label, int column)
{
    for (int row = 0; row < model.rowCount(); ++row) {
        if (model.index(row, 0).data().toString() == label)
            return model.index(row, column).data().toString();
    }
    return {};
}

} // namespace

class TestWhyPages : public UiTest
{
    Q_OBJECT

private slots:
    void everyCauseHasItsLinks()
    {
        const QString html = explainHtml(planted());
        QVERIFY(html.contains(QLatin1String("href=\"metric:stall_barrier\"")));
        QVERIFY(html.contains(QLatin1String("href=\"line:1:141\"")));
        QVERIFY(html.contains(QLatin1String("href=\"line:0:20\""))); // gone: on the left
        QVERIFY(html.contains(QLatin1String("K08&lt;b&gt;"))
                && html.contains(QLatin1String("gemm&lt;4&gt;")));
        QVERIFY(!html.contains(QLatin1String("K08<b>")));
        QVERIFY(html.contains(QLatin1String("about 100 % of the difference")));
    }

    void links()
    {
        QCOMPARE(explainLink(QStringLiteral("metric:waves"))->metric, QStringLiteral("waves"));
        QCOMPARE(explainLink(QStringLiteral("line:1:141"))->line, 141);
        QCOMPARE(explainLink(QStringLiteral("line:0:20"))->side, 0);
        for (const char *wrong : {"metric:", "line:1", "line:1:0", "line:1:x", "https://example.org", ""})
            QVERIFY2(!explainLink(QLatin1String(wrong)), wrong);
    }

    void withoutRankingItSaysWhatWasKept()
    {
        gate::Explanation out = planted();
        out.causes.clear();
        out.nothing = "Missing are hardware counters.";
        out.kept = {"The trial of K07 kept its time."};
        const QString html = explainHtml(out);
        QVERIFY(html.contains(QLatin1String("Missing are hardware counters.")));
        QVERIFY(html.contains(QLatin1String("kept its time")));
        QVERIFY(!html.contains(QLatin1String("<b>1.")));
        gate::Explanation first;
        first.nothing = "K00 has nothing before it.";
        QCOMPARE(explainHtml(first), QStringLiteral("<p>K00 has nothing before it.</p>"));
    }

    void aFollowedLinkIsSignalled()
    {
        ExplainPage page;
        QSignalSpy metrics(&page, &ExplainPage::metricWanted);
        QSignalSpy lines(&page, &ExplainPage::sourceLineWanted);
        page.setExplanation(planted());
        page.resize(500, 300);
        page.show();
        page.setFocus();
        QVERIFY(takeKeys(page));
        QTest::keyClick(&page, Qt::Key_Tab);
        QTest::keyClick(&page, Qt::Key_Return);
        QCOMPARE(metrics.size(), 1);
        QCOMPARE(metrics[0][0].toString(), QStringLiteral("stall_barrier"));
        QTest::keyClick(&page, Qt::Key_Tab); // the figure
        QTest::keyClick(&page, Qt::Key_Tab); // the first line
        QTest::keyClick(&page, Qt::Key_Return);
        QCOMPARE(lines.size(), 1);
        QCOMPARE(lines[0][0].toInt(), 1);
        QCOMPARE(lines[0][1].toInt(), 141);
    }

    void differencesAreMarked()
    {
        LaunchModel model;
        const QAbstractItemModelTester tester(&model, QAbstractItemModelTester::FailureReportingMode::QtTest);
        model.setSides({numbers(128)}, QStringLiteral("K07"), {numbers(168)}, QStringLiteral("K08"));
        const QString registers = QStringLiteral("Registers / thread");
        QCOMPARE(cell(model, registers, LaunchModel::LeftColumn), QStringLiteral("128"));
        QCOMPARE(cell(model, registers, LaunchModel::RightColumn), QStringLiteral("168"));
        QCOMPARE(cell(model, registers, LaunchModel::MarkColumn), QStringLiteral("≠"));
        QCOMPARE(cell(model, QStringLiteral("Blocks"), LaunchModel::MarkColumn), QString());
        QCOMPARE(model.headerData(LaunchModel::RightColumn, Qt::Horizontal, Qt::DisplayRole).toString(),
                 QStringLiteral("K08"));
        const int rows = model.rowCount();
        // Of several kernels, each has a heading.
        model.setSides({numbers(128)}, QStringLiteral("K07"), {numbers(168), numbers(32, "reduce")},
                       QStringLiteral("K08"));
        QVERIFY(model.rowCount() > rows + 2);
        QCOMPARE(model.index(0, 0).data().toString(), QStringLiteral("gemm"));
        QVERIFY(!cell(model, QStringLiteral("reduce"), LaunchModel::FigureColumn).isEmpty());
        model.setSides({}, {}, {}, {});
        QCOMPARE(model.rowCount(), 0);
    }

    void limitsAreSentences()
    {
        LaunchPage page;
        page.setSides({numbers(128)}, QStringLiteral("K07"), {numbers(168)}, QStringLiteral("K08"));
        QVERIFY(page.limits().contains(QLatin1String("K08: Registers (168 a thread)")));
        page.resize(400, 240);
        page.show();
        QVERIFY(QTest::qWaitForWindowExposed(&page));
        const auto *table = page.findChild<QTableView *>();
        int total = 0;
        for (int column = 0; column < LaunchModel::ColumnCount; ++column)
            total += table->columnWidth(column);
        QVERIFY(total <= table->viewport()->width());
        page.setSides({}, QStringLiteral("K07"), {}, QStringLiteral("K08"));
        QVERIFY(page.limits().contains(QLatin1String("no numbers of their launches")));
    }
};

KLINEAGE_UI_TEST(TestWhyPages)
#include "tst_whypages.moc"
