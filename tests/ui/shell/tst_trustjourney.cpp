// SPDX-License-Identifier: GPL-3.0-or-later
// Evidence, failures, drafts, room and exports as a person meets them in the real window.
#include "tests/paths.h"
#include "tests/ui/common/modal.h"
#include "tests/ui/common/uitest.h"
#include "tests/ui/shell/realwindow.h"
#include "ui/cards/cardeditor.h"
#include "ui/cards/cardpanel.h"
#include "ui/cards/verdictbar.h"
#include "ui/diff/diffpanel.h"
#include "ui/diff/view/diffview.h"
#include "ui/editor/editorpanel.h"
#include "ui/graph/lineageview.h"
#include "ui/highlight/codepalette.h"
#include "ui/highlight/highlightededit.h"
#include "ui/models/lineagemodel.h"
#include "ui/plots/runtrajectorypanel.h"
#include "ui/profile/samplesplot.h"
#include "ui/runs/runstore.h"
#include "ui/shell/centre.h"
#include "ui/shell/docks/dockarranger.h"
#include "ui/shell/docks/dockpanel.h"
#include "ui/shell/exporter.h"
#include "ui/style/fonts.h"
#include "ui/style/theme.h"

#include <QFile>
#include <QHeaderView>
#include <QImage>
#include <QLabel>
#include <QPushButton>
#include <QScreen>
#include <QScrollBar>
#include <QTabBar>
#include <QTextBlock>
#include <QTextBrowser>
#include <QTextLayout>

#include <qcustomplot.h>

using namespace klineage;
using namespace klineage::ui;

namespace {

void chooseTab(const RealWindow &real, const char *panel, const QString &text)
{
    auto *tabs = real.find<QTabBar>(panel);
    for (int i = 0; i < tabs->count(); ++i) {
        if (tabs->tabText(i) == text)
            QTest::mouseClick(tabs, Qt::LeftButton, Qt::NoModifier, tabs->tabRect(i).center());
    }
    QCOMPARE(tabs->tabText(tabs->currentIndex()), text);
}

QString checkLine(const RealWindow &real)
{
    for (const QLabel *label : real.window->panel(QStringLiteral("editor"))->findChildren<QLabel *>()) {
        if (label->isVisible() && (label->text().startsWith(u'✓') || label->text().startsWith(u'✕')))
            return label->text();
    }
    return {};
}

/// Of a highlighted text.
QSet<QRgb> coloursOf(const QPlainTextEdit &edit)
{
    QSet<QRgb> found;
    for (QTextBlock block = edit.document()->firstBlock(); block.isValid(); block = block.next()) {
        for (const QTextLayout::FormatRange &range : block.layout()->formats())
            found.insert(range.format.foreground().color().rgb());
    }
    return found;
}

/// Distinct formats of a highlighted text.
int colours(const QPlainTextEdit &edit)
{
    return static_cast<int>(coloursOf(edit).size());
}

} // namespace

class TestTrustJourney : public UiTest
{
    Q_OBJECT

private slots:
    /// Each claim with what was recorded: figure, interval, device, and whether it is what the card claims.
    void evidenceIsFiguresNotLinks()
    {
        const RealWindow real(QStringLiteral("softmax/sm90/K01"));
        QVERIFY(real.ready);
        QCOMPARE(real.card(), QStringLiteral("warp-per-row"));
        chooseTab(real, "card", QStringLiteral("Evidence"));
        const QString text = real.find<QTextBrowser>("card")->toPlainText();
        const lineage::Lineage &lineage = *real.window->workspace()->lineage(QStringLiteral("softmax/sm90"));
        const gate::Interval &recorded = lineage.findTrial("51aa4351d4359d48")->comparison("parent")->speedup;
        QVERIFY2(text.contains(QStringLiteral("%1×").arg(recorded.value, 0, 'f', 1)), qPrintable(text));
        QVERIFY(text.contains(QStringLiteral("NVIDIA H200")));
        QVERIFY(text.contains(QStringLiteral("✓ claimed 19.7×")));
        QVERIFY(!text.contains(QStringLiteral("not in this workspace")));
        chooseTab(real, "card", QStringLiteral("Verification"));
        QVERIFY(
            real.find<QTextBrowser>("card")->toPlainText().contains(QStringLiteral("layernorm/sm90/K00")));
    }

