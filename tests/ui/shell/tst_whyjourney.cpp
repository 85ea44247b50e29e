// SPDX-License-Identifier: GPL-3.0-or-later
// "Why is it faster": the explanation, the launch plan and the roofline of a step, by their keys in the real window.
#include "core/files/atomicfile.h"
#include "tests/ui/common/modal.h"
#include "tests/ui/common/uitest.h"
#include "tests/ui/shell/realwindow.h"
#include "ui/diff/view/diffview.h"
#include "ui/highlight/jobslot.h"
#include "ui/plots/roofline/rooflineplot.h"
#include "ui/profile/profilemodel.h"
#include "ui/profile/profilepanel.h"
#include "ui/profile/why/explainhtml.h"
#include "ui/profile/why/explainpage.h"
#include "ui/profile/why/launchmodel.h"
#include "ui/profile/why/launchpage.h"
#include "ui/shell/centre.h"
#include "ui/shell/commands/keymodel.h"
#include "ui/shell/exporter.h"
#include "ui/style/format.h"

#include <QRegularExpression>
#include <QSemaphore>
#include <QSignalSpy>
#include <QTabBar>
#include <QTableView>
#include <QTextBlock>
#include <QTextBrowser>
#include <QThreadPool>

#include <qcustomplot.h>

using namespace klineage;
using namespace klineage::ui;

namespace {

ProfilePanel *profileOf(const RealWindow &real)
{
    return qobject_cast<ProfilePanel *>(real.window->panel(QStringLiteral("profile")));
}

/// Clicks the first link of the page whose target begins so, where it is painted; the link.
std::optional<ExplainLink> clickLink(QTextBrowser *page, const QString &beginsWith)
{
    for (QTextBlock block = page->document()->firstBlock(); block.isValid(); block = block.next()) {
        for (auto it = block.begin(); !it.atEnd(); ++it) {
            const QString target = it.fragment().charFormat().anchorHref();
            if (!target.startsWith(beginsWith))
                continue;
            QTextCursor cursor(page->document());
            cursor.setPosition(it.fragment().position() + 1);
            page->setTextCursor(cursor);
            page->ensureCursorVisible();
            const QPoint at = page->cursorRect(cursor).center();
            QTest::mouseClick(page->viewport(), Qt::LeftButton, {}, at);
            return explainLink(target);
        }
    }
    return {};
}

QStringList linksOf(const QTextBrowser *page)
{
    QStringList links;
    for (QTextBlock block = page->document()->firstBlock(); block.isValid(); block = block.next()) {
        for (auto it = block.begin(); !it.atEnd(); ++it) {
            const QString target = it.fragment().charFormat().anchorHref();
            if (!target.isEmpty() && (links.isEmpty() || links.last() != target))
                links << target;
        }
    }
    return links;
}

/// The link that has the keyboard: empty, none has.
QString focusedLink(const QTextBrowser *page)
{
    const QTextCursor cursor = page->textCursor();
    if (!page->hasFocus() || !cursor.hasSelection())
        return {};
    QTextCursor inside(page->document());
    inside.setPosition(cursor.selectionStart() + 1);
    return inside.charFormat().anchorHref();
}

/// Into the page, and Tab by Tab to the first link whose target begins so; empty: Tab comes to none.
QString tabTo(const RealWindow &real, QTextBrowser *page, const QString &beginsWith)
{
    real.focus("library"); // a link that was followed keeps the keyboard as long as its page has it
    page->setFocus();
    for (int i = 0; i < linksOf(page).size(); ++i) {
        real.press(Qt::Key_Tab);
        const QString link = focusedLink(page);
        if (link.startsWith(beginsWith))
            return link;
    }
    return {};
}

QString launchCell(const ProfilePanel *profile, const QString &label, int column)
{
    const LaunchModel *model = profile->launches()->model();
    for (int row = 0; row < model->rowCount(); ++row) {
        if (model->index(row, 0).data().toString() == label)
            return model->index(row, column).data().toString();
    }
    return {};
}

} // namespace

