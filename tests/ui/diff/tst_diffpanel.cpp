// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/files/sha256.h"
#include "tests/patience.h"
#include "ui/diff/diffloader.h"
#include "ui/diff/diffpanel.h"
#include "ui/diff/sideheader.h"
#include "ui/diff/view/diffview.h"
#include "ui/diff/view/overviewstrip.h"
#include "ui/highlight/findbar.h"
#include "ui/models/selection.h"
#include "ui/models/workspacemodel.h"
#include "ui/style/theme.h"

#include <QAction>
#include <QClipboard>
#include <QElapsedTimer>
#include <QGuiApplication>
#include <QLabel>
#include <QLineEdit>
#include <QScrollBar>
#include <QSignalSpy>
#include <QTabBar>
#include <QTemporaryDir>
#include <QTest>

#include <algorithm>
#include <fstream>

using namespace klineage;
using namespace klineage::ui;

namespace {

const QString key = QStringLiteral("toy/pocl");

std::string body(int from, int to)
{
    std::string text;
    for (int i = from; i < to; ++i)
        text += "    statement_" + std::to_string(i) + "(a, b);\n";
    return text;
}

std::string candidate(const std::string &code)
{
    return "/*klineage\nsurface = \"opencl\"\n\n[[launch]]\nkernel = \"toy\"\ngrid = [\"N\"]\nblock = [\"1\"]\nargs = [\"x\"]\n*/\n"
           + code;
}

gate::Trial trial(const std::string &id, double latencyNs, double speedup, const std::string &log = {})
{
    gate::Trial trial;
    trial.id = id;
    trial.verdict.status = gate::VerdictStatus::Correct;
    trial.verdict.message = "Correct.";
    trial.verdict.log = log;
    trial.environment.platform = "pocl";
    trial.latencyNs = {latencyNs, latencyNs * 0.99, latencyNs * 1.01};
    if (speedup > 0)
        trial.verdict.comparisons.push_back({"parent",
                                             "",
                                             {speedup, speedup * 0.999, speedup * 1.001},
                                             latencyNs * speedup,
                                             gate::Change::Gain});
    return trial;
}

} // namespace

class TestDiffPanel : public QObject
{
    Q_OBJECT

    QTemporaryDir m_folder;
    WorkspaceModel m_model;
    Selection *m_selection = nullptr;
    DiffPanel *m_panel = nullptr;

    void write(const std::string &name, const std::string &text)
    {
        std::ofstream(m_folder.filePath(QString::fromStdString(name)).toStdString(), std::ios::binary)
            << text;
    }

    DiffView *view() const { return m_panel->view(); }

    void select(const QString &row)
    {
        m_selection->setLineage(key, row);
        QTRY_VERIFY(m_panel->isUpToDate());
    }

    void press(Qt::Key pressed, Qt::KeyboardModifiers modifiers = Qt::NoModifier)
    {
        QTest::keyClick(view(), pressed, modifiers);
    }

