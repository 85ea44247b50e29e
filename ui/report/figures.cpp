// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/report/figures.h"

#include "ui/experiments/experimentplot.h"
#include "ui/models/selection.h"
#include "ui/models/workspacemodel.h"
#include "ui/plots/plotexport.h"
#include "ui/plots/roofline/rooflineview.h"
#include "ui/plots/runtrajectorypanel.h"
#include "ui/plots/trajectorypanel.h"
#include "ui/runs/runstore.h"
#include "ui/story/chain/chainpicture.h"
#include "ui/story/picture/picturecanvas.h"
#include "ui/story/roundtrip/roundtrippicture.h"

#include <QCoreApplication>
#include <QElapsedTimer>
#include <QRegularExpression>

#include <functional>

#include <qcustomplot.h>

namespace klineage::ui {

namespace {

constexpr QSize figureSize(1040, 400);
constexpr QSize waterfallSize(1040, 560); // the first steps, often the largest, have their titles above them
constexpr int readingLimitMs = 30000;

void layOut(QWidget &widget, const QSize &size)
{
    widget.setAttribute(Qt::WA_DontShowOnScreen);
    widget.resize(size);
    widget.show();
    QCoreApplication::processEvents();
}

/// As it would look in a window of that size; the bytes from <svg on, as they stand in a page.
QByteArray svgElement(QWidget &widget, const QSize &size)
{
    // What has neither line nor area is not seen; Qt's own renderer would draw it in black.
    static const QRegularExpression unseen(
        QStringLiteral("<g fill=\"none\" stroke=\"none\"[^>]*>[^g]*?</g>|<g [^>]*>\\s*</g>\\s*"),
        QRegularExpression::DotMatchesEverythingOption);
    layOut(widget, size);
    QString svg = QString::fromUtf8(drawnAsSvg(widget));
    widget.hide();
    svg.remove(0, std::max<qsizetype>(svg.indexOf(QLatin1String("<svg")), 0));
    return svg.remove(unseen).toUtf8();
}

QByteArray chainSvg(const lineage::Lineage &lineage)
{
    PictureCanvas canvas(QStringLiteral("report"));
    canvas.setPicture(waterfall(chainOf(lineage)));
    return svgElement(canvas, waterfallSize);
}

QByteArray roundtripSvg(const lineage::Lineage &lineage)
{
    const Result<run::RoundtripRecord> record = run::readRoundtripRecord(lineage.directory);
    if (!record || record->arms.empty())
        return {};
    PictureCanvas canvas(QStringLiteral("report"));
    canvas.setPicture(roundtripPicture(lineage, *record));
    return svgElement(canvas, figureSize);
}

QByteArray trialsSvg(const Workspace &workspace, const lineage::Lineage &lineage)
{
    WorkspaceModel model;
    Selection selection;
    model.setWorkspace(workspace);
    selection.setLineage(QString::fromStdString(lineage.key()), {});
    TrajectoryPanel panel(&model, &selection);
    if (panel.trajectory().points.empty())
        return {};
    // Its caption is cut to the width that the plot had when something was last selected.
    layOut(panel, figureSize);
    selection.setRow(panel.trajectory().points.front().row);
    selection.setRow({});
    return svgElement(panel, figureSize);
}

QByteArray rooflineSvg(const lineage::Lineage &lineage)
{
    RooflinePlot plot;
    plot.setView(rooflineOf(
        lineage, lineage.states.empty() ? QString() : QString::fromStdString(lineage.states.back().id)));
    return svgElement(plot, figureSize + QSize(0, 120));
}

bool waitFor(const std::function<bool()> &isDone)
{
    QElapsedTimer timer;
    timer.start();
    while (!isDone() && timer.elapsed() < readingLimitMs)
        QCoreApplication::processEvents(QEventLoop::WaitForMoreEvents | QEventLoop::AllEvents, 50);
    return isDone();
}

QByteArray runSvg(const Workspace &workspace, const run::RunRecord &run)
{
    WorkspaceModel model;
    model.setWorkspace(workspace);
    RunStore store(&model);
    const QString folder =
        QString::fromStdString(std::filesystem::absolute(run.directory).parent_path().string());
    store.openGuest(folder, QString::fromStdString(run.settings.id));
    RunTrajectoryPanel panel(&store);
    if (!waitFor([&store] { return !store.isReading() && store.current() != nullptr; }))
        return {};
    store.setStep(0); // none stands out on paper
    return panel.traces().empty() ? QByteArray() : svgElement(panel, figureSize);
}

QByteArray experimentSvg(const run::Experiment &experiment)
{
    ExperimentPlot plot;
    plot.show(curvesOf(experiment, run::readResults(experiment)), {});
    return plot.rootCount() == 0 ? QByteArray() : svgElement(plot, figureSize + QSize(0, 80));
}

QByteArray figureSvg(const Workspace &workspace, const report::Subject &subject, const std::string &name)
{
    if (subject.lineage && name == report::chainFigure)
        return chainSvg(*subject.lineage);
    if (subject.lineage && name == report::rooflineFigure)
        return rooflineSvg(*subject.lineage);
    if (subject.lineage && name == report::trialsFigure)
        return trialsSvg(workspace, *subject.lineage);
    if (subject.lineage && name == report::roundtripFigure)
        return roundtripSvg(*subject.lineage);
    if (subject.run && name == report::runFigure)
        return runSvg(workspace, *subject.run);
    if (subject.experiment && name == report::experimentFigure)
        return experimentSvg(*subject.experiment);
    return {};
}

} // namespace

ReportFigures drawFigures(const Workspace &workspace, const report::Subject &subject,
                          const report::Document &document)
{
    ReportFigures figures;
    for (const report::Block &block : document.blocks) {
        const auto *figure = std::get_if<report::Figure>(&block);
        if (QByteArray svg = figure ? figureSvg(workspace, subject, figure->name) : QByteArray();
            !svg.isEmpty())
            figures[figure->name] = std::move(svg);
    }
    return figures;
}

} // namespace klineage::ui