class TestWhyJourney : public UiTest
{
    Q_OBJECT

private slots:
    void theKeysAreKnown()
    {
        const MainWindow window;
        KeyModel keys(window.actions());
        for (const auto &[id, key] :
             {std::pair{"profile.explain", "Alt+E"}, std::pair{"profile.launch", "Alt+L"},
              std::pair{"profile.roofline", "Alt+R"}, std::pair{"roofline.fit", "F"}}) {
            const auto *entry = std::as_const(*window.actions()).find(QLatin1String(id));
            QVERIFY2(entry, id);
            QCOMPARE(entry->action->shortcut().toString(QKeySequence::PortableText), QLatin1String(key));
            QVERIFY(window.actions()->conflicts(QLatin1String(id), entry->action->shortcut()).isEmpty());
            QVERIFY(!keys.match(keys.index(0, 0), KeyModel::IdRole, QLatin1String(id), 1, Qt::MatchExactly)
                         .isEmpty());
        }
    }

    /// Alt+E from anywhere; a cause's figure leads to its row of the table, a line to the source.
    void aCauseLeadsToItsFigureAndItsLine()
    {
        const RealWindow real(QStringLiteral("gemm/sm90/K08"));
        QVERIFY(real.ready);
        ProfilePanel *profile = profileOf(real);
        real.focus("library");
        real.press(Qt::Key_E, Qt::AltModifier);
        QVERIFY(real.settle());
        QVERIFY(real.hasFocus("profile"));
        ExplainPage *page = profile->explanation();
        QVERIFY(page->isVisible());
        const QString text = page->toPlainText();
        QVERIFY2(text.startsWith(QLatin1String("K08 is 1.125")), qPrintable(text));
        QVERIFY(text.contains(QLatin1String("paired rounds, 95 % interval")));
        QVERIFY(text.contains(QLatin1String("1. ")) && text.contains(QLatin1String("of the difference")));

        const auto metric = clickLink(page, QStringLiteral("metric:"));
        QVERIFY(metric);
        auto *table = profile->findChild<QTableView *>();
        QTRY_VERIFY(table->isVisible());
        const QModelIndexList chosen = table->selectionModel()->selectedRows();
        QCOMPARE(chosen.size(), 1);
        QCOMPARE(profile->model()->rows()[static_cast<std::size_t>(chosen.front().row())].name,
                 metric->metric);
        QVERIFY(!table->visualRect(chosen.front()).isEmpty());

        real.press(Qt::Key_E, Qt::AltModifier);
        real.window->centre()->showPage(QStringLiteral("editor"));
        QSignalSpy lines(profile, &ProfilePanel::sourceLineWanted);
        const auto line = clickLink(page, QStringLiteral("line:"));
        QVERIFY(line);
        QCOMPARE(lines.size(), 1);
        QCOMPARE(lines[0][0].toInt(), line->side);
        QCOMPARE(lines[0][1].toInt(), line->line);
        QCOMPARE(real.window->centre()->page(), QStringLiteral("diff"));
        const auto *diff = real.find<DiffView>("diff");
        QTRY_VERIFY2(diff->currentRowInWords().contains(QString::number(line->line)),
                     qPrintable(diff->currentRowInWords()));
    }

    /// There and back before the answer came, as with two quick keys: it is not taken for the answer of the step that one is back at.
    void anAnswerThatComesLateIsNotTaken()
    {
        const RealWindow real(QStringLiteral("gemm/sm90/K08"));
        QVERIFY(real.ready);
        const ProfilePanel *profile = profileOf(real);
        real.press(Qt::Key_E, Qt::AltModifier);
        QVERIFY(real.settle());
        const QString text = profile->explanation()->toPlainText();
        const QString blocks = launchCell(profile, QStringLiteral("Blocks"), LaunchModel::RightColumn);
        QVERIFY(text.startsWith(QLatin1String("K08 is")) && !blocks.isEmpty());
        for (const bool isSaid : {false, true}) {
            QSemaphore isHeld;
            const int threads = interactivePool()->maxThreadCount();
            for (int i = 0; i < threads; ++i)
                interactivePool()->start([&isHeld] { isHeld.acquire(); });
            real.selection()->setRow(QStringLiteral("K07"));
            bool isWaiting = !profile->isUpToDate();
            if (isSaid)
                isWaiting = isWaiting
                            && QTest::qWaitFor(
                                [&] {
                                    return profile->explanation()->toPlainText().startsWith(
                                        QLatin1String("Comparing"));
                                },
                                patienceMs);
            real.selection()->setRow(QStringLiteral("K08"));
            const QString atOnce = profile->explanation()->toPlainText();
            isHeld.release(threads);
            interactivePool()->waitForDone(); // so that nothing is still to come
            QCoreApplication::sendPostedEvents();
            QVERIFY(isWaiting);
            QCOMPARE(atOnce, text);
            QVERIFY(real.settle());
            QCOMPARE(profile->explanation()->toPlainText(), text);
            QCOMPARE(launchCell(profile, QStringLiteral("Blocks"), LaunchModel::RightColumn), blocks);
        }
    }

