// SPDX-License-Identifier: GPL-3.0-or-later
// The page on the lineages that ship, with compilers that answer as they are told.
#include "tests/paths.h"
#include "tests/patience.h"
#include "tests/ui/common/uitest.h"
#include "ui/machine/codemodel.h"
#include "ui/machine/codeside.h"
#include "ui/machine/codeview.h"
#include "ui/machine/instep.h"
#include "ui/machine/mixmodel.h"
#include "ui/models/selection.h"
#include "ui/models/workspacemodel.h"

#include <QLabel>
#include <QPushButton>
#include <QSignalSpy>
#include <QTableView>
#include <QTest>

#include <algorithm>

using namespace klineage;
using namespace klineage::ui;

namespace {

/// In the place of the diff.
class FakeSource : public QObject
{
    Q_OBJECT

public:
    void showSourceLine(int side, int line) { shown << qMakePair(side, line); }
    QList<QPair<int, int>> shown;

signals:
    void lineChosen(int side, int line);
};

struct Page {
    explicit Page(WorkspaceModel *workspace, const char *lineage, const char *row,
                  const char *compiler = "none")
        : panel(workspace, &selection)
    {
        panel.setCompiler({klineage::test::programPath("/klineage-fakecompiler"), compiler});
        panel.resize(1200, 500);
        selection.setLineage(QLatin1String(lineage), QLatin1String(row));
        panel.show();
    }

    [[nodiscard]] bool settle() const
    {
        return QTest::qWaitFor([this] { return panel.isUpToDate(); }, patienceMs);
    }

    Selection selection;
    MachinePanel panel;
};

} // namespace

class TestMachinePanel : public UiTest
{
    Q_OBJECT

private:
    WorkspaceModel m_workspace;

private slots:
    void initTestCase() { m_workspace.openNow(QString::fromStdString(klineage::test::sourcePath())); }

    void bothSidesShowWhatTheirTrialsKept()
    {
        Page page(&m_workspace, "fmha-causal/sm90", "K05");
        QVERIFY(page.settle());
        for (int side : {0, 1}) {
            const CodeSide *shown = page.panel.side(side);
            QCOMPARE(shown->label(), side == 0 ? QStringLiteral("K04") : QStringLiteral("K05"));
            QVERIFY2(shown->code(), qPrintable(shown->message()));
            QVERIFY(shown->isVisible());
            QVERIFY(shown->facts().contains(QLatin1String("sm_90a")));
            QVERIFY(shown->facts().contains(QLatin1String("NVIDIA H200")));
            QVERIFY(shown->facts().contains(QStringLiteral("samples · trial ")));
        }
        QVERIFY(page.panel.summary().startsWith(QLatin1String("Static count, not executed: ")));
        QVERIFY(page.panel.mix()->rowCount() > 5);
        // The whole list may be narrower than two of them.
        page.panel.resize(400, 500);
        QVERIFY(!page.panel.side(0)->isVisible() && page.panel.side(1)->isVisible());
        page.panel.chooseLine(0, 20);
        QVERIFY(page.panel.side(0)->isVisible() && !page.panel.side(1)->isVisible());
    }

    void theSourceIsInStep()
    {
        Page page(&m_workspace, "fmha-causal/sm90", "K05");
        FakeSource source;
        QVERIFY(keepInStep(&page.panel, &source));
        QVERIFY(page.settle());
        CodeSide *right = page.panel.side(1);
        const int row = right->code()->hottest.front();
        const int line = right->code()->rows[static_cast<std::size_t>(row)].line;
        QVERIFY(line > 0);
        emit source.lineChosen(1, line);
        QVERIFY(right->view()->codeModel()->isMarked(row));
        QCOMPARE(right->view()->currentIndex().row(), right->code()->rowsOf(line).front());
        QVERIFY(source.shown.isEmpty()); // no echo
        QCOMPARE(page.panel.side(0)->view()->codeModel()->markedLine(), 0);
        right->view()->goToRow(row);
        QCOMPARE(source.shown, (QList<QPair<int, int>>{{1, line}}));
        // It stays chosen in PTX, and is forgotten with its state.
        page.panel.setCompiler({klineage::test::programPath("/klineage-fakecompiler"), "ptx"});
        emit source.lineChosen(1, 41);
        page.panel.setForm(CodeForm::Ptx);
        QVERIFY(page.settle());
        QCOMPARE(right->view()->codeModel()->markedLine(), 41);
        page.selection.setRow(QStringLiteral("K06"));
        QVERIFY(page.settle());
        QCOMPARE(right->view()->codeModel()->markedLine(), 0);
    }

    void whatHasNoLineSaysSo()
    {
        QObject plain;
        Page page(&m_workspace, "fmha-causal/sm90", "K05");
        QVERIFY(!keepInStep(&page.panel, &plain));
        QVERIFY(page.settle());
        page.panel.chooseLine(1, 1);
        const auto labels = page.panel.side(1)->findChildren<QLabel *>();
        QVERIFY(std::any_of(labels.begin(), labels.end(), [](const QLabel *label) {
            return label->text().contains(QLatin1String("no instruction of line 1"));
        }));
    }

