// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/llm/curlprobe.h"

#include <QTest>

using namespace klineage::llm;

class TestCurlProbe : public QObject
{
    Q_OBJECT

private slots:
    void saysWhatIsLinked()
    {
        const CurlFacts facts = probeCurl();
        QCOMPARE(facts.isThere, KLINEAGE_HAVE_CURL == 1);
        QCOMPARE(facts.version.empty(), !facts.isThere);
        if (facts.isThere)
            QVERIFY(facts.version[0] >= '7' && facts.version[0] <= '9');
    }

    void httpsNeedsTls()
    {
        const CurlFacts facts = probeCurl();
        QCOMPARE(facts.https, !facts.tls.empty());
    }
};

QTEST_GUILESS_MAIN(TestCurlProbe)
#include "tst_curlprobe.moc"
