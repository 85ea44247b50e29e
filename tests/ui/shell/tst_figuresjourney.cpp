// SPDX-License-Identifier: GPL-3.0-or-later
// What the numbers of the window say: against what, paired or not, and how a step is called.
#include "tests/ui/common/uitest.h"
#include "tests/ui/shell/realwindow.h"
#include "ui/diff/sideheader.h"
#include "ui/graph/lineagedelegate.h"
#include "ui/graph/lineageview.h"
#include "ui/models/lineagemodel.h"
#include "ui/plots/trajectorypanel.h"
#include "ui/profile/profilemodel.h"
#include "ui/profile/profilepanel.h"
#include "ui/profile/why/explainpage.h"
#include "ui/story/picture/picturecanvas.h"
#include "ui/story/storypanel.h"
#include "ui/style/format.h"
#include "ui/style/theme.h"

#include <QHeaderView>
#include <QImage>
#include <QLabel>
#include <QTableView>

#include <qcustomplot.h>

#include <algorithm>

using namespace klineage;
using namespace klineage::ui;

namespace {

QString cell(const RealWindow &real, const QString &row, int column)
{
    const auto *view = real.find<LineageView>("lineage");
    const auto *model = qobject_cast<LineageModel *>(view->model());
    return model->index(model->rowOf(row), column).data().toString();
}

} // namespace

class TestFiguresJourney : public UiTest
{
    Q_OBJECT

private slots:
    /// One reference for the whole column, named in its header; each cell is the paired ratio to that one.
    void aColumnComparesWithOneReference()
    {
        const RealWindow real;
        QVERIFY(real.ready);
        const auto *view = real.find<LineageView>("lineage");
        QCOMPARE(view->model()->headerData(LineageModel::ReferenceColumn, Qt::Horizontal).toString(),
                 QStringLiteral("vs cublaslt"));
        QVERIFY(!view->isColumnHidden(LineageModel::ReferenceColumn));
        const lineage::Lineage &lineage = *real.window->workspace()->lineage(QStringLiteral("gemm/sm90"));
        for (const lineage::State &state : lineage.states)
            QCOMPARE(cell(real, QString::fromStdString(state.id), LineageModel::ReferenceColumn),
                     formatSpeedup(lineage.trialOf(state)->comparison("cublaslt")->speedup.value));
        QVERIFY(cell(real, QStringLiteral("K08"), LineageModel::ReferenceColumn)
                    .startsWith(QStringLiteral("0.88")));
    }

    /// Latency changes by the same amount in lineage, diff heading and profile: that of the paired rounds.
    void oneStepHasOneChange()
    {
        const RealWindow real(QStringLiteral("gemm/sm90/K08"));
        QVERIFY(real.ready);
        const lineage::Lineage &lineage = *real.window->workspace()->lineage(QStringLiteral("gemm/sm90"));
        const gate::Comparison &paired = *lineage.trialOf(*lineage.findState("K08"))->comparison("parent");
        const QString step = formatPercent(1 / paired.speedup.value - 1);
        QCOMPARE(cell(real, QStringLiteral("K08"), LineageModel::ChangeColumn), step);
        const auto *profile = qobject_cast<ProfilePanel *>(real.window->panel(QStringLiteral("profile")));
        QCOMPARE(profile->model()->rows().front().name, QStringLiteral("latency"));
        QCOMPARE(profile->model()->index(0, ProfileModel::ChangeColumn).data().toString(), step);
        bool isHeading = false;
        for (const SideHeader *header :
             real.window->panel(QStringLiteral("diff"))->findChildren<SideHeader *>())
            isHeading =
                isHeading || header->heading().change.text.contains(formatSpeedup(paired.speedup.value));
        QVERIFY(isHeading);
    }