    /// A full queue is no slow memory; what reads the same before and after is no change; a line to look at has code.
    void whatWarpsWaitForIsCalledByItsName()
    {
        const RealWindow real(QStringLiteral("gemm-decode/sm90/K01"));
        QVERIFY(real.ready);
        ProfilePanel *profile = profileOf(real);
        real.press(Qt::Key_E, Qt::AltModifier);
        QVERIFY(real.settle());
        ExplainPage *page = profile->explanation();
        QVERIFY2(page->toPlainText().contains(QLatin1String("load/store")), qPrintable(page->toPlainText()));
        const lineage::Lineage &lineage =
            *real.window->workspace()->lineage(QStringLiteral("gemm-decode/sm90"));
        static const QRegularExpression same(QStringLiteral("(\\b[\\d.]+(?: [^\\s·]+)?) → \\1(?: ·|\\s|$)"));
        int lines = 0;
        for (std::size_t i = 1; i < lineage.states.size(); ++i) {
            real.selection()->setRow(QString::fromStdString(lineage.states[i].id));
            QVERIFY(real.settle());
            const QString text = page->toPlainText();
            QVERIFY2(!text.contains(QLatin1String("device memory")), qPrintable(text));
            QVERIFY2(!text.contains(same), qPrintable(text));
            for (const QString &target : linksOf(page)) {
                const auto link = explainLink(target);
                if (!link || link->line == 0)
                    continue;
                const lineage::State &state = lineage.states[link->side == 0 ? i - 1 : i];
                const auto source = files::readFile(lineage.directory / state.file, 1 << 22);
                QVERIFY(source.has_value());
                const QString line = QString::fromStdString(*source)
                                         .section(QLatin1Char('\n'), link->line - 1, link->line - 1)
                                         .trimmed();
                QVERIFY2(!line.isEmpty() && !line.startsWith(QLatin1String("//")), qPrintable(line));
                ++lines;
            }
        }
        QVERIFY(lines > 0);
    }

    /// Held through the chain, the explanation follows; the first state says that there is nothing before it.
    void itFollowsTheStep()
    {
        const RealWindow real(QStringLiteral("gemm/sm90/K05"));
        QVERIFY(real.ready);
        const ProfilePanel *profile = profileOf(real);
        real.press(Qt::Key_E, Qt::AltModifier);
        QVERIFY(real.settle());
        QVERIFY(profile->explanation()->toPlainText().startsWith(QLatin1String("K05 is 10.1")));
        real.press(Qt::Key_Right, Qt::ControlModifier);
        QVERIFY(real.settle());
        QVERIFY(profile->explanation()->toPlainText().startsWith(QLatin1String("K04 is 1.089")));
        real.selection()->setRow(QStringLiteral("K00"));
        QVERIFY(real.settle());
        QVERIFY(profile->explanation()->toPlainText().contains(QLatin1String("nothing before it")));
        real.selection()->setRow(QStringLiteral("K08"));
        real.selection()->setBaseline(QStringLiteral("K05"));
        QVERIFY(real.settle());
        QVERIFY(profile->explanation()->toPlainText().contains(QLatin1String("not paired")));
        // A lineage of a CPU has no counters: nothing is ranked, and what was kept is told.
        real.selection()->setLineage(QStringLiteral("sgemm/pocl"), QStringLiteral("K03"));
        QVERIFY(real.settle());
        const QString text = profile->explanation()->toPlainText();
        QVERIFY2(text.contains(QLatin1String("on OpenCL")) && text.contains(QLatin1String("kept its time")),
                 qPrintable(text));
        QVERIFY(!text.contains(QLatin1String("1. ")));
    }

