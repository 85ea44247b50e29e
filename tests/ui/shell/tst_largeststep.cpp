// SPDX-License-Identifier: GPL-3.0-or-later
// A reader finds gemm's largest step, what it needs and its cause in the real window, in six actions at most: a key, or a word that is typed.
#include "core/lineage/largeststeps.h"
#include "tests/ui/common/sample.h"
#include "tests/ui/common/uitest.h"
#include "tests/ui/shell/realwindow.h"
#include "ui/profile/profilepanel.h"
#include "ui/profile/why/explainpage.h"
#include "ui/shell/commands/quickopen.h"
#include "ui/story/picture/picturecanvas.h"
#include "ui/story/storypanel.h"
#include "ui/style/format.h"

#include <QHelpEvent>
#include <QLabel>
#include <QStatusBar>
#include <QTextBrowser>
#include <QToolTip>

using namespace klineage;
using namespace klineage::ui;

namespace {

constexpr int mostActions = 6;

/// What is to be read on a panel without doing anything more.
QString visibleText(const QWidget *panel)
{
    QString text;
    for (const QTextBrowser *browser : panel->findChildren<QTextBrowser *>()) {
        if (browser->isVisible())
            text += browser->toPlainText() + QLatin1Char('\n');
    }
    return text;
}

} // namespace

class TestLargestStep : public UiTest
{
    Q_OBJECT

private slots:
    void mostGainFirst()
    {
        Workspace workspace = sampleWorkspace();
        lineage::Lineage &lineage = workspace.lineages[0];
        for (gate::Trial &trial : lineage.trials) {
            if (trial.id == "tK02")
                trial.verdict.comparisons.front().speedup = {5, 4.9, 5.1};
        }
        const auto steps = lineage::largestSteps(lineage);
        QCOMPARE(steps.size(), std::size_t{3}); // K00 has no parent; attempts and branches are no steps
        QCOMPARE(steps[0].to, std::string("K02"));
        QCOMPARE(steps[0].from, std::string("K01"));
        QCOMPARE(steps[0].speedup.value, 5.0);
        QCOMPARE(lineage::largestStepAfter(steps, "K00"), &steps[0]);
        QCOMPARE(lineage::largestStepAfter(steps, "R02a"), &steps[0]);
        QCOMPARE(lineage::largestStepAfter(steps, "K02"), &steps[1]);
        QCOMPARE(lineage::largestStepAfter(steps, steps.back().to), &steps[0]);
        QVERIFY(!lineage::largestStepAfter(lineage::largestSteps(workspace.lineages[1]), "K00"));
    }

    /// From the first start of the window, whatever lineage it opens on.
    void aReaderFindsItAndWhy()
    {
        const RealWindow real{QString()};
        QVERIFY(real.ready);
        int actions = 0;
        const auto press = [&](Qt::Key key, Qt::KeyboardModifiers modifiers = {}) {
            real.press(key, modifiers);
            ++actions;
        };
        press(Qt::Key_P, Qt::ControlModifier);
        QVERIFY(real.window->findChild<QuickOpen *>()->isVisible());
        real.type(QStringLiteral("gemm/sm90"));
        ++actions;
        press(Qt::Key_Return);
        QCOMPARE(real.selection()->lineageKey(), QStringLiteral("gemm/sm90"));
        press(Qt::Key_G, Qt::AltModifier);
        const lineage::Lineage &gemm = *real.window->workspace()->lineage(QStringLiteral("gemm/sm90"));
        double most = 0;
        std::string where;
        for (const lineage::State &state : gemm.states) {
            const gate::Comparison *parent = gemm.trialOf(state)->comparison("parent");
            if (parent && parent->speedup.value > most) {
                most = parent->speedup.value;
                where = state.id;
            }
        }
        QCOMPARE(real.row(), QString::fromStdString(where));
        bool isTold = false;
        for (const QLabel *label : real.window->statusBar()->findChildren<QLabel *>())
            isTold = isTold || label->toolTip().contains(QLatin1String("steps by what it gained"));
        QVERIFY(isTold);

        // What it needs: the card of the step is there, with its preconditions.
        const lineage::Transition *step = gemm.transitionTo(where);
        QVERIFY(step && !step->card.empty());
        QCOMPARE(real.card(), QString::fromStdString(step->card));
        QVERIFY(real.settle());
        const QString card = visibleText(real.window->panel(QStringLiteral("card")));
        const skills::Card &recorded = real.record(real.card()).card;
        QVERIFY(!recorded.preconditions.empty());
        for (const skills::Claim &needed : recorded.preconditions)
            QVERIFY2(card.contains(QString::fromStdString(needed.text).simplified().left(40)),
                     qPrintable(card));

        // Its cause.
        press(Qt::Key_E, Qt::AltModifier);
        QVERIFY(real.settle());
        const auto *profile = qobject_cast<ProfilePanel *>(real.window->panel(QStringLiteral("profile")));
        QVERIFY(profile->explanation()->isVisible());
        const QString why = profile->explanation()->toPlainText();
        QVERIFY2(why.startsWith(QString::fromStdString(where) + QStringLiteral(" is ")), qPrintable(why));
        QVERIFY2(why.contains(QLatin1String("1. ")) && why.contains(QLatin1String("of the difference")),
                 qPrintable(why));
        QVERIFY2(actions <= mostActions, qPrintable(QString::number(actions)));
    }