    /// Of fmha K13 the trial kept none, of K14 it did.
    void aSideWithoutCodeSaysWhyAndTheOtherIsShown()
    {
        Page page(&m_workspace, "fmha/sm90", "K14");
        QVERIFY(page.settle());
        QVERIFY(page.panel.side(1)->code());
        const QString why = page.panel.side(0)->message();
        QVERIFY2(why.startsWith(QLatin1String("The trial of K13 kept no machine code. Cannot ")),
                 qPrintable(why));
        QVERIFY(why.contains(QLatin1String("gated with counters on a GPU")));
        QVERIFY(page.panel.summary().startsWith(
            QLatin1String("Static count, not executed, of K14 alone"))); // of one side
        page.panel.setForm(CodeForm::Ptx);
        QVERIFY(page.settle());
        for (int side : {0, 1})
            QVERIFY2(
                page.panel.side(side)->message().contains(QLatin1String("libnvrtc.so.13: no such library")),
                qPrintable(page.panel.side(side)->message()));
    }

    void whatRunsOnTheProcessorIsNotRead()
    {
        Page page(&m_workspace, "sgemm/pocl", "K03");
        QVERIFY(page.settle());
        for (int side : {0, 1})
            QVERIFY2(page.panel.side(side)->message().contains(QLatin1String("OpenCL C")),
                     qPrintable(page.panel.side(side)->message()));
        page.selection.setRow(QStringLiteral("K00"));
        QVERIFY(page.settle());
        QVERIFY(!page.panel.side(0)->isVisible()); // there is nothing before it
    }

    void ptxIsMadeOnceAndKept()
    {
        Page page(&m_workspace, "fmha-causal/sm90", "K05", "ptx");
        QVERIFY(page.settle());
        QSignalSpy compiling(&page.panel, &MachinePanel::compilingChanged);
        page.panel.setForm(CodeForm::Ptx);
        QVERIFY(page.settle());
        const CodeSide *right = page.panel.side(1);
        QVERIFY2(right->code(), qPrintable(right->message()));
        QCOMPARE(right->code()->instructions, 4);
        QCOMPARE(right->code()->rowsOf(41).size(), std::size_t{3});
        QVERIFY(right->facts().startsWith(QStringLiteral("fake 1.0 · sm_90a · 4 instructions · no samples")));
        QCOMPARE(compiling.count(), 2);
        page.panel.setForm(CodeForm::Sass);
        QVERIFY(page.settle());
        page.panel.setForm(CodeForm::Ptx);
        QVERIFY(page.settle());
        QVERIFY(right->code());
        QCOMPARE(compiling.count(), 2); // nothing was compiled again
    }

    void whatDoesNotCompileSaysWhy()
    {
        Page page(&m_workspace, "fmha-causal/sm90", "K05", "refuse");
        page.panel.setForm(CodeForm::Ptx);
        QVERIFY(page.settle());
        QVERIFY2(page.panel.side(1)->message().contains(
                     QLatin1String("does not compile for compute_90a: K05.cu(7): error: no such thing")),
                 qPrintable(page.panel.side(1)->message()));
        QVERIFY(!page.panel.side(1)->message().contains(QLatin1String("and more")));
    }

    void aCompilerThatIsNotThereSaysSo()
    {
        Page page(&m_workspace, "fmha-causal/sm90", "K05");
        page.panel.setCompiler({klineage::test::programPath("/no-such-compiler")});
        page.panel.setForm(CodeForm::Ptx);
        QVERIFY(page.settle());
        QVERIFY2(page.panel.side(1)->message().contains(QLatin1String("no-such-compiler")),
                 qPrintable(page.panel.side(1)->message()));
    }

    void compilingCanBeStoppedAndTakenUp()
    {
        Page page(&m_workspace, "fmha-causal/sm90", "K05", "slow");
        page.panel.setForm(CodeForm::Ptx);
        CodeSide *right = page.panel.side(1);
        QTRY_VERIFY(page.panel.isCompiling());
        QCOMPARE(right->message(), QStringLiteral("Compiling K05 for compute_90a…"));
        auto *button = right->findChild<QPushButton *>();
        QVERIFY(button->isVisible());
        QTest::mouseClick(button, Qt::LeftButton);
        QVERIFY(!page.panel.isCompiling() && page.panel.isUpToDate());
        QCOMPARE(right->message(), QStringLiteral("Compiling was stopped."));
        QTest::mouseClick(button, Qt::LeftButton);
        QTRY_VERIFY(page.panel.isCompiling());
        // Another state is asked for meanwhile: what was wanted before is dropped.
        page.panel.setForm(CodeForm::Sass);
        QVERIFY(page.settle());
        QVERIFY(right->code());
        QCOMPARE(right->code()->form, CodeForm::Sass);
        QVERIFY(!page.panel.isCompiling());
    }

    /// The mix stands above the lists and covers nothing of them, also where there is little room.
    void theMixCoversNothing()
    {
        Page page(&m_workspace, "fmha-causal/sm90", "K05");
        QVERIFY(page.settle());
        QTableView *mix = nullptr;
        for (QTableView *table : page.panel.findChildren<QTableView *>())
            mix = qobject_cast<MixModel *>(table->model()) ? table : mix;
        QTest::keyClick(page.panel.side(1)->view(), Qt::Key_I, Qt::AltModifier);
        for (const int height : {240, 300, 440, 900}) {
            page.panel.resize(1200, height);
            QTRY_VERIFY(mix->isVisible() && mix->geometry().bottom() < page.panel.side(0)->geometry().top());
            QVERIFY(page.panel.side(0)->geometry().bottom() < page.panel.height());
        }
    }

    void nothingIsReadWhileItIsNotSeen()
    {
        Selection selection;
        MachinePanel panel(&m_workspace, &selection);
        selection.setLineage(QStringLiteral("fmha-causal/sm90"), QStringLiteral("K05"));
        QVERIFY(panel.isUpToDate());
        QVERIFY(!panel.side(1)->code());
    }
};

KLINEAGE_UI_TEST(TestMachinePanel)
#include "tst_machinepanel.moc"