    void launchesInNumbers()
    {
        const RealWindow real(QStringLiteral("gemm/sm90/K07"));
        QVERIFY(real.ready);
        const ProfilePanel *profile = profileOf(real);
        real.press(Qt::Key_L, Qt::AltModifier);
        QVERIFY(real.settle());
        QVERIFY(profile->launches()->isVisible() && real.hasFocus("profile"));
        QCOMPARE(launchCell(profile, QStringLiteral("Registers / thread"), LaunchModel::LeftColumn),
                 QStringLiteral("128"));
        QCOMPARE(launchCell(profile, QStringLiteral("Registers / thread"), LaunchModel::RightColumn),
                 QStringLiteral("154"));
        QCOMPARE(launchCell(profile, QStringLiteral("Registers / thread"), LaunchModel::MarkColumn),
                 QStringLiteral("≠"));
        QCOMPARE(launchCell(profile, QStringLiteral("Resident blocks / SM"), LaunchModel::RightColumn),
                 QStringLiteral("1"));
        QVERIFY(!launchCell(profile, QStringLiteral("Grid"), LaunchModel::RightColumn).isEmpty());
        QCOMPARE(launchCell(profile, QStringLiteral("Limited by"), LaunchModel::RightColumn),
                 QStringLiteral("registers + shared"));
        QVERIFY(profile->launches()->limits().contains(QLatin1String("K07: Registers (154 a thread)")));
    }

    /// Alt+R; a point chosen in the picture is the selected state everywhere, F fits, Ctrl+E's export has it.
    void theRooflineIsAPath()
    {
        const RealWindow real(QStringLiteral("gemm/sm90/K08"));
        QVERIFY(real.ready);
        const ProfilePanel *profile = profileOf(real);
        real.press(Qt::Key_R, Qt::AltModifier);
        QVERIFY(real.settle());
        RooflinePlot *roofline = profile->roofline();
        QCustomPlot *plot = roofline->plot();
        QVERIFY(plot->isVisible());
        plot->replot(QCustomPlot::rpImmediateRefresh);
        QVERIFY2(roofline->caption().startsWith(QLatin1String("K08: ")), qPrintable(roofline->caption()));
        const QString words = plot->accessibleDescription();
        QVERIFY(words.contains(QLatin1String("copy ")) && words.contains(QLatin1String("bf16 "))
                && words.contains(QLatin1String("measured on 2026-11-29")));
        const auto *lineage = real.window->workspace()->lineage(QStringLiteral("gemm/sm90"));
        QCOMPARE(roofline->namePlaces().size(), lineage->states.size());
        QVERIFY(roofline->namePlaces()[8]); // the selected one is named in any case

        const QCPRange whole = plot->xAxis->range();
        plot->xAxis->setRange(1, 2);
        real.press(Qt::Key_F);
        QCOMPARE(plot->xAxis->range().upper, whole.upper);

        plot->replot(QCustomPlot::rpImmediateRefresh);
        QPoint at;
        for (int x = 0; x < plot->width() && at.isNull(); ++x) {
            for (int y = 0; y < plot->height() && at.isNull(); ++y) {
                if (roofline->pointAt({x, y}) == QLatin1String("K01"))
                    at = {x, y};
            }
        }
        QVERIFY(!at.isNull());
        QTest::mouseMove(plot, at);
        QTRY_COMPARE(real.selection()->hovered(), QStringLiteral("K01"));
        QTest::mouseClick(plot, Qt::LeftButton, {}, at);
        QCOMPARE(real.row(), QStringLiteral("K01"));
        QVERIFY(real.settle());
        const QString svg = real.folder.filePath(QStringLiteral("roofline.svg"));
        QCOMPARE(exportPanel(*real.window->panel(QStringLiteral("profile")), svg), QString());
        const auto drawing = files::readFile(svg.toStdString(), 1 << 24);
        QVERIFY(drawing && drawing->find(">K01<") != std::string::npos);
        QVERIFY(drawing->find("bf16 ") != std::string::npos);
    }