    /// What stands at the left of a step was timed beside its right side, which is not its own trial: the heading says which it is.
    void aTimeSaysBesideWhatItWasTaken()
    {
        const RealWindow real(QStringLiteral("gemm/sm90/K08"));
        QVERIFY(real.ready);
        const lineage::Lineage &lineage = *real.window->workspace()->lineage(QStringLiteral("gemm/sm90"));
        const gate::Comparison &paired = *lineage.trialOf(*lineage.findState("K08"))->comparison("parent");
        const auto headers = real.window->panel(QStringLiteral("diff"))->findChildren<SideHeader *>();
        QCOMPARE(headers.size(), 2);
        QCOMPARE(headers[0]->heading().latency, formatLatency(paired.otherNs));
        QCOMPARE(headers[0]->heading().beside, QStringLiteral("beside K08"));
        QVERIFY(headers[1]->heading().beside.isEmpty());
        // It is painted where there is room for it.
        const QImage with = headers[0]->grab().toImage();
        SideHeading plain = headers[0]->heading();
        plain.beside.clear();
        headers[0]->setHeading(plain);
        QVERIFY(headers[0]->grab().toImage() != with);
    }

    /// Whose machine was busy is said in the profile as well, before the device; the workspace that ships has such trials.
    void aBusyMachineIsSaid()
    {
        const RealWindow real(QStringLiteral("sgemm-bias/pocl/K01"));
        QVERIFY(real.ready);
        const auto *view = real.find<LineageView>("lineage");
        QVERIFY(view->currentIndex()
                    .data(Qt::ToolTipRole)
                    .toString()
                    .contains(QStringLiteral("The machine was busy: a load of 5.")));
        const auto labels = real.window->panel(QStringLiteral("profile"))->findChildren<QLabel *>();
        QVERIFY(std::any_of(labels.begin(), labels.end(), [](const QLabel *label) {
            return label->toolTip().startsWith(QStringLiteral("! busy machine (load 5."));
        }));
    }

    /// A branch says what it was, what came of it and when; at least the first of it is not cut.
    void titlesOfBranchesAreWhole_data()
    {
        QTest::addColumn<QString>("key");
        for (const char *key : {"fmha/sm90", "gemm/sm90", "sgemm/pocl"})
            QTest::newRow(key) << key;
    }

    void titlesOfBranchesAreWhole()
    {
        QFETCH(QString, key);
        const RealWindow real(key + QStringLiteral("/K00"));
        QVERIFY(real.ready);
        const auto *view = real.find<LineageView>("lineage");
        const auto *model = qobject_cast<LineageModel *>(view->model());
        const auto *delegate = qobject_cast<LineageDelegate *>(view->itemDelegate());
        const int room = view->columnWidth(LineageModel::StepColumn) - delegate->titleLeft() - 4;
        int branches = 0;
        for (const LineageRow &row : model->rows()) {
            if (row.kind != lineage::TableRow::Kind::Branch)
                continue;
            ++branches;
            QCOMPARE(row.label, QStringLiteral("tried"));
            QVERIFY(row.title.contains(titleSeparator()));
            QVERIFY2(view->fontMetrics().horizontalAdvance(row.title.section(titleSeparator(), 0, 0)) <= room,
                     qPrintable(QStringLiteral("%1 in %2 px").arg(row.title).arg(room)));
        }
        QVERIFY(branches > 0);
    }

    /// A branch of a tuned or rederived kernel says so, in the list and in its tool tip.
    void branchesSayWhatWasTried()
    {
        const RealWindow real(QStringLiteral("gemm/sm90/K05"));
        QVERIFY(real.ready);
        const auto *view = real.find<LineageView>("lineage");
        const auto *model = qobject_cast<LineageModel *>(view->model());
        int tuned = -1;
        for (std::size_t i = 0; i < model->rows().size(); ++i) {
            const LineageRow &row = model->rows()[i];
            if (row.kind == lineage::TableRow::Kind::Branch && row.title.startsWith(QLatin1String("STAGES ")))
                tuned = static_cast<int>(i);
        }
        QVERIFY(tuned >= 0);
        QVERIFY(model->rows()[static_cast<std::size_t>(tuned)].title.contains(QStringLiteral(" · gain ")));
        QVERIFY(model->index(tuned, 0)
                    .data(Qt::ToolTipRole)
                    .toString()
                    .startsWith(QStringLiteral("Tried from K")));
    }

