// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/trial/analysis/linesamples.h"
#include "tests/ui/common/contrast.h"
#include "tests/ui/common/uitest.h"
#include "ui/highlight/codepalette.h"
#include "ui/machine/codemodel.h"
#include "ui/machine/codeview.h"
#include "ui/machine/mixmodel.h"
#include "ui/style/theme.h"

#include <QAbstractItemModelTester>
#include <QHeaderView>
#include <QImage>
#include <QScrollBar>
#include <QSignalSpy>
#include <QTest>

using namespace klineage;
using namespace klineage::ui;

namespace {

MachineCodePtr codeOf(int instructions, bool isSampled = true)
{
    gate::Listing listing{"nvrtc 13.0", {}};
    for (int i = 0; i < instructions; ++i)
        listing.instructions.push_back({i < instructions / 2 ? "one" : "two",
                                        std::uint64_t(16 * i),
                                        i % 100,
                                        isSampled ? i % 7 : 0,
                                        {{"long_scoreboard", i % 7}, {"selected", 1}},
                                        "@P0 FFMA R" + std::to_string(i % 250) + ", R2, 0x3, R4"});
    return std::make_shared<const MachineCode>(*makeMachineCode(CodeForm::Sass, listing));
}

} // namespace

class TestMachineModels : public UiTest
{
    Q_OBJECT

private slots:
    void modelsKeepTheirPromises()
    {
        CodeModel code;
        MixModel mix;
        const QAbstractItemModelTester codeTester(&code,
                                                  QAbstractItemModelTester::FailureReportingMode::QtTest);
        const QAbstractItemModelTester mixTester(&mix,
                                                 QAbstractItemModelTester::FailureReportingMode::QtTest);
        const MachineCodePtr some = codeOf(40);
        for (const MachineCodePtr &next : {some, MachineCodePtr(), codeOf(3), some}) {
            code.setCode(next);
            code.setMarkedLine(2);
            mix.setSides(next.get(), QStringLiteral("K01"), some.get(), QStringLiteral("K02"));
            mix.setSides(nullptr, {}, next.get(), QStringLiteral("K02"));
        }
    }

    void cellsSayTheSameAsTheListing()
    {
        CodeModel model;
        model.setCode(codeOf(20));
        QCOMPARE(model.rowCount(), 22); // two names of kernels
        const auto cell = [&model](int row, int column, int role = Qt::DisplayRole) {
            return model.index(row, column).data(role);
        };
        QCOMPARE(cell(0, CodeModel::InstructionColumn).toString(), QStringLiteral("one"));
        QCOMPARE(cell(0, CodeModel::InstructionColumn, Qt::EditRole).toString(),
                 QStringLiteral(".kernel one"));
        QCOMPARE(cell(4, CodeModel::LineColumn).toString(), QStringLiteral("3"));
        QCOMPARE(cell(4, CodeModel::SamplesColumn, Qt::EditRole).toInt(), 3);
        // 3 of 57 samples.
        QVERIFY(cell(4, CodeModel::SamplesColumn).toString().startsWith(QLatin1String("5.3")));
        QCOMPARE(cell(4, CodeModel::StallColumn).toString(), QStringLiteral("global memory"));
        QCOMPARE(cell(4, CodeModel::StallColumn, Qt::EditRole).toString(), QStringLiteral("long_scoreboard"));
        QVERIFY(cell(4, 0, Qt::ToolTipRole).toString().contains(QLatin1String("3 of 57 samples")));
        QVERIFY(!cell(1, CodeModel::SamplesColumn).isValid()); // no sample is no zero
        QCOMPARE(gate::stallInBrief("a_new_reason"), std::string("a_new_reason"));
    }

    void theMixTellsBothSidesApart()
    {
        MixModel mix;
        QVERIFY(mix.inOneLine().isEmpty());
        gate::Listing left{"c", {{"k", 0, 1, 0, {}, "LDG R1, [R2]"}, {"k", 16, 1, 0, {}, "EXIT"}}};
        gate::Listing right = left;
        right.instructions.insert(right.instructions.end(), 3, {"k", 32, 1, 0, {}, "HGMMA R1"});
        const auto a = makeMachineCode(CodeForm::Sass, left);
        const auto b = makeMachineCode(CodeForm::Sass, right);
        mix.setSides(&*a, QStringLiteral("K01"), &*b, QStringLiteral("K02"));
        QCOMPARE(mix.rowCount(), 3); // classes that neither has are left out
        QCOMPARE(mix.index(0, MixModel::ClassColumn).data().toString(), QStringLiteral("Warpgroup product"));
        QCOMPARE(mix.index(0, MixModel::ChangeColumn).data().toString(), QStringLiteral("+3"));
        QCOMPARE(mix.headerData(MixModel::LeftColumn, Qt::Horizontal, Qt::DisplayRole).toString(),
                 QStringLiteral("K01"));
        QCOMPARE(mix.inOneLine(), QStringLiteral("Static count, not executed: Warpgroup product 0 → 3 (+3)"));
        mix.setSides(&*a, QStringLiteral("K01"), &*a, QStringLiteral("K02"));
        QVERIFY(mix.inOneLine().contains(QLatin1String("the same number")));
        // A side that is not known has no count, rather than none.
        mix.setSides(nullptr, QStringLiteral("K01"), &*b, QStringLiteral("K02"));
        QCOMPARE(mix.index(0, MixModel::LeftColumn).data().toString(), QStringLiteral("–"));
        QVERIFY(mix.inOneLine().startsWith(
            QLatin1String("Static count, not executed, of K02 alone: Warpgroup product 3")));
    }