    /// A step fills the view that is seen, and another view when it is chosen.
    void viewsAreFilledWhenTheyAreSeen()
    {
        const RealWindow real(QStringLiteral("gemm/sm90/K08"));
        QVERIFY(real.ready);
        const RooflinePlot *roofline = profileOf(real)->roofline();
        QVERIFY2(roofline->caption().isEmpty(), qPrintable(roofline->caption()));
        real.press(Qt::Key_R, Qt::AltModifier);
        QVERIFY2(roofline->caption().startsWith(QLatin1String("K08: ")), qPrintable(roofline->caption()));
        real.press(Qt::Key_Right, Qt::ControlModifier);
        QCOMPARE(real.row(), QStringLiteral("K07"));
        QVERIFY2(roofline->caption().startsWith(QLatin1String("K07: ")), qPrintable(roofline->caption()));
        real.press(Qt::Key_E, Qt::AltModifier);
        real.press(Qt::Key_Right, Qt::ControlModifier);
        QCOMPARE(real.row(), QStringLiteral("K06"));
        QVERIFY2(roofline->caption().startsWith(QLatin1String("K07: ")), qPrintable(roofline->caption()));
        real.press(Qt::Key_R, Qt::AltModifier);
        QVERIFY2(roofline->caption().startsWith(QLatin1String("K06: ")), qPrintable(roofline->caption()));
    }

    /// A finding leads to its figure and to the line where samples show it, as a cause does.
    void findingsLeadToFiguresAndLines()
    {
        const RealWindow real(QStringLiteral("gemm/sm90/K08"));
        QVERIFY(real.ready);
        ProfilePanel *profile = profileOf(real);
        auto *tabs = profile->findChild<QTabBar *>(QStringLiteral("profileViews"));
        const auto open = [&] {
            for (int i = 0; i < tabs->count(); ++i) {
                if (tabs->tabText(i) == QLatin1String("Findings"))
                    tabs->setCurrentIndex(i);
            }
        };
        open();
        QTextBrowser *page = nullptr;
        for (QTextBrowser *browser : profile->findChildren<QTextBrowser *>()) {
            if (browser->isVisible())
                page = browser;
        }
        QVERIFY(page);
        const auto metric = clickLink(page, QStringLiteral("metric:"));
        QVERIFY(metric);
        auto *table = profile->findChild<QTableView *>();
        QTRY_VERIFY(table->isVisible());
        const QModelIndexList chosen = table->selectionModel()->selectedRows();
        QCOMPARE(chosen.size(), 1);
        QCOMPARE(profile->model()->rows()[static_cast<std::size_t>(chosen.front().row())].name,
                 metric->metric);
        open();
        real.window->centre()->showPage(QStringLiteral("editor"));
        const auto line = clickLink(page, QStringLiteral("line:"));
        QVERIFY(line);
        QCOMPARE(line->side, 1);
        QCOMPARE(real.window->centre()->page(), QStringLiteral("diff"));
        const auto *diff = real.find<DiffView>("diff");
        QTRY_VERIFY2(diff->currentRowInWords().contains(QString::number(line->line)),
                     qPrintable(diff->currentRowInWords()));

        // By keys too. The link that was clicked has the keyboard; it is the last one, so that Tab leaves the page and Shift+Tab goes back.
        QVERIFY(takeKeys(*real.window));
        const QStringList links = linksOf(page);
        QCOMPARE(focusedLink(page), links.back());
        real.press(Qt::Key_Backtab);
        QCOMPARE(focusedLink(page), links[links.size() - 2]);
        real.press(Qt::Key_Return);
        QTRY_VERIFY(table->isVisible());
        open();
        // Tab goes from link to link from the first on, Return follows the one that it is at.
        real.focus("library");
        page->setFocus();
        for (const QString &link : links) {
            real.press(Qt::Key_Tab);
            QCOMPARE(focusedLink(page), link);
        }
        real.window->centre()->showPage(QStringLiteral("editor"));
        const auto byKeys = explainLink(tabTo(real, page, QStringLiteral("line:")));
        QVERIFY(byKeys);
        real.press(Qt::Key_Return);
        QTRY_COMPARE(real.window->centre()->page(), QStringLiteral("diff"));
        QTRY_VERIFY2(diff->currentRowInWords().contains(QString::number(byKeys->line)),
                     qPrintable(diff->currentRowInWords()));
        const auto figure = explainLink(tabTo(real, page, QStringLiteral("metric:")));
        QVERIFY(figure);
        real.press(Qt::Key_Return);
        QTRY_VERIFY(table->isVisible());
        QCOMPARE(profile->model()
                     ->rows()[static_cast<std::size_t>(table->selectionModel()->selectedRows().front().row())]
                     .name,
                 figure->metric);
    }