    /// A trial of another device stands in the graph beside the recorded ones, and in no column and on no axis with them.
    void devicesShareNoColumn()
    {
        const RealWindow real(QStringLiteral("gemm/sm90/K08"));
        QVERIFY(real.ready);
        Workspace changed = real.window->workspace()->workspace();
        for (lineage::Lineage &lineage : changed.lineages) {
            if (lineage.key() != "gemm/sm90")
                continue;
            gate::Trial trial = *lineage.trialOf(*lineage.findState("K08"));
            trial.id = "feedfacefeedface";
            trial.environment.device = "AMD EPYC 7R13";
            trial.latencyNs = {5e6, 4.9e6, 5.1e6};
            lineage.trials.push_back(trial);
            lineage.branches.push_back({trial.id, "K08", "branches/feedface.cu"});
        }
        const QString key = QStringLiteral("gemm/sm90");
        const QString row = QStringLiteral("trial:feedfacefeedface");
        const auto *trajectory = real.find<TrajectoryPanel>("trajectory");
        const std::size_t drawn = trajectory->trajectory().points.size();
        real.window->workspace()->setWorkspace(changed);
        QVERIFY(real.settle());

        const QString latency = cell(real, row, LineageModel::LatencyColumn);
        QVERIFY2(latency.contains(formatLatency(5e6)) && latency.endsWith(QLatin1String("on AMD EPYC 7R13")),
                 qPrintable(latency));
        for (const int column :
             {LineageModel::ChangeColumn, LineageModel::BaselineColumn, LineageModel::ReferenceColumn})
            QCOMPARE(cell(real, row, column), QString());
        const auto *view = real.find<LineageView>("lineage");
        QVERIFY(view->model()
                    ->headerData(LineageModel::LatencyColumn, Qt::Horizontal, Qt::ToolTipRole)
                    .toString()
                    .contains(QLatin1String("NVIDIA H200")));
        const auto *model = qobject_cast<LineageModel *>(view->model());
        QVERIFY(view->columnSpan(model->rowOf(row), LineageModel::LatencyColumn) > 1);

        QCOMPARE(trajectory->trajectory().points.size(), drawn);
        QCOMPARE(trajectory->trajectory().elsewhere.size(), std::size_t(1));
        QVERIFY(trajectory->plot()->xAxis->label().contains(QLatin1String("NVIDIA H200")));
        QVERIFY(trajectory->plot()->accessibleDescription().contains(QLatin1String("on AMD EPYC 7R13")));

        real.press(Qt::Key_4, Qt::ControlModifier | Qt::AltModifier); // the layout Demo
        auto *story = qobject_cast<StoryPanel *>(real.window->panel(QStringLiteral("story")));
        QTRY_VERIFY(story->isVisible());
        const ui::Picture &picture = story->canvas()->picture();
        const int item = picture.itemOf(key, row);
        QVERIFY(item >= 0);
        QVERIFY(picture.y.title.contains(QLatin1String("NVIDIA H200")));
        QVERIFY(picture.yFrom && picture.placeOf(item).y() < *picture.yFrom);
        QVERIFY(picture.items[static_cast<std::size_t>(item)].caption.contains(QLatin1String("AMD EPYC")));
        QVERIFY(!story->canvas()->grab().isNull());
    }

    void whatIsNotDrawnIsSaidWhole_data()
    {
        QTest::addColumn<QSize>("size");
        for (const QSize size : {QSize(1600, 1000), QSize(1366, 768), QSize(1000, 700)})
            QTest::addRow("%dx%d", size.width(), size.height()) << size;
    }

    /// Trials of another device, which the trajectory does not draw: in the plot, or in its tool tip.
    void whatIsNotDrawnIsSaidWhole()
    {
        QFETCH(QSize, size);
        const RealWindow real(QStringLiteral("gemm/sm90/K08"), size);
        QVERIFY(real.ready);
        Workspace changed = real.window->workspace()->workspace();
        for (lineage::Lineage &lineage : changed.lineages) {
            if (lineage.key() != "gemm/sm90")
                continue;
            gate::Trial trial = *lineage.trialOf(*lineage.findState("K08"));
            trial.id = "feedfacefeedface";
            trial.environment.device = "Intel(R) Xeon(R) Platinum 8480C of a machine with a long name";
            lineage.trials.push_back(trial);
            lineage.branches.push_back({trial.id, "K08", "branches/feedface.cu"});
        }
        real.window->workspace()->setWorkspace(changed);
        const auto *trajectory = real.find<TrajectoryPanel>("trajectory");
        QCustomPlot *plot = trajectory->plot();
        // The row that has no point: the caption is about all of the plot.
        real.selection()->setRow(QStringLiteral("trial:feedfacefeedface"));
        QVERIFY(real.settle());
        plot->replot(); // as it is laid out now
        QString caption;
        for (int i = 0; i < plot->itemCount(); ++i) {
            const auto *text = qobject_cast<QCPItemText *>(plot->item(i));
            if (text && text->text().contains(QLatin1String("1 trial on")))
                caption = text->text();
        }
        QVERIFY(!caption.isEmpty());
        for (const QString &line : caption.split(u'\n'))
            QVERIFY2(plot->fontMetrics().horizontalAdvance(line) <= plot->axisRect()->width(),
                     qPrintable(line));
        const QString whole = trajectory->trajectory().elsewhereInWords();
        QVERIFY2(caption.contains(whole) || plot->toolTip().contains(whole), qPrintable(caption));
    }