    /// What the mouse was left on is not lit any more, nor is its tool tip there, when keys go elsewhere.
    void goingOnLeavesNoHover()
    {
        const RealWindow real(QStringLiteral("gemm/sm90/K08"));
        QVERIFY(real.ready);
        QVERIFY(real.window->showStory(QStringLiteral("waterfall")));
        QVERIFY(real.settle());
        real.focus("story");
        PictureCanvas *canvas =
            qobject_cast<StoryPanel *>(real.window->panel(QStringLiteral("story")))->canvas();
        const int item = canvas->picture().itemOf(QStringLiteral("gemm/sm90"), QStringLiteral("K03"));
        QVERIFY(item >= 0);
        const QPoint at = canvas->pixelOf(item).toPoint();
        QTest::mouseMove(canvas, at);
        QCOMPARE(real.selection()->hovered(), QStringLiteral("K03"));
        QHelpEvent help(QEvent::ToolTip, at, canvas->mapToGlobal(at)); // as when the mouse rests
        QApplication::sendEvent(canvas, &help);
        QVERIFY(QToolTip::isVisible());
        auto *list = real.find<LineageView>("lineage");
        QVERIFY(list->litRow() >= 0);
        real.press(Qt::Key_G, Qt::AltModifier);
        QVERIFY(real.row() != QLatin1String("K08"));
        QCOMPARE(real.selection()->hovered(), QString());
        QCOMPARE(canvas->hovered(), -1);
        QCOMPARE(list->litRow(), -1);
        QTRY_VERIFY(!QToolTip::isVisible());
        // A click selects what is pointed at, which stays lit.
        QTest::mouseClick(canvas, Qt::LeftButton, {}, at);
        QCOMPARE(real.row(), QStringLiteral("K03"));
        QCOMPARE(real.selection()->hovered(), QStringLiteral("K03"));
    }

    /// Of all lineages: what the list says of each step is what was recorded, and Enter goes there.
    void thoseOfAllLineages()
    {
        const RealWindow real(QStringLiteral("softmax/sm90/K03"));
        QVERIFY(real.ready);
        const auto &lineages = real.window->workspace()->workspace().lineages;
        const auto steps = lineage::largestSteps(lineages);
        std::size_t count = 0;
        for (const lineage::Lineage &lineage : lineages) {
            const auto own = lineage::largestSteps(lineage);
            count += own.size();
            if (!own.empty())
                QVERIFY(own.front().speedup.value <= steps.front().step.speedup.value);
        }
        QCOMPARE(steps.size(), count);
        real.focus("diff");
        real.press(Qt::Key_P, Qt::ControlModifier | Qt::ShiftModifier); // the palette knows it
        real.type(QStringLiteral("largest steps of all"));
        real.press(Qt::Key_Return);
        const auto *list = real.window->findChild<QuickOpen *>();
        QVERIFY(list->isVisible());
        QVERIFY(list->field()->placeholderText().contains(QStringLiteral("paired")));
        const auto &[lineage, step] = steps.front();
        const QuickEntry &first = list->model()->entry(0);
        QCOMPARE(first.title, QStringLiteral("%1/%2 → %3")
                                  .arg(QString::fromStdString(lineage->key()),
                                       QString::fromStdString(step.from), QString::fromStdString(step.to)));
        QVERIFY(first.detail.startsWith(QString::fromStdString(step.device)));
        QCOMPARE(first.key, QStringLiteral("%1 [%2, %3]")
                                .arg(formatSpeedup(step.speedup.value), formatSpeedup(step.speedup.low),
                                     formatSpeedup(step.speedup.high)));
        real.press(Qt::Key_Return);
        QCOMPARE(real.selection()->lineageKey(), QString::fromStdString(lineage->key()));
        QCOMPARE(real.row(), QString::fromStdString(step.to));
        QVERIFY(real.hasFocus("lineage"));
        // By its key, narrowed to a lineage: by gain there too.
        real.press(Qt::Key_G, Qt::AltModifier | Qt::ShiftModifier);
        real.type(QStringLiteral("gemm/sm90/"));
        real.press(Qt::Key_Down);
        const auto gemm =
            lineage::largestSteps(*real.window->workspace()->lineage(QStringLiteral("gemm/sm90")));
        real.press(Qt::Key_Return);
        QCOMPARE(real.selection()->lineageKey(), QStringLiteral("gemm/sm90"));
        QCOMPARE(real.row(), QString::fromStdString(gemm[1].to));
    }

    /// Once more goes on to the next largest; the palette knows the command.
    void onceMoreGoesOn()
    {
        const RealWindow real;
        QVERIFY(real.ready);
        const auto steps =
            lineage::largestSteps(*real.window->workspace()->lineage(QStringLiteral("gemm/sm90")));
        real.focus("diff");
        real.press(Qt::Key_G, Qt::AltModifier);
        QCOMPARE(real.row(), QString::fromStdString(steps.front().to)); // wherever it began
        real.press(Qt::Key_P, Qt::ControlModifier | Qt::ShiftModifier);
        real.type(QStringLiteral("go to the largest step"));
        real.press(Qt::Key_Return);
        QCOMPARE(real.row(), QString::fromStdString(steps[1].to));
        real.selection()->setRow(QStringLiteral("K09")); // another row than it went to
        real.press(Qt::Key_G, Qt::AltModifier);
        QCOMPARE(real.row(), QString::fromStdString(steps.front().to));
    }
};

KLINEAGE_UI_TEST(TestLargestStep)
#include "tst_largeststep.moc"