    /// The explanation's links by keys.
    void aCauseIsFollowedByKeys()
    {
        const RealWindow real(QStringLiteral("gemm/sm90/K08"));
        QVERIFY(real.ready);
        ProfilePanel *profile = profileOf(real);
        real.press(Qt::Key_E, Qt::AltModifier);
        QVERIFY(real.settle());
        ExplainPage *page = profile->explanation();
        QVERIFY(page->hasFocus());
        const auto line = explainLink(tabTo(real, page, QStringLiteral("line:")));
        QVERIFY(line);
        QSignalSpy lines(profile, &ProfilePanel::sourceLineWanted);
        real.press(Qt::Key_Return);
        QTRY_COMPARE(lines.size(), 1);
        QCOMPARE(lines[0][1].toInt(), line->line);
        QVERIFY(explainLink(tabTo(real, page, QStringLiteral("metric:"))));
        real.press(Qt::Key_Return);
        QTRY_VERIFY(profile->findChild<QTableView *>()->isVisible());
    }

    /// What the gate took stands below the metrics, stage by stage.
    void stagesOfTheGateHaveTheirSeconds()
    {
        RealWindow real(QStringLiteral("gemm/sm90/K08"));
        QVERIFY(real.ready);
        Workspace timed = real.window->workspace()->workspace();
        for (lineage::Lineage &lineage : timed.lineages) {
            for (gate::Trial &trial : lineage.trials)
                trial.stages = {};
        }
        const auto shown = [&](const QString &label, int column) {
            const ProfileModel *model = profileOf(real)->model();
            for (int row = 0; row < model->rowCount(); ++row) {
                if (model->index(row, ProfileModel::MetricColumn).data().toString() == label)
                    return model->index(row, column).data().toString();
            }
            return QString();
        };
        real.window->workspace()->setWorkspace(timed);
        QVERIFY(real.settle());
        QCOMPARE(shown(QStringLiteral("Gate: compile"), ProfileModel::RightColumn), QString());
        for (lineage::Lineage &lineage : timed.lineages) {
            for (gate::Trial &trial : lineage.trials)
                trial.stages = {0.05, 0.34, 0.25, 0.37, 1.01};
        }
        real.window->workspace()->setWorkspace(timed);
        QVERIFY(real.settle());
        QCOMPARE(shown(QStringLiteral("Gate: compile"), ProfileModel::RightColumn),
                 formatQuantity(0.34, QStringLiteral("s")));
        QCOMPARE(shown(QStringLiteral("Gate: profile"), ProfileModel::LeftColumn),
                 formatQuantity(1.01, QStringLiteral("s")));
        QCOMPARE(shown(QStringLiteral("Gate: start"), ProfileModel::ChangeColumn).isEmpty(), false);
        // Last of all, and never an improvement.
        const auto &rows = profileOf(real)->model()->rows();
        QCOMPARE(rows.back().name, QStringLiteral("stage_profile"));
        QCOMPARE(rows.back().direction(), 0);
    }