    /// What card lint calls an error cannot be saved in the editor either.
    void deadEvidenceCannotBeSaved()
    {
        const RealWindow real(QStringLiteral("softmax/sm90/K01"));
        QVERIFY(real.ready);
        qobject_cast<CardPanel *>(real.window->panel(QStringLiteral("card")))->edit();
        auto *editor = real.find<CardEditor>("card");
        const QString good = editor->text()->toPlainText();
        QVERIFY(good.contains(QStringLiteral("softmax/sm90/K01")));
        editor->text()->setPlainText(QString(good).replace(QStringLiteral("trial:51aa4351d4359d48"),
                                                           QStringLiteral("trial:0000000000000000")));
        QTRY_VERIFY(!editor->card());
        bool isSaid = false;
        for (const QLabel *label : editor->findChildren<QLabel *>())
            isSaid =
                isSaid || label->text().contains(QStringLiteral("names no transition, attempt or trial"));
        QVERIFY(isSaid);
        for (const QPushButton *button : editor->findChildren<QPushButton *>()) {
            if (button->text().startsWith(QLatin1String("Save")))
                QVERIFY(!button->isEnabled());
        }
        QTRY_VERIFY(colours(*editor->text()) >= 3); // highlighted, too
        chooseTab(real, "card", QStringLiteral("Carrier"));
        const auto edits = real.window->panel(QStringLiteral("card"))->findChildren<HighlightedEdit *>();
        const auto carrier = std::find_if(edits.begin(), edits.end(),
                                          [](const HighlightedEdit *edit) { return edit->isReadOnly(); });
        QVERIFY(carrier != edits.end());
        QTRY_VERIFY(colours(**carrier) >= 3);
    }

    /// The name in the history is set once, and kept.
    void theReviewersNameIsSetOnce()
    {
        const RealWindow real;
        QVERIFY(real.ready);
        QVERIFY(!CardReviewer::author().isEmpty());
        QVERIFY(CardReviewer::author() != QLatin1String("unknown"));
        real.focus("lineage");
        std::as_const(*real.window->actions()).find(QStringLiteral("card.author"))->action->trigger();
        real.type(QStringLiteral("Ada Lovelace"));
        real.press(Qt::Key_Return);
        QVERIFY(real.hasFocus("lineage"));
        real.press(Qt::Key_A);
        QVERIFY(real.written());
        QCOMPARE(real.record(real.card()).standingReview()->author, std::string("Ada Lovelace"));
        QCOMPARE(CardReviewer::author(), QStringLiteral("Ada Lovelace"));
    }

    /// The element that gave a wrong attempt away is on the screen, not in a tool tip.
    void aFailureShowsItsElements()
    {
        const RealWindow real(QStringLiteral("gemm/sm90/R07a"));
        QVERIFY(real.ready);
        const lineage::Lineage &lineage = *real.window->workspace()->lineage(QStringLiteral("gemm/sm90"));
        const auto attempt = std::find_if(lineage.attempts.begin(), lineage.attempts.end(),
                                          [](const auto &a) { return a.id == "R07a"; });
        const gate::Verdict &verdict = lineage.trialOf(*attempt)->verdict;
        const auto *failure = real.find<QLabel>("profile", QStringLiteral("failure"));
        QVERIFY(failure->isVisible());
        QVERIFY(failure->text().contains(QString::fromStdString(verdict.message)));
        QVERIFY(failure->height() >= failure->heightForWidth(failure->width()));
        for (const gate::Evidence &item : verdict.evidence)
            QVERIFY2(failure->text().contains(QString::fromStdString(item.value)), item.name.c_str());
        real.selection()->setRow(QStringLiteral("K05"));
        QVERIFY(!failure->isVisible());
    }

    /// Every series of the samples has a style of its own, and the legend lies beside the data.
    void samplesCanBeToldApart()
    {
        const RealWindow real(QStringLiteral("gemm/sm90/K08"));
        QVERIFY(real.ready);
        chooseTab(real, "profile", QStringLiteral("Samples"));
        auto *plot = real.find<SamplesPlot>("profile")->findChild<QCustomPlot *>();
        QVERIFY(plot->graphCount() >= 5);
        QSet<QPair<int, QRgb>> styles;
        for (int i = 0; i < plot->graphCount(); ++i) {
            const QCPScatterStyle style = plot->graph(i)->scatterStyle();
            styles.insert({static_cast<int>(style.shape()),
                           (style.isPenDefined() ? style.pen() : plot->graph(i)->pen()).color().rgb()});
        }
        QCOMPARE(styles.size(), plot->graphCount());
        plot->replot();
        QVERIFY(!plot->axisRect()->rect().intersects(plot->legend->outerRect()));
    }

