// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/device/cuda/ptxwords.h"

#include <QTest>

using klineage::gate::cuda::LocalUse;
using klineage::gate::cuda::localUseOf;

class TestPtxWords : public QObject
{
    Q_OBJECT

private slots:
    void says_data()
    {
        QTest::addColumn<QByteArray>("ptx");
        QTest::addColumn<bool>("takes");
        QTest::addColumn<bool>("any");
        QTest::newRow("nothing") << QByteArray(".visible .entry k()\n{\n\tld.global.u32 %r1, [%rd1];\n}")
                                 << false << false;
        QTest::newRow("plainly") << QByteArray("\talloca.u64 t, 768, 16;") << true << true;
        QTest::newRow("a comment between") << QByteArray("alloca/* a piece */.u64 t, 768;") << true << true;
        QTest::newRow("a blank between") << QByteArray("alloca .u64 t, 768;") << true << true;
        QTest::newRow("over lines") << QByteArray("alloca//.\n\n.u64 t, 768;") << true << true;
        QTest::newRow("the pointer") << QByteArray("{ .reg .u64 t; stacksave.u64 t; }") << true << true;
        QTest::newRow("the pointer back") << QByteArray("stackrestore.u64 t;") << true << true;
        QTest::newRow("a number") << QByteArray("st.local.u32 [384], %r1;") << false << true;
        QTest::newRow("a number, apart") << QByteArray("st . local/**/.u32 [384], %r1;") << false << true;
        QTest::newRow("an address") << QByteArray("cvta.to.local.u64 %rd1, %rd2;") << false << true;
        QTest::newRow("a variable") << QByteArray(".local .align 4 .b8 __local_depot0[64];") << false << true;
        QTest::newRow("a function") << QByteArray("call.uni (retval0), deeper, (param0);") << false << true;
        QTest::newRow("in a comment") << QByteArray("// alloca .local\n/* call */ ret;") << false << false;
        QTest::newRow("in a string") << QByteArray(".file 1 \"local/alloca.cu\"\nret;") << false << false;
        QTest::newRow("in names") << QByteArray("mov.u32 %local, alloca_2; // $alloca") << false << false;
        QTest::newRow("a comment without end") << QByteArray("ret; /* alloca") << false << false;
        QTest::newRow("a string without end") << QByteArray("ret; \"alloca") << false << false;
        QTest::newRow("an escaped quote") << QByteArray(".file 1 \"a\\\"b\"\ncall f; \"") << false << false;
        QTest::newRow("empty") << QByteArray() << false << false;
    }

    void says()
    {
        QFETCH(QByteArray, ptx);
        const LocalUse use = localUseOf({ptx.constData(), static_cast<std::size_t>(ptx.size())});
        QTEST(use.takesFromStack, "takes");
        QTEST(use.any, "any");
        QCOMPARE(use.isUnclear, ptx.contains('\\'));
    }
};

QTEST_GUILESS_MAIN(TestPtxWords)
#include "tst_ptxwords.moc"
