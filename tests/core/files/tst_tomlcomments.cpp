// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/files/tomlcomments.h"

#include <QTest>

using klineage::files::withoutTomlComments;

class TestTomlComments : public QObject
{
    Q_OBJECT

private slots:
    void leavesWhatIsNoComment_data()
    {
        QTest::addColumn<QString>("text");
        QTest::addColumn<QString>("expected");
        QTest::newRow("lines of their own") << "# a\n\n# b\nx = 1\n# c\n\ny = 2\n"
                                            << "x = 1\n\ny = 2\n";
        QTest::newRow("after a value") << "x = 1  # one\n[t] # table"
                                       << "x = 1\n[t]";
        QTest::newRow("in strings") << "a = \"# \\\" #\" # gone\nb = '#\\' # gone\n"
                                    << "a = \"# \\\" #\"\nb = '#\\'\n";
        QTest::newRow("in long strings")
            << "a = \"\"\"\n# kept\n\\\"\"\"\"\" # gone\nb = '''# '' kept''' # gone\n"
            << "a = \"\"\"\n# kept\n\\\"\"\"\"\"\nb = '''# '' kept'''\n";
        QTest::newRow("empty strings") << "a = \"\" # gone\n"
                                       << "a = \"\"\n";
        QTest::newRow("not closed") << "a = \"# kept \\"
                                    << "a = \"# kept \\";
        QTest::newRow("nothing") << ""
                                 << "";
    }

    void leavesWhatIsNoComment()
    {
        QFETCH(QString, text);
        QFETCH(QString, expected);
        QCOMPARE(QString::fromStdString(withoutTomlComments(text.toStdString())), expected);
    }
};

QTEST_GUILESS_MAIN(TestTomlComments)
#include "tst_tomlcomments.moc"
