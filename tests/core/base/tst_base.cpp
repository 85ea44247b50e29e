// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/base/identifier.h"
#include "core/base/position.h"
#include "core/base/result.h"
#include "core/base/suggest.h"

#include <QTest>

#include <set>

using namespace klineage;

class TestBase : public QObject
{
    Q_OBJECT

private slots:
    void editDistanceCountsEdits_data();
    void editDistanceCountsEdits();
    void nearestNameOnlyForgivesSlips_data();
    void nearestNameOnlyForgivesSlips();
    void suggestionsReadAsText();
    void identifiersAreWhatCompilersTake_data();
    void identifiersAreWhatCompilersTake();
    void slugsAreSafeFileNames();
    void locatedNamesThePlace();
    void errorCodesHaveDistinctNames();
};

void TestBase::editDistanceCountsEdits_data()
{
    QTest::addColumn<QString>("a");
    QTest::addColumn<QString>("b");
    QTest::addColumn<int>("distance");
    QTest::newRow("same") << "grid"
                          << "grid" << 0;
    QTest::newRow("empty") << ""
                           << "grid" << 4;
    QTest::newRow("insertion") << "gid"
                               << "grid" << 1;
    QTest::newRow("deletion") << "gridd"
                              << "grid" << 1;
    QTest::newRow("substitution") << "grit"
                                  << "grid" << 1;
    QTest::newRow("neighbours swapped") << "gird"
                                        << "grid" << 1;
    QTest::newRow("two") << "gri"
                         << "frid" << 2;
    QTest::newRow("unrelated") << "abc"
                               << "xyz" << 3;
}

void TestBase::editDistanceCountsEdits()
{
    QFETCH(QString, a);
    QFETCH(QString, b);
    QFETCH(int, distance);
    QCOMPARE(static_cast<int>(editDistance(a.toStdString(), b.toStdString())), distance);
    QCOMPARE(static_cast<int>(editDistance(b.toStdString(), a.toStdString())), distance);
}

void TestBase::nearestNameOnlyForgivesSlips_data()
{
    QTest::addColumn<QString>("name");
    QTest::addColumn<QString>("nearest");
    QTest::newRow("one letter off") << "gris"
                                    << "grid";
    QTest::newRow("three of nine") << "cooporetife"
                                   << "cooperative";
    QTest::newRow("short and wrong") << "xy"
                                     << "";
    QTest::newRow("unrelated") << "banana"
                               << "";
    QTest::newRow("empty") << ""
                           << "";
    QTest::newRow("too long to compare") << QString(65, 'g') << "";
}

void TestBase::nearestNameOnlyForgivesSlips()
{
    QFETCH(QString, name);
    QFETCH(QString, nearest);
    const std::vector<std::string> known = {"grid", "block", "cooperative", std::string(66, 'g')};
    QCOMPARE(QString::fromStdString(nearestName(name.toStdString(), known)), nearest);
}

void TestBase::suggestionsReadAsText()
{
    QCOMPARE(didYouMean("gird", {"grid"}), std::string("; did you mean 'grid'?"));
    QCOMPARE(didYouMean("banana", {"grid"}), std::string());
    QCOMPARE(quotedList({}), std::string());
    QCOMPARE(quotedList({"a"}), std::string("'a'"));
    QCOMPARE(quotedList({"a", "b", "c"}), std::string("'a', 'b' or 'c'"));
}

void TestBase::identifiersAreWhatCompilersTake_data()
{
    QTest::addColumn<QString>("name");
    QTest::addColumn<bool>("valid");
    QTest::newRow("letters") << "BM" << true;
    QTest::newRow("underscore first") << "_x1" << true;
    QTest::newRow("empty") << "" << false;
    QTest::newRow("digit first") << "1x" << false;
    QTest::newRow("option") << "-D" << false;
    QTest::newRow("blank") << "a b" << false;
    QTest::newRow("not ASCII") << QString::fromUtf8("é") << false;
    QTest::newRow("64") << QString(64, 'a') << true;
    QTest::newRow("65") << QString(65, 'a') << false;
}

void TestBase::identifiersAreWhatCompilersTake()
{
    QFETCH(QString, name);
    QFETCH(bool, valid);
    QCOMPARE(isIdentifier(name.toStdString()), valid);
}

void TestBase::slugsAreSafeFileNames()
{
    QVERIFY(isSlug("gemm"));
    QVERIFY(isSlug("one-row_2"));
    QVERIFY(isSlug("2d"));
    for (const char *bad : {"", "-x", "..", "a/b", "Gemm", "a b", "a.b"})
        QVERIFY2(!isSlug(bad), bad);
}

void TestBase::locatedNamesThePlace()
{
    QCOMPARE(located("a.toml", {3, 7}, "x."), std::string("a.toml:3:7: x."));
    QCOMPARE(located("a.toml", {}, "x."), std::string("a.toml: x."));
    QVERIFY((TextPosition{2, 9} < TextPosition{3, 1}));
}

void TestBase::errorCodesHaveDistinctNames()
{
    std::set<std::string> names;
    for (int code = 0; code <= static_cast<int>(ErrorCode::Internal); ++code)
        names.insert(toString(static_cast<ErrorCode>(code)));
    QCOMPARE(names.size(), static_cast<std::size_t>(ErrorCode::Internal) + 1);
}

QTEST_GUILESS_MAIN(TestBase)
#include "tst_base.moc"