    /// Beside a parent that was recorded on another device stand the figures of the paired rounds alone, and the heading says so.
    void theHeadingNamesWhatTheFiguresAreOf()
    {
        const RealWindow real(QStringLiteral("gemm/sm90/K08"));
        QVERIFY(real.ready);
        const Workspace shipped = real.window->workspace()->workspace();
        const auto *profile = qobject_cast<ProfilePanel *>(real.window->panel(QStringLiteral("profile")));
        const auto heading = [profile] {
            for (const QLabel *label : profile->findChildren<QLabel *>()) {
                if (label->isVisible() && label->toolTip().contains(QLatin1String("AMD EPYC 7R13")))
                    return label->toolTip();
            }
            return QString();
        };
        const auto left = [profile](const QString &name) {
            for (const ProfileRow &row : profile->model()->rows()) {
                if (row.name == name)
                    return row.left;
            }
            return std::optional<double>();
        };
        const auto tryElsewhere = [&](bool isPaired) {
            Workspace changed = shipped;
            for (lineage::Lineage &lineage : changed.lineages) {
                if (lineage.key() != "gemm/sm90")
                    continue;
                gate::Trial trial = *lineage.trialOf(*lineage.findState("K08"));
                trial.id = isPaired ? "feedfacefeedface" : "deadbeefdeadbeef";
                trial.environment.device = "AMD EPYC 7R13";
                trial.latencyNs = {5e6, 4.9e6, 5.1e6};
                gate::Comparison beside;
                beside.against = "parent";
                beside.speedup = {1.2, 1.19, 1.21};
                beside.otherNs = 6e6;
                trial.verdict.comparisons.clear();
                if (isPaired)
                    trial.verdict.comparisons.push_back(beside);
                lineage.trials.push_back(trial);
                lineage.branches.push_back({trial.id, "K08", "branches/feedface.cu"});
                real.window->workspace()->setWorkspace(changed);
                real.selection()->setRow(QStringLiteral("trial:") + QString::fromStdString(trial.id));
                return;
            }
        };
        QVERIFY(left(QStringLiteral("registers")));
        tryElsewhere(true);
        QVERIFY(real.settle());
        QVERIFY2(heading().startsWith(QLatin1String("against K08, paired"))
                     && heading().contains(QLatin1String("of NVIDIA H200 and not compared")),
                 qPrintable(heading()));
        QCOMPARE(left(QStringLiteral("latency")), std::optional(6e6));
        QVERIFY(!left(QStringLiteral("registers")));
        real.press(Qt::Key_E, Qt::AltModifier);
        QVERIFY(real.settle());
        QVERIFY(profile->explanation()->toPlainText().contains(
            QLatin1String("K08 was recorded on NVIDIA H200 and this trial on AMD EPYC 7R13")));

        tryElsewhere(false);
        QVERIFY(real.settle());
        QVERIFY2(heading().startsWith(QLatin1String("K08 was recorded on NVIDIA H200 and is not compared")),
                 qPrintable(heading()));
        QVERIFY(!left(QStringLiteral("latency")) && !left(QStringLiteral("registers")));
    }