    QString hunks() const { return m_panel->findChild<QLabel *>(QStringLiteral("diffHunks"))->text(); }

private slots:
    void initTestCase()
    {
        QVERIFY(m_folder.isValid());
        const std::string head = "__kernel void toy(__global float *x)\n{\n";
        write("K00.cl", candidate(head + body(0, 60) + "}\n"));
        write("K01.cl", candidate(head + body(0, 10) + "    added_one(1);\n" + body(10, 50)
                                  + "    changed_tail(2);\n" + body(51, 60) + "}\n"));
        write("K02.cl", candidate(head + body(0, 10) + "    added_one(1);\n" + body(10, 30) + "    third();\n"
                                  + body(30, 50) + "    changed_tail(2);\n" + body(51, 60) + "}\n"));
        write("K03.cl",
              candidate(head + body(30, 36) + body(0, 10) + "\tadded_one(1);\n" + body(10, 30)
                        + "    third();\n" + body(36, 50) + "    changed_tail(2);\n" + body(51, 60) + "}\n"));
        lineage::Lineage lineage;
        lineage.workload = "toy";
        lineage.platform = "pocl";
        lineage.directory = m_folder.path().toStdString();
        for (int i = 0; i < 5; ++i) { // K04 has no file
            const std::string id = "K0" + std::to_string(i);
            lineage.states.push_back(
                {id, id + ".cl", "state " + std::to_string(i), i < 3 ? "t" + std::to_string(i) : ""});
        }
        lineage.attempts.push_back({"R01a", "K01", "K03.cl", "an attempt", "tiling", "loop", "slower", ""});
        lineage.trials = {trial("t0", 100e3, 0), trial("t1", 50e3, 2, "x.cl:3:1: warning: unused\n"),
                          trial("t2", 25e3, 2)};
        lineage.trials[1].verdict.comparisons.front().otherNs = 104e3; // a clock that was lower that day
        Workspace workspace;
        workspace.root = m_folder.path().toStdString();
        workspace.lineages.push_back(lineage);
        m_model.setWorkspace(std::move(workspace));
    }

    void init()
    {
        QTest::failOnWarning(QRegularExpression(QStringLiteral("^(?!This plugin)")));
        m_selection = new Selection;
        m_panel = new DiffPanel(&m_model, m_selection);
        m_panel->resize(1000, 360);
        m_panel->show();
        QVERIFY(QTest::qWaitForWindowExposed(m_panel));
        view()->setFocus();
    }

    void cleanup()
    {
        delete m_panel;
        delete m_selection;
    }

    void saysWhatToDoWhenNothingIsSelected()
    {
        QVERIFY(view()->document()->right->message.contains(QStringLiteral("library")));
        select(QStringLiteral("K99"));
        QVERIFY(view()->document()->right->message.contains(QStringLiteral("K99")));
    }

    void headersComeFromTrials()
    {
        select(QStringLiteral("K01"));
        const auto headers = m_panel->findChildren<SideHeader *>();
        QCOMPARE(headers.size(), 2);
        const SideHeading left = headers[0]->heading();
        const SideHeading right = headers[1]->heading();
        QCOMPARE(left.label, QStringLiteral("K00"));
        QVERIFY(left.change.text.isEmpty());
        QVERIFY(left.latency.contains(QStringLiteral("104"))); // in the rounds of K01
        QCOMPARE(left.beside, QStringLiteral("beside K01"));
        QVERIFY(right.beside.isEmpty()); // its own trial's
        QVERIFY(headers[0]->accessibleName().contains(left.latency + QStringLiteral(" beside K01")));
        QVERIFY(left.detail.contains(QStringLiteral("trial of K01")));
        QVERIFY(left.detail.contains(QStringLiteral("own trial 100")));
        QCOMPARE(right.title, QStringLiteral("state 1"));
        QVERIFY(right.change.text.contains(QStringLiteral("2.00×")));
        QVERIFY(right.change.text.contains(QStringLiteral("0.1")));
        QVERIFY(right.latency.contains(QStringLiteral("50.0")));
        select(QStringLiteral("K03"));
        QVERIFY(headers[1]->heading().latency.isEmpty()); // never gated
    }

    void baselineReplacesTheParent()
    {
        select(QStringLiteral("K02"));
        m_selection->setBaseline(QStringLiteral("K00"));
        QTRY_VERIFY(m_panel->isUpToDate());
        const auto headers = m_panel->findChildren<SideHeader *>();
        QCOMPARE(headers[0]->heading().label, QStringLiteral("K00"));
        QVERIFY(headers[0]->heading().pinned);
        QVERIFY(headers[0]->heading().beside.isEmpty()); // not paired: each has its own trial's
        QVERIFY(headers[1]->heading().change.text.contains(QStringLiteral("4.00×"))); // 100 µs / 25 µs
        QCOMPARE(view()->hunkCount(), 3);
    }