    /// With four runs laid over each other the axes keep their room, and a plan is no speedup of zero.
    void runsKeepTheirRoomAndPlansAreNoZeros()
    {
        RealWindow real;
        const std::filesystem::path runs = std::filesystem::path(klineage::test::sourcePath())
                                           / "tests/data/experiments/cards-against-none/runs";
        std::filesystem::copy(runs, std::filesystem::path(real.folder.path().toStdString()) / "runs",
                              std::filesystem::copy_options::recursive);
        QStringList ids;
        for (const auto &entry : std::filesystem::directory_iterator(runs)) {
            if (QString::fromStdString(entry.path().filename().string()).contains(QLatin1String("klineage")))
                ids << QString::fromStdString(entry.path().filename().string());
        }
        QVERIFY(!ids.isEmpty());
        ids.sort();
        real.show(QStringLiteral("run:") + ids.first(), {1600, 1000});
        QVERIFY(real.ready);
        QTRY_VERIFY(real.window->runs()->current());
        auto *panel = real.find<RunTrajectoryPanel>("trajectory");
        QTRY_VERIFY(panel->traces().size() > 1);
        QVERIFY(panel->isVisible());
        panel->plot()->replot();
        QVERIFY2(panel->plot()->axisRect()->height() >= 100,
                 qPrintable(QString::number(panel->plot()->axisRect()->height())));
        std::size_t plans = 0;
        for (const RunTrace &trace : panel->traces()) {
            for (const RunTracePoint &point : trace.points)
                plans += point.kind == RunTracePoint::Kind::Other && point.speedup <= 0 ? 1 : 0;
        }
        QVERIFY(plans > 0); // there are some, and none is drawn:
        for (int i = 0; i < panel->plot()->graphCount(); ++i) {
            const QCPGraph *graph = panel->plot()->graph(i);
            const bool isFailures = graph->scatterStyle().shape() == QCPScatterStyle::ssTriangle
                                    || graph->scatterStyle().shape() == QCPScatterStyle::ssCross;
            for (int k = 0; !isFailures && k < graph->dataCount(); ++k)
                QVERIFY(graph->dataMainValue(k) > 0);
        }
    }

    /// A state that an H200 has proven is no error where there is no H200.
    void aProvenStateIsNoErrorWithoutItsDevice()
    {
        const RealWindow real(QStringLiteral("gemm/sm90/K10"));
        QVERIFY(real.ready);
        real.focus("lineage");
        real.press(Qt::Key_Return);
        QCOMPARE(real.window->centre()->page(), QStringLiteral("editor"));
        QTRY_VERIFY(!checkLine(real).isEmpty());
        QVERIFY2(checkLine(real).startsWith(u'✓'), qPrintable(checkLine(real)));
    }

    void draftsStayInTheirWorkspace()
    {
        RealWindow real(QStringLiteral("softmax/pocl/K02"));
        QVERIFY(real.ready);
        auto *editor = qobject_cast<EditorPanel *>(real.window->panel(QStringLiteral("editor")));
        QVERIFY(editor->openRow(QStringLiteral("softmax/pocl"), QStringLiteral("K02")));
        real.window->centre()->showPage(QStringLiteral("editor"));
        real.focus("editor");
        real.type(QStringLiteral("// mine "));
        QCOMPARE(editor->draftCount(), 1);
        const RealWindow other(QStringLiteral("softmax/pocl/K02"));
        QVERIFY(other.ready);
        QCOMPARE(qobject_cast<EditorPanel *>(other.window->panel(QStringLiteral("editor")))->draftCount(), 0);
        // Opened again, it is there.
        real.show(QStringLiteral("softmax/pocl/K02"), {1600, 1000});
        QVERIFY(real.ready);
        QCOMPARE(qobject_cast<EditorPanel *>(real.window->panel(QStringLiteral("editor")))->draftCount(), 1);
    }

