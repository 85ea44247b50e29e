// SPDX-License-Identifier: GPL-3.0-or-later
// What klineage-cli says of an import, read from its JSON, whatever that is.
#include "tests/ui/common/uitest.h"
#include "ui/begin/importmodel.h"

#include <QAbstractItemModelTester>
#include <QTest>

using namespace klineage::ui;

namespace {

/// With apostrophes for quotes.
QByteArray json(const char *text)
{
    return QByteArray(text).replace('\'', '"');
}

} // namespace

class TestImportReport : public UiTest
{
    Q_OBJECT

private slots:
    void whatNewSaysIsRead()
    {
        QString problem = QStringLiteral("before");
        const ImportReport report = parseOperatorReport(
            json(
                "{'ok': true, 'workload': 'leaky', 'notes': ['It was not counted.'], 'kept': '/w/replaced-1'}"),
            QStringLiteral("leaky.py"), &problem);
        QVERIFY2(problem.isEmpty(), qPrintable(problem));
        QCOMPARE(report.imported, 1);
        QCOMPARE(report.entries.at(0).name, QStringLiteral("leaky"));
        QCOMPARE(report.entries.at(0).source, QStringLiteral("leaky.py"));
        QCOMPARE(report.entries.at(0).notes,
                 QStringList({QStringLiteral("It was not counted."),
                              QStringLiteral("What it replaces was kept in /w/replaced-1.")}));
        const ImportReport refused =
            parseOperatorReport(json("{'ok': false, 'workload': null, 'reason': 'It takes no work.'}"),
                                QStringLiteral("a.py"), &problem);
        QVERIFY(problem.isEmpty() && refused.imported == 0);
        QCOMPARE(refused.entries.at(0).reason, QStringLiteral("It takes no work."));
        for (const char *text : {"", "{", "[]", "{'ok': 1}", "{'entries': []}"}) {
            QVERIFY2(parseOperatorReport(json(text), {}, &problem).entries.empty(), text);
            QVERIFY2(!problem.isEmpty(), text);
        }
        QVERIFY(parseOperatorReport(json("{'error': {'message': 'There is one already.', 'detail': ''}}"), {},
                                    &problem)
                    .entries.empty());
        QCOMPARE(problem, QStringLiteral("There is one already."));
    }

    void aReportIsRead()
    {
        QString problem = QStringLiteral("before");
        const ImportReport report = parseImportReport(
            json(
                "{'entries': [{'source': 'a/SKILL.md', 'card': 'tiles', 'reason': null, 'notes': ['No scope.', 'No effect.']}, "
                "{'source': 'b', 'card': null, 'reason': 'It has no intent.', 'notes': []}], "
                "'imported': 1, 'skipped': 1}"),
            "card", &problem);
        QVERIFY2(problem.isEmpty(), qPrintable(problem));
        QCOMPARE(report.imported, 1);
        QCOMPARE(report.entries.size(), std::size_t{2});
        QCOMPARE(report.entries[0].name, QStringLiteral("tiles"));
        QCOMPARE(report.entries[0].notes.size(), 2);
        QCOMPARE(report.entries[1].reason, QStringLiteral("It has no intent."));

        ImportModel model;
        const QAbstractItemModelTester tester(&model, QAbstractItemModelTester::FailureReportingMode::QtTest);
        model.setReport(report, true);
        QVERIFY(model.index(0, ImportModel::StateColumn).data().toString().contains(QLatin1String("would")));
        model.setReport(report, false);
        QVERIFY(
            model.index(0, ImportModel::StateColumn).data().toString().contains(QLatin1String("imported")));
        QCOMPARE(model.index(0, ImportModel::WhyColumn).data().toString(),
                 QStringLiteral("No scope. · No effect."));
        QCOMPARE(model.index(1, ImportModel::WhyColumn).data().toString(),
                 QStringLiteral("It has no intent."));
        model.setReport({}, false);
        QCOMPARE(model.rowCount(), 0);
    }

    void rowsOfALineageFollowIt()
    {
        QString problem;
        const ImportReport report = parseImportReport(
            json(
                "{'entries': [{'source': 'c', 'lineage': 'rows/pocl', 'reason': null, 'notes': ['2 states.'], "
                "'rows': [{'id': 'K00', 'kind': 'state', 'source': 'a.json', 'text': 'generation 0.'}, 7, "
                "{'id': 'R00a', 'kind': 'attempt', 'source': 'b.json', 'text': 'slower.'}]}, "
                "{'source': 'd.json', 'lineage': null, 'reason': 'It is none.', 'notes': []}], "
                "'next': ['first', 'second']}"),
            "lineage", &problem);
        QVERIFY2(problem.isEmpty(), qPrintable(problem));
        QCOMPARE(report.entries.size(), std::size_t{4});
        QCOMPARE(report.imported, 1);
        QCOMPARE(report.states, 1);
        QCOMPARE(report.attempts, 1);
        QCOMPARE(report.skipped(), 1);
        QCOMPARE(report.next, QStringList({"first", "second"}));
        ImportModel model;
        const QAbstractItemModelTester tester(&model, QAbstractItemModelTester::FailureReportingMode::QtTest);
        model.setReport(report, true);
        QCOMPARE(model.index(1, ImportModel::StateColumn).data().toString(), QStringLiteral("as a state"));
        QCOMPARE(model.index(2, ImportModel::NameColumn).data().toString(), QStringLiteral("R00a"));
        QCOMPARE(model.index(2, ImportModel::WhyColumn).data().toString(), QStringLiteral("slower."));
    }

    void anErrorIsSaid()
    {
        QString problem;
        const ImportReport report =
            parseImportReport(json("{'error': {'code': 'conflict', 'message': 'There is one.', 'detail': "
                                   "'Choose another name.'}}"),
                              "lineage", &problem);
        QCOMPARE(problem, QStringLiteral("There is one. Choose another name."));
        QVERIFY(report.entries.empty());
    }

    void whatIsNoReportSaysSo_data()
    {
        QTest::addColumn<QByteArray>("text");
        QTest::newRow("nothing") << QByteArray();
        QTest::newRow("a sentence") << QByteArray("There is no workspace.");
        QTest::newRow("a list") << QByteArray("[1, 2]");
        QTest::newRow("an error is none") << json("{'error': 3}");
        QTest::newRow("entries are none") << json("{'entries': 3}");
        QTest::newRow("cut off") << json("{'entries': [{'source': 'a");
        QTest::newRow("bytes") << QByteArray("\x00\xff\xfe{", 4);
    }
    void whatIsNoReportSaysSo()
    {
        QFETCH(QByteArray, text);
        QString problem;
        const ImportReport report = parseImportReport(text, "card", &problem);
        QVERIFY(!problem.isEmpty());
        QVERIFY(report.entries.empty());
    }

    void oddEntriesDoNoHarm()
    {
        QString problem;
        const ImportReport report = parseImportReport(
            json("{'entries': [3, null, {'source': 4, 'workload': [], 'notes': 'x'}, {'notes': [1, {}]}]}"),
            "workload", &problem);
        QVERIFY(problem.isEmpty());
        QCOMPARE(report.entries.size(), std::size_t{4});
        QCOMPARE(report.imported, 0);
    }
};

KLINEAGE_UI_TEST(TestImportReport)
#include "tst_importreport.moc"