    void firstStateStandsAlone()
    {
        select(QStringLiteral("K00"));
        QVERIFY(view()->document()->isSingle());
        QVERIFY(!m_panel->findChildren<SideHeader *>()[0]->isVisible());
        QVERIFY(hunks().isEmpty());
    }

    void missingFileIsSaidInPlace()
    {
        select(QStringLiteral("K04"));
        QVERIFY(view()->document()->right->message.contains(QStringLiteral("K04.cl")));
        QVERIFY(view()->document()->left->text.count() > 0); // the other side is still there
        view()->grab();
    }

    void hunksAcrossSteps()
    {
        select(QStringLiteral("K01"));
        QCOMPARE(view()->hunkCount(), 2);
        press(Qt::Key_F8);
        QCOMPARE(view()->currentHunk(), 0);
        press(Qt::Key_F8);
        QCOMPARE(view()->currentHunk(), 1);
        QCOMPARE(hunks(), QStringLiteral("Change 2 of 2"));
        press(Qt::Key_F8); // past the end: the first change of the next step
        QCOMPARE(m_selection->row(), QStringLiteral("K02"));
        QTRY_VERIFY(m_panel->isUpToDate());
        QCOMPARE(view()->currentHunk(), 0);
        press(Qt::Key_F8, Qt::ShiftModifier);
        QCOMPARE(m_selection->row(), QStringLiteral("K01"));
        QTRY_VERIFY(m_panel->isUpToDate());
        QCOMPARE(view()->currentHunk(), 1); // the last change of the step before
    }

    void theEndOfTheLineageIsSaid()
    {
        select(QStringLiteral("K00"));
        QSignalSpy messages(m_panel, &DiffPanel::message);
        press(Qt::Key_F8, Qt::ShiftModifier);
        QCOMPARE(messages.size(), 1);
        QCOMPARE(m_selection->row(), QStringLiteral("K00"));
    }

    void singleKeysToggle()
    {
        select(QStringLiteral("K01"));
        const int folded = view()->rows().count();
        press(Qt::Key_Z);
        QVERIFY(view()->rows().count() > folded);
        press(Qt::Key_Z);
        QCOMPARE(view()->rows().count(), folded);
        press(Qt::Key_U);
        QVERIFY(view()->options().unified);
        QVERIFY(!view()->geometryOfRows().isSplit);
        press(Qt::Key_U);
        QVERIFY(view()->geometryOfRows().isSplit);
    }

    void whitespaceAndMoves()
    {
        const auto moved = [&] {
            const auto &rows = view()->document()->diff.rows;
            return std::count_if(rows.begin(), rows.end(),
                                 [](const diff::Row &row) { return row.moved >= 0; });
        };
        select(QStringLiteral("K03"));
        const int hunkCount = view()->hunkCount();
        QCOMPARE(moved(), 12); // six lines, on both sides
        press(Qt::Key_W);      // the tab in "added_one" no longer counts
        QTRY_COMPARE(view()->hunkCount(), hunkCount - 1);
        press(Qt::Key_M);
        QTRY_COMPARE(moved(), 0);
    }

    void clickOnAFoldOpensIt()
    {
        select(QStringLiteral("K01"));
        view()->verticalScrollBar()->setValue(0);
        QCOMPARE(int(view()->rows().at(0).kind), int(ViewRow::Kind::Fold));
        const int before = view()->rows().count();
        const int hidden = view()->rows().at(0).rowCount;
        QTest::mouseClick(view()->viewport(), Qt::LeftButton, {}, QPoint(200, 5));
        QCOMPARE(view()->rows().count(), before + hidden - 1);
    }