    void aPaneTakesTheWholeWindowAndBack()
    {
        const RealWindow real;
        QVERIFY(real.ready);
        real.focus("diff");
        const int before = real.window->centre()->width();
        real.press(Qt::Key_F9);
        QTRY_VERIFY(real.window->centre()->width() > real.window->width() - 40);
        QVERIFY(real.hasFocus("diff"));
        QVERIFY(!real.window->panel(QStringLiteral("lineage"))->isVisible());
        real.press(Qt::Key_F9);
        QTRY_COMPARE(real.window->centre()->width(), before);
        real.focus("profile");
        real.press(Qt::Key_F9);
        QTRY_VERIFY(real.window->panel(QStringLiteral("profile"))->width() > real.window->width() - 40);
        QVERIFY(!real.window->centre()->isVisible());
        real.press(Qt::Key_1, Qt::ControlModifier | Qt::AltModifier); // the layout that is shown
        real.press(Qt::Key_2, Qt::ControlModifier | Qt::AltModifier);
        QVERIFY(real.window->centre()->isVisible());
        QVERIFY(!real.window->findChild<DockArranger *>()->isZoomed());
    }

    /// Long lines go on below themselves: nothing is beyond the edge, and a click finds the letter that is under it.
    void longLinesWrapOnWish()
    {
        const RealWindow real(QStringLiteral("gemm/sm90/K08"));
        QVERIFY(real.ready);
        real.focus("diff");
        auto *view = qobject_cast<DiffPanel *>(real.window->panel(QStringLiteral("diff")))->view();
        QVERIFY(view->horizontalScrollBar()->maximum() > 0);
        const int height = view->verticalScrollBar()->maximum();
        real.press(Qt::Key_Z, Qt::AltModifier);
        QCOMPARE(view->horizontalScrollBar()->maximum(), 0);
        QVERIFY(view->verticalScrollBar()->maximum() > height);
        const ViewGeometry &geometry = view->geometryOfRows();
        int wrapped = -1;
        for (int row = 0; row < view->rows().count() && wrapped < 0; ++row) {
            QCOMPARE(geometry.rowAt(geometry.topOf(row)), row);
            QCOMPARE(geometry.rowAt(geometry.topOf(row + 1) - 1), row);
            const diff::Row &line =
                view->document()->diff.rows[static_cast<std::size_t>(view->rows().at(row).row)];
            if (geometry.heightOf(row) > geometry.rowHeight && line.rightLine >= 0
                && view->document()->right->text.line(line.rightLine).size()
                       > static_cast<std::size_t>(geometry.wrapWidth / 7))
                wrapped = row;
        }
        QVERIFY(wrapped >= 0);
        view->verticalScrollBar()->setValue(geometry.topOf(wrapped));
        const int top = geometry.topOf(wrapped) - view->verticalScrollBar()->value();
        const int left = geometry.column(Side::Right).textLeft;
        QTest::mousePress(view->viewport(), Qt::LeftButton, {}, {left + 2, top + 4});
        QTest::mouseMove(view->viewport(), {left + 2, top + geometry.rowHeight + 4});
        QTest::mouseRelease(view->viewport(), Qt::LeftButton, {}, {left + 2, top + geometry.rowHeight + 4});
        real.press(Qt::Key_Z, Qt::AltModifier);
        QCOMPARE(view->verticalScrollBar()->maximum(), height);
    }

    /// Narrow and wide again: every column that fits is there without a nudge, at the width that its header needs.
    void noColumnStaysHidden()
    {
        const RealWindow real;
        QVERIFY(real.ready);
        auto *view = real.find<LineageView>("lineage");
        QVERIFY(!view->isColumnHidden(LineageModel::ReferenceColumn));
        for (const QSize &size : {QSize(1000, 700), QSize(1280, 800), QSize(1600, 1000)}) {
            real.window->resize(size);
            QTest::qWait(50);
            const auto shown = [view] {
                QList<int> columns;
                for (int column = 0; column < LineageModel::ColumnCount; ++column)
                    columns << (view->isColumnHidden(column) ? 0 : view->columnWidth(column));
                return columns;
            };
            const QList<int> before = shown();
            QEvent nudge(QEvent::FontChange);
            QApplication::sendEvent(view, &nudge);
            QCOMPARE(shown(), before);
        }
        const QHeaderView *header = view->horizontalHeader();
        for (int column = 1; column < LineageModel::ColumnCount; ++column) {
            if (!view->isColumnHidden(column) && column != LineageModel::GateColumn)
                QVERIFY(view->columnWidth(column) >= header->sectionSizeHint(column));
        }
    }