    void aLineIsMarkedWithoutAnEcho()
    {
        CodeView view;
        view.resize(600, 300);
        view.setCode(codeOf(1000));
        view.show();
        QSignalSpy chosen(&view, &CodeView::sourceLineChosen);
        QCOMPARE(view.markLine(42), 10);
        QCOMPARE(chosen.count(), 0);
        QCOMPARE(view.currentIndex().row(), 43); // below the name of its kernel
        QVERIFY(view.codeModel()->isMarked(43) && view.codeModel()->isMarked(143));
        QVERIFY(!view.codeModel()->isMarked(44));
        QVERIFY(view.viewport()->rect().intersects(view.visualRect(view.currentIndex())));
        QCOMPARE(view.markLine(999), 0);
        // Somebody who goes on says so.
        QTest::keyClick(&view, Qt::Key_Down);
        QCOMPARE(chosen.count(), 1);
        QCOMPARE(chosen.last().first().toInt(), 43);
        QTest::keyClick(&view, Qt::Key_Up);
        QCOMPARE(chosen.last().first().toInt(), 42);
        QVERIFY(view.codeModel()->isMarked(143));
        view.goToRow(0); // the name of a kernel comes from no line
        QCOMPARE(chosen.count(), 2);
    }

    void selectedRowsBecomeText()
    {
        CodeView view;
        QVERIFY(view.selectedText().isEmpty());
        view.setCode(codeOf(10));
        view.selectionModel()->select(QItemSelection(view.model()->index(0, 0), view.model()->index(2, 0)),
                                      QItemSelectionModel::Select | QItemSelectionModel::Rows);
        QCOMPARE(view.selectedText().count(QLatin1Char('\n')), 3);
        QVERIFY(view.selectedText().startsWith(QLatin1String("one:\n")));
        QVERIFY(view.selectedText().contains(QLatin1String("FFMA R1,")));
    }

    /// No widget a row, whatever the number of rows; the last one can be reached.
    void aLongListIsNoHeavierThanAShortOne()
    {
        CodeView view;
        view.resize(700, 400);
        view.setCode(codeOf(20));
        view.show();
        const qsizetype children = view.findChildren<QObject *>().size();
        view.setCode(codeOf(50'000));
        QCOMPARE(view.model()->rowCount(), 50'002);
        view.goToRow(50'001);
        (void)view.grab();
        QVERIFY(view.viewport()->rect().intersects(view.visualRect(view.currentIndex())));
        QCOMPARE(view.findChildren<QObject *>().size(), children);
        for (const int row : {0, 25'000, 50'001})
            QCOMPARE(view.rowHeight(row), view.rowHeight(1));
    }

    void numbersAreWholeAtEveryWidth()
    {
        for (const int width : {200, 300, 700, 1400}) {
            CodeView view;
            view.resize(width, 200);
            view.setCode(codeOf(500));
            view.show();
            int total = 0;
            for (int column = 0; column < CodeModel::ColumnCount; ++column)
                total += view.isColumnHidden(column) ? 0 : view.columnWidth(column);
            QVERIFY2(total <= view.viewport()->width(), qPrintable(QString::number(width)));
            QVERIFY(view.columnWidth(CodeModel::SamplesColumn)
                    > view.fontMetrics().horizontalAdvance(QStringLiteral("100.0 %")));
            QCOMPARE(view.isColumnHidden(CodeModel::StallColumn), width < 700);
        }
        CodeView view;
        view.setCode(codeOf(10, false));
        QVERIFY(view.isColumnHidden(CodeModel::SamplesColumn)); // nothing was sampled
    }

    void codeCanBeReadOnEveryGround()
    {
        for (const Theme *theme : {&Theme::light(), &Theme::dark()}) {
            const CodePalette colors = CodePalette::from(*theme);
            for (const QColor &ground : {theme->panel, theme->hover, theme->selection, theme->header}) {
                for (const TokenStyle style : {TokenStyle::Keyword, TokenStyle::Control, TokenStyle::Number,
                                               TokenStyle::Label, TokenStyle::Text})
                    QVERIFY2(contrast(colors.token(style), ground) >= 4.5, qPrintable(ground.name()));
                QVERIFY2(contrast(theme->dim, ground) >= 4.5, qPrintable(ground.name()));
            }
        }
    }
};

KLINEAGE_UI_TEST(TestMachineModels)
#include "tst_machinemodels.moc"