    void keysMoveTheCurrentRow()
    {
        select(QStringLiteral("K01"));
        press(Qt::Key_Home, Qt::ControlModifier);
        QCOMPARE(view()->currentRow(), 0);
        press(Qt::Key_Down);
        press(Qt::Key_Down);
        QCOMPARE(view()->currentRow(), 2);
        press(Qt::Key_Up);
        QCOMPARE(view()->currentRow(), 1);
        press(Qt::Key_End, Qt::ControlModifier);
        QCOMPARE(view()->currentRow(), view()->rows().count() - 1);
        QVERIFY(!view()->accessibleDescription().isEmpty());
        press(Qt::Key_Home, Qt::ControlModifier);
        press(Qt::Key_F8);
        QVERIFY2(view()->currentRowInWords().contains(QStringLiteral("added")),
                 qPrintable(view()->currentRowInWords()));
    }

    void mouseSelectsOnOneSide()
    {
        select(QStringLiteral("K01"));
        press(Qt::Key_Z); // no folds: row n is line n at the left
        view()->verticalScrollBar()->setValue(0);
        const ViewGeometry &geometry = view()->geometryOfRows();
        const auto at = [&](int row, int x) { return QPoint(x, row * geometry.rowHeight + 4); };
        const int left = geometry.column(Side::Left).textLeft;
        QWidget *viewport = view()->viewport();
        QTest::mousePress(viewport, Qt::LeftButton, {}, at(1, left));
        QTest::mouseMove(viewport,
                         at(3, geometry.column(Side::Right).textLeft + 50)); // strays to the other side
        QTest::mouseRelease(viewport, Qt::LeftButton, {}, at(2, left));
        press(Qt::Key_C, Qt::ControlModifier);
        const QString copied = QGuiApplication::clipboard()->text();
        QVERIFY2(copied.startsWith(QStringLiteral("surface = \"opencl\"\n")), qPrintable(copied));
        QTest::mouseDClick(viewport, Qt::LeftButton, {}, at(4, left + 10));
        QCOMPARE(view()->selectedText(), QStringLiteral("kernel"));
        QTest::mouseClick(viewport, Qt::LeftButton, {}, at(4, 10)); // the gutter
        QCOMPARE(view()->selectedText(), QStringLiteral("kernel = \"toy\"\n"));
    }

    void aChosenLineIsTold()
    {
        select(QStringLiteral("K01"));
        press(Qt::Key_Z); // no folds
        view()->verticalScrollBar()->setValue(0);
        const ViewGeometry &geometry = view()->geometryOfRows();
        QSignalSpy chosen(m_panel, &DiffPanel::lineChosen);
        const auto click = [&](Side side, int row) {
            QTest::mouseClick(view()->viewport(), Qt::LeftButton, {},
                              {geometry.column(side).textLeft + 4, row * geometry.rowHeight + 4});
        };
        click(Side::Right, 2);
        QCOMPARE(chosen.size(), 1);
        QCOMPARE(chosen.constLast(), (QList<QVariant>{1, 3}));
        click(Side::Left, 4);
        QCOMPARE(chosen.constLast(), (QList<QVariant>{0, 5}));
        press(Qt::Key_Down);
        QCOMPARE(chosen.constLast(), (QList<QVariant>{0, 6})); // the side stays
        press(Qt::Key_F8);                                     // added: only the right side has it
        QCOMPARE(chosen.constLast(), (QList<QVariant>{1, 22}));
        const qsizetype before = chosen.size();
        select(QStringLiteral("K02")); // nobody's choice of a line
        m_panel->setTab(DiffTab::Plan);
        QTRY_VERIFY(m_panel->isUpToDate());
        press(Qt::Key_Down); // not of the source
        QCOMPARE(chosen.size(), before);
    }