    void theFirstStartShowsTheLongestStory()
    {
        const RealWindow real(QString(), QSize(1280, 800));
        QVERIFY(real.ready);
        const lineage::Lineage *shown = real.window->workspace()->lineage(real.selection()->lineageKey());
        QVERIFY(shown);
        for (const lineage::Lineage &lineage : real.window->workspace()->workspace().lineages)
            QVERIFY(shown->states.size() >= lineage.states.size());
        // The card is that of the step, or none.
        const lineage::Transition *step = shown->transitionTo(real.row().toStdString());
        QCOMPARE(real.card(), step ? QString::fromStdString(step->card) : QString());
    }

    void theWindowFitsItsScreen()
    {
        // The offscreen screen has 800 pixels, which its panels side by side do not fit; tst_smallscreen has 1366.
        const MainWindow window;
        QVERIFY(window.width() <= std::max(900, window.screen()->availableSize().width()));
        QVERIFY(window.height() <= window.screen()->availableSize().height());
    }

    void withoutAWorkspaceNothingPretendsToRead()
    {
        MainWindow window;
        window.resize(1280, 800);
        window.showNoWorkspace(
            QStringLiteral("No workspace was found around /somewhere/with/quite/a/long/name."));
        window.show();
        QVERIFY(takeKeys(window));
        for (const QLabel *label : window.findChildren<QLabel *>()) {
            if (!label->isVisible() || label->visibleRegion().isEmpty() || label->text().isEmpty())
                continue;
            QVERIFY2(!label->text().contains(QLatin1String("Reading")), qPrintable(label->text()));
            if (label->wordWrap())
                QVERIFY2(label->height() >= label->heightForWidth(label->width()), qPrintable(label->text()));
        }
    }

    void theDemoHasLargerText()
    {
        const RealWindow real;
        QVERIFY(real.ready);
        const double before = QApplication::font().pointSizeF();
        real.press(Qt::Key_4, Qt::ControlModifier | Qt::AltModifier);
        QVERIFY(QApplication::font().pointSizeF() > 1.2 * before);
        real.press(Qt::Key_1, Qt::ControlModifier | Qt::AltModifier);
        QCOMPARE(QApplication::font().pointSizeF(), before);
        real.press(Qt::Key_F11);
        QVERIFY(real.window->isFullScreen());
        real.press(Qt::Key_F11);
        QVERIFY(!real.window->isFullScreen());
    }

    /// A drawing leaves light and large, without switches; afterwards the window is as before. A table leaves as numbers.
    /// The code that is being edited, and a card's carrier, change their colours with the theme, as they are painted.
    void codeFollowsTheTheme()
    {
        const RealWindow real(QStringLiteral("gemm/sm90/K08"));
        QVERIFY(real.ready);
        real.focus("lineage");
        real.press(Qt::Key_Return);
        QCOMPARE(real.window->centre()->page(), QStringLiteral("editor"));
        auto *edit = real.find<QPlainTextEdit>("editor");
        const auto isOfTheme = [edit] {
            const CodePalette palette = CodePalette::from(Theme::current());
            QSet<QRgb> known;
            for (const QColor &color : palette.tokens)
                known.insert(color.rgb());
            int seen = 0;
            for (QTextBlock block = edit->document()->firstBlock(); block.isValid(); block = block.next()) {
                for (const QTextLayout::FormatRange &range : block.layout()->formats()) {
                    if (!known.contains(range.format.foreground().color().rgb()))
                        return false;
                    ++seen;
                }
            }
            return seen > 100;
        };
        const auto hasColour = [edit](QColor color) {
            const QImage image = edit->viewport()->grab().toImage().convertToFormat(QImage::Format_RGB32);
            for (int y = 0; y < image.height(); ++y) {
                for (int x = 0; x < image.width(); ++x) {
                    if (image.pixel(x, y) == color.rgb())
                        return true;
                }
            }
            return false;
        };
        QTRY_VERIFY(isOfTheme());
        for (const ThemeChoice choice : {ThemeChoice::Dark, ThemeChoice::Light}) {
            const QColor before = CodePalette::from(Theme::current()).token(TokenStyle::Comment);
            QVERIFY(hasColour(before));
            Theme::apply(*qApp, choice);
            QTRY_VERIFY(isOfTheme());
            QTRY_VERIFY(hasColour(CodePalette::from(Theme::current()).token(TokenStyle::Comment)));
            QVERIFY(!hasColour(before));
        }
    }

