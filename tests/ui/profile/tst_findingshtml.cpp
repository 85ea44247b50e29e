// SPDX-License-Identifier: GPL-3.0-or-later
#include "tests/ui/common/uitest.h"
#include "ui/profile/findingshtml.h"
#include "ui/style/format.h"

#include <QSet>
#include <QTest>

using namespace klineage;
using namespace klineage::ui;

class TestFindingsHtml : public UiTest
{
    Q_OBJECT

private slots:
    void chips();
    void html();
};

void TestFindingsHtml::chips()
{
    QVERIFY(chipOf(gate::BoundBy::Unknown).text.isEmpty());
    QSet<QString> glyphs;
    for (const auto bound :
         {gate::BoundBy::Compute, gate::BoundBy::Memory, gate::BoundBy::Latency, gate::BoundBy::Mixed}) {
        QVERIFY(!chipOf(bound).text.isEmpty());
        glyphs.insert(chipOf(bound).glyph);
    }
    QCOMPARE(glyphs.size(), 4);
}

void TestFindingsHtml::html()
{
    gate::Analysis analysis;
    analysis.classification.reason = "12 FLOP/B";
    QVERIFY(findingsHtml(analysis).contains("No tool"));
    analysis.findings = {{"bank-conflicts", "gemm<4>", "70 % of the cycles"}};
    analysis.notMeasured = {{"stalls", "needs counters"}, {"dram", "needs counters"}};
    const QString html = findingsHtml(analysis);
    QVERIFY(html.contains("12 FLOP/B"));
    QVERIFY(html.contains("Bank conflicts"));
    QVERIFY(html.contains("gemm&lt;4&gt;"));
    QVERIFY(!html.contains("No tool"));
    QVERIFY(html.contains("Not measured (needs counters): stalls, dram."));
    QVERIFY(!html.contains("<a "));
    analysis.findings[0].metric = "shared_bank_conflicts";
    analysis.findings[0].lines = {{88, 0.265}, {90, 0.031}};
    const QString linked = findingsHtml(analysis);
    QVERIFY(linked.contains("href=\"metric:shared_bank_conflicts\""));
    QVERIFY(linked.contains("href=\"line:1:88\"")
            && linked.contains(formatQuantity(26.5, QStringLiteral("%"))));
    QVERIFY(linked.indexOf("line:1:88") < linked.indexOf("line:1:90"));
}

KLINEAGE_UI_TEST(TestFindingsHtml)
#include "tst_findingshtml.moc"