    void aLineIsShownWhereverItIs()
    {
        select(QStringLiteral("K01"));
        QSignalSpy chosen(m_panel, &DiffPanel::lineChosen);
        QSignalSpy messages(m_panel, &DiffPanel::message);
        m_panel->showSourceLine(0, 40); // within a fold
        QCOMPARE(view()->markedLine(), (SideLine{Side::Left, 39}));
        const ViewRow &row = view()->rows().at(view()->currentRow());
        QCOMPARE(int(row.kind), int(ViewRow::Kind::Both));
        QCOMPARE(int(view()->document()->diff.rows[std::size_t(row.row)].leftLine), 39);
        const int top = view()->geometryOfRows().topOf(view()->currentRow());
        QVERIFY(top >= view()->verticalScrollBar()->value());
        QVERIFY(top < view()->verticalScrollBar()->value() + view()->viewport()->height());
        const QImage marked = view()->viewport()->grab().toImage();
        QVERIFY(chosen.isEmpty());
        press(Qt::Key_Down); // from there, and no longer marked
        QCOMPARE(chosen.constLast(), (QList<QVariant>{0, 41}));
        QVERIFY(!view()->markedLine());
        QVERIFY(view()->viewport()->grab().toImage() != marked);

        m_panel->setTab(DiffTab::Plan);
        QTRY_VERIFY(m_panel->isUpToDate());
        m_panel->showSourceLine(1, 12);
        QCOMPARE(int(m_panel->tab()), int(DiffTab::Source));
        QTRY_COMPARE(view()->markedLine(), (SideLine{Side::Right, 11}));
        QVERIFY(messages.isEmpty());
        m_panel->showSourceLine(1, 9999);
        QVERIFY(messages.constLast().constFirst().toString().contains(QStringLiteral("9999")));
        select(QStringLiteral("K00")); // stands alone
        m_panel->showSourceLine(0, 1);
        QVERIFY(messages.constLast().constFirst().toString().contains(QStringLiteral("left")));
    }

    void find()
    {
        select(QStringLiteral("K01"));
        press(Qt::Key_F, Qt::ControlModifier);
        auto *bar = m_panel->findChild<FindBar *>();
        QVERIFY(bar->isVisible());
        auto *edit = bar->findChild<QLineEdit *>();
        QTRY_VERIFY(edit->hasFocus());
        QTest::keyClicks(edit,
                         QStringLiteral("statement_5")); // 5 and 50…59, of which one is on the left alone
        QTRY_COMPARE(int(view()->matches().matches.size()), 11);
        QVERIFY(!view()->options().unified); // the u of a word is no command
        const int first = view()->currentRow();
        QTest::keyClick(edit, Qt::Key_Return);
        QCOMPARE(view()->currentMatch(), 1);
        QVERIFY(view()->currentRow() != first);
        QCOMPARE(int(view()->rows().at(view()->currentRow()).kind),
                 int(ViewRow::Kind::Both)); // not hidden in a fold
        QTest::keyClick(edit, Qt::Key_Escape);
        QVERIFY(!bar->isVisible());
        QVERIFY(view()->matches().matches.empty());
    }

    void steppingKeepsTheCodeInPlace()
    {
        press(Qt::Key_Z);
        select(QStringLiteral("K02"));
        view()->goToLine(Side::Right, 32);
        const auto lineAtThird = [&](Side side) {
            const ViewRow &row = view()->rows().at(view()->rowAt(int(view()->viewport()->height() * 0.3)));
            const int line = lineOf(view()->document()->diff.rows[std::size_t(row.row)], side);
            return std::string(view()->document()->side(side).text.line(line));
        };
        const std::string before = lineAtThird(Side::Right);
        QVERIFY(before.find("statement_") != std::string::npos);
        select(QStringLiteral("K03"));
        QCOMPARE(lineAtThird(Side::Left), before);
        select(QStringLiteral("K02"));
        QCOMPARE(lineAtThird(Side::Right), before);
        select(QStringLiteral("K01"));
        QCOMPARE(lineAtThird(Side::Right), before);
    }

    void neighboursAreReadAhead()
    {
        select(QStringLiteral("K01"));
        QTRY_VERIFY(m_panel->isAtHand(QStringLiteral("K02")));
        m_selection->setRow(QStringLiteral("K02"));
        QVERIFY(m_panel->isUpToDate()); // at once, not by a later event
        QVERIFY(m_panel->isAtHand(QStringLiteral("K02")));
        QVERIFY(!m_panel->isAtHand(QStringLiteral("K99")));
    }