    /// So do the code and the texts of a card's pages, which have their colours in them.
    void cardPagesFollowTheTheme()
    {
        const RealWindow real(QStringLiteral("gemm/sm90/K08"));
        QVERIFY(real.ready);
        const auto *page = real.find<QTextBrowser>("card");
        const auto links = [page] {
            QSet<QRgb> found;
            for (QTextBlock block = page->document()->begin(); block.isValid(); block = block.next()) {
                for (auto it = block.begin(); !it.atEnd(); ++it) {
                    const QTextCharFormat format = it.fragment().charFormat();
                    if (format.isAnchor())
                        found.insert(format.foreground().color().rgb());
                }
            }
            return found;
        };
        const auto *carrier = real.find<HighlightedEdit>("card");
        for (const ThemeChoice choice : {ThemeChoice::Dark, ThemeChoice::Light}) {
            chooseTab(real, "card", QStringLiteral("Evidence"));
            Theme::apply(*qApp, choice);
            QTRY_COMPARE(links(), QSet<QRgb>{Theme::current().accent.rgb()});
            chooseTab(real, "card", QStringLiteral("Carrier"));
            Theme::apply(*qApp, choice == ThemeChoice::Dark ? ThemeChoice::Light : ThemeChoice::Dark);
            const QColor keyword = CodePalette::from(Theme::current()).token(TokenStyle::Comment);
            QTRY_VERIFY(coloursOf(*carrier).contains(keyword.rgb()));
            Theme::apply(*qApp, choice);
        }
        // The card's text while it is edited.
        qobject_cast<CardPanel *>(real.window->panel(QStringLiteral("card")))->edit();
        const QPlainTextEdit *text = real.find<CardEditor>("card")->text();
        for (const ThemeChoice choice : {ThemeChoice::Dark, ThemeChoice::Light}) {
            Theme::apply(*qApp, choice);
            const QColor key = CodePalette::from(Theme::current()).token(TokenStyle::Key);
            QTRY_VERIFY(coloursOf(*text).contains(key.rgb()));
        }
    }

    void exportsAreForPaper()
    {
        const RealWindow real;
        QVERIFY(real.ready);
        Theme::apply(*qApp, ThemeChoice::Dark);
        QWidget *profile = real.window->panel(QStringLiteral("profile"));
        const QSize before = profile->size();
        const QString png = real.folder.filePath(QStringLiteral("p.png"));
        QCOMPARE(exportPanel(*profile, png), QString());
        const QImage image(png);
        QVERIFY(image.width() >= 2 * 960);
        QVERIFY(image.pixelColor(image.width() - 4, image.height() - 4).lightness() > 200);
        QCOMPARE(profile->size(), before);
        QVERIFY(real.find<QTabBar>("profile")->isVisible());
        QVERIFY(Theme::current().isDark);
        Theme::apply(*qApp, ThemeChoice::Light);

        const QString csv = real.folder.filePath(QStringLiteral("l.csv"));
        QCOMPARE(exportPanel(*real.window->panel(QStringLiteral("lineage")), csv), QString());
        QFile file(csv);
        QVERIFY(file.open(QIODevice::ReadOnly));
        const QString text = QString::fromUtf8(file.readAll());
        QVERIFY2(text.section(QStringLiteral("\r\n"), 0, 0).contains(QStringLiteral("latency_ns")),
                 qPrintable(text));
        QVERIFY(text.contains(QStringLiteral("speedup_to_cublaslt_paired")));
        QVERIFY(!text.contains(QStringLiteral("×,")));
        const lineage::Lineage &lineage = *real.window->workspace()->lineage(QStringLiteral("gemm/sm90"));
        const double ns = lineage.trialOf(*lineage.findState("K08"))->latencyNs.value;
        QVERIFY(text.contains(QString::number(ns, 'g', 12)));
    }
};

KLINEAGE_UI_TEST(TestTrustJourney)
#include "tst_trustjourney.moc"

#include <algorithm>