    /// Behind each picture of the panel is a table, which Ctrl+E writes as CSV.
    void picturesHaveTheirNumbers()
    {
        const RealWindow real(QStringLiteral("gemm/sm90/K08"));
        QVERIFY(real.ready);
        QWidget *panel = real.window->panel(QStringLiteral("profile"));
        panel->window()->resize(1900, 1100);
        const auto csv = [&](const QString &name) {
            const QString file = real.folder.filePath(name);
            const QString problem = exportPanel(*panel, file);
            if (!problem.isEmpty())
                return problem;
            return QString::fromStdString(files::readFile(file.toStdString(), 1 << 22).value_or(""));
        };
        real.press(Qt::Key_R, Qt::AltModifier);
        QVERIFY(real.settle());
        const QString roofline = csv(QStringLiteral("roofline.csv"));
        QVERIFY2(roofline.startsWith(QLatin1String("name,kind,flop_per_")), qPrintable(roofline.left(200)));
        QVERIFY2(roofline.contains(QLatin1String("\r\nK00,")), qPrintable(roofline.left(400)));
        QVERIFY(roofline.contains(QLatin1String("ceiling of bytes")));
        auto *tabs = panel->findChild<QTabBar *>(QStringLiteral("profileViews"));
        tabs->setCurrentIndex(tabs->count() - 1);
        QCOMPARE(tabs->tabText(tabs->currentIndex()), QStringLiteral("Samples"));
        const QString samples = csv(QStringLiteral("samples.csv"));
        QVERIFY2(samples.startsWith(QLatin1String("round,candidate_ns")), qPrintable(samples.left(200)));
        const lineage::Lineage &lineage = *real.window->workspace()->lineage(QStringLiteral("gemm/sm90"));
        const gate::Trial *trial = lineage.trialOf(*lineage.findState("K08"));
        QCOMPARE(samples.count(QLatin1String("\r\n")),
                 static_cast<qsizetype>(trial->samples.front().ns.size()) + 1);
        // Pictures leave without it.
        const QString svg = real.folder.filePath(QStringLiteral("samples.svg"));
        QCOMPARE(exportPanel(*panel, svg), QString());
        const auto drawing = files::readFile(svg.toStdString(), 1 << 24);
        QVERIFY(drawing && drawing->find(">Round<") != std::string::npos);
        const auto plots = panel->findChildren<QCustomPlot *>();
        QVERIFY(std::any_of(plots.begin(), plots.end(), [](const QCustomPlot *plot) {
            return plot->accessibleName() == QLatin1String("Raw samples, round by round")
                   && plot->accessibleDescription().contains(QLatin1String("median"));
        }));
    }

    /// Where no roofline was recorded, the picture says so.
    void withoutCeilingsThereIsASentence()
    {
        RealWindow real(QStringLiteral("gemm/sm90/K08"));
        QVERIFY(real.ready);
        Workspace bare = real.window->workspace()->workspace();
        for (lineage::Lineage &lineage : bare.lineages) {
            for (gate::Trial &trial : lineage.trials)
                std::erase_if(trial.environment.facts,
                              [](const auto &fact) { return fact.first.starts_with("roofline_"); });
        }
        real.window->workspace()->setWorkspace(bare);
        real.press(Qt::Key_R, Qt::AltModifier);
        QVERIFY(real.settle());
        const RooflinePlot *roofline = profileOf(real)->roofline();
        QVERIFY(!roofline->plot()->isVisible());
        QVERIFY(roofline->plot()->accessibleDescription().contains(QLatin1String("what its device can do")));
    }

    /// The tabs can all be reached where the dock is narrow.
    void narrowDocksKeepTheirTabs()
    {
        const RealWindow real(QStringLiteral("gemm/sm90/K08"), QSize(1280, 800));
        QVERIFY(real.ready);
        const auto *tabs = real.find<QTabBar>("profile");
        QVERIFY(tabs->width() <= profileOf(real)->width());
        real.press(Qt::Key_R, Qt::AltModifier);
        QCOMPARE(tabs->tabText(tabs->currentIndex()), QStringLiteral("Roofline"));
        QVERIFY(tabs->rect().contains(tabs->tabRect(tabs->currentIndex()).center()));
    }
};

KLINEAGE_UI_TEST(TestWhyJourney)
#include "tst_whyjourney.moc"