    void staleDocumentsAreDropped()
    {
        for (const char *row : {"K01", "K02", "K03", "R01a", "K00", "K02"})
            m_selection->setLineage(key, QLatin1String(row));
        QTRY_VERIFY(m_panel->isUpToDate());
        QTest::qWait(100);
        QCOMPARE(m_panel->findChildren<SideHeader *>()[1]->heading().label, QStringLiteral("K02"));
        QVERIFY(view()->document()->right->text.bytes().find("third") != std::string_view::npos);
    }

    void planAndLog()
    {
        select(QStringLiteral("K01"));
        m_panel->setTab(DiffTab::Plan);
        QTRY_VERIFY(m_panel->isUpToDate());
        QVERIFY(view()->document()->right->text.bytes().find("[[launch]]") != std::string_view::npos);
        QCOMPARE(hunks(), QStringLiteral("No difference"));
        m_panel->setTab(DiffTab::Log);
        QTRY_VERIFY(m_panel->isUpToDate());
        QVERIFY(view()->document()->right->text.bytes().find("unused") != std::string_view::npos);
        QVERIFY(!view()->document()->left->message.isEmpty()); // K00's compiler said nothing
        select(QStringLiteral("R01a"));
        QVERIFY(view()->document()->right->message.contains(QStringLiteral("Ctrl+Enter")));
    }

    /// Both sides are read at the same time.
    void longTextsAreReadWhole()
    {
        const std::string texts[] = {body(0, 50'000), body(1, 50'000)};
        DiffSpec spec;
        spec.left.emplace();
        write("long-left.cl", texts[0]);
        write("long-right.cl", texts[1]);
        spec.left->file = m_folder.filePath(QStringLiteral("long-left.cl")).toStdString();
        spec.right.file = m_folder.filePath(QStringLiteral("long-right.cl")).toStdString();
        DiffLoader loader;
        QVERIFY(!loader.load(spec));
        QTRY_VERIFY_WITH_TIMEOUT(loader.has(spec), patienceMs);
        const DocumentPtr document = loader.load(spec);
        QVERIFY(document);
        QCOMPARE(document->left->text.bytes(), std::string_view(texts[0]));
        QCOMPARE(document->left->sha, files::sha256Hex(texts[0]));
        QCOMPARE(document->right->text.bytes(), std::string_view(texts[1]));
        QCOMPARE(document->right->sha, files::sha256Hex(texts[1]));
        QCOMPARE(document->diff.rows.front().kind, diff::Row::Kind::Removed);
    }

    void overviewGoesThere()
    {
        press(Qt::Key_Z);
        select(QStringLiteral("K01"));
        view()->verticalScrollBar()->setValue(0);
        auto *strip = view()->findChild<OverviewStrip *>();
        QTest::mouseClick(strip, Qt::LeftButton, {}, QPoint(5, strip->height() - 2));
        QCOMPARE(view()->verticalScrollBar()->value(), view()->verticalScrollBar()->maximum());
    }

    void paintsInBothThemes()
    {
        select(QStringLiteral("K03"));
        Theme::apply(*qobject_cast<QApplication *>(QCoreApplication::instance()), ThemeChoice::Dark);
        QTest::qWait(20);
        const QImage dark = view()->viewport()->grab().toImage();
        Theme::apply(*qobject_cast<QApplication *>(QCoreApplication::instance()), ThemeChoice::Light);
        QTest::qWait(20);
        const QImage light = view()->viewport()->grab().toImage();
        const auto blank = [](const QImage &image) {
            return image.pixelColor(image.width() / 2 - 3, image.height() - 3).lightness();
        };
        QVERIFY(blank(dark) < 128);
        QVERIFY(blank(light) > 128);
    }
};

QTEST_MAIN(TestDiffPanel)
#include "tst_diffpanel.moc"