    /// Against a pinned state nothing was timed side by side, and every figure says so.
    void whatIsNotPairedSaysSo()
    {
        const RealWindow real(QStringLiteral("gemm/sm90/K08"));
        QVERIFY(real.ready);
        real.selection()->setBaseline(QStringLiteral("K05"));
        QVERIFY(real.settle());
        const auto *profile = qobject_cast<ProfilePanel *>(real.window->panel(QStringLiteral("profile")));
        QVERIFY(profile->model()
                    ->index(0, ProfileModel::ChangeColumn)
                    .data()
                    .toString()
                    .startsWith(QStringLiteral("≈")));
        const auto *view = real.find<LineageView>("lineage");
        QCOMPARE(view->model()->headerData(LineageModel::BaselineColumn, Qt::Horizontal).toString(),
                 QStringLiteral("≈ vs K05"));
        bool isHeading = false;
        for (const SideHeader *header :
             real.window->panel(QStringLiteral("diff"))->findChildren<SideHeader *>())
            isHeading = isHeading || header->heading().change.text.contains(QLatin1String("not paired"));
        QVERIFY(isHeading);
        const auto labels = profile->findChildren<QLabel *>();
        QVERIFY(std::any_of(labels.begin(), labels.end(), [](const QLabel *label) {
            return label->toolTip().contains(QLatin1String("K05, not paired"));
        }));
    }

    void aWalkedStepIsCalledAfterItsTransition()
    {
        const RealWindow real(QStringLiteral("softmax/sm90/K06"));
        QVERIFY(real.ready);
        QVERIFY(cell(real, QStringLiteral("K06"), LineageModel::StepColumn)
                    .endsWith(QStringLiteral("row in registers")));
        QVERIFY(cell(real, QStringLiteral("K07"), LineageModel::StepColumn)
                    .endsWith(QStringLiteral("occupancy: launch bounds of softmax")));
        // The sides of the diff are states, and keep their names.
        bool isState = false;
        for (const SideHeader *header :
             real.window->panel(QStringLiteral("diff"))->findChildren<SideHeader *>())
            isState = isState || header->heading().title == QLatin1String("no launch bounds");
        QVERIFY(isState);
    }

    /// Noise is below what changed, and no bar is cut at the size that the window starts with.
    void whatChangedComesFirstAndBarsAreWhole()
    {
        const RealWindow real(QStringLiteral("gemm/sm90/K08"));
        QVERIFY(real.ready);
        const auto *profile = qobject_cast<ProfilePanel *>(real.window->panel(QStringLiteral("profile")));
        const std::vector<ProfileRow> &rows = profile->model()->rows();
        bool noise = false;
        double last = 1;
        for (std::size_t i = 3; i < rows.size() && rows[i].impact() > 0; ++i) {
            QVERIFY2(!noise || rows[i].isNoise(), qPrintable(rows[i].name));
            if (!rows[i].isNoise()) {
                QVERIFY(rows[i].impact() <= last);
                last = rows[i].impact();
            }
            noise = noise || rows[i].isNoise();
        }
        QVERIFY(noise);
        const auto *table = profile->findChild<QTableView *>();
        const QHeaderView *header = table->horizontalHeader();
        int total = 0;
        for (int column = 0; column < ProfileModel::ColumnCount; ++column)
            total += table->isColumnHidden(column) ? 0 : table->columnWidth(column);
        QVERIFY2(total <= table->viewport()->width(), qPrintable(QString::number(total)));
        // Beside the figures, or below the change where there is no room: never a part of a bar.
        if (!table->isColumnHidden(ProfileModel::BarColumn)) {
            QVERIFY(header->sectionSize(ProfileModel::BarColumn) >= 48);
            return;
        }
        const QModelIndex latency = profile->model()->index(0, ProfileModel::ChangeColumn);
        const QRect cell = table->visualRect(latency);
        const QImage image = const_cast<QTableView *>(table)->viewport()->grab(cell).toImage();
        int bar = 0;
        for (int x = 0; x < image.width(); ++x)
            bar += image.pixelColor(x, image.height() - 2) == Theme::current().good ? 1 : 0;
        const double impact = latency.data(ProfileModel::BarRole).toDouble();
        QVERIFY2(std::abs(bar - (cell.width() - 8) * impact) <= 2, qPrintable(QString::number(bar)));
    }
};

KLINEAGE_UI_TEST(TestFiguresJourney)
#include "tst_figuresjourney.moc"

#include <algorithm>
